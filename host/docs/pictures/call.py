#!/usr/bin/env python3
"""Draws call.svg, the way of a call through its walls, for the README.

    host/docs/pictures/call.py            writes it
    host/docs/pictures/call.py --check    ends with 1 where it is not what this script draws

The picture has a style for light and one for dark backgrounds.
"""

import sys
from html import escape
from pathlib import Path

PICTURE = Path(__file__).with_suffix(".svg")
WIDTH, HEIGHT = 960, 372

STYLE = """
  svg { font-family: ui-sans-serif, system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
  text { fill: #1f2328; font-size: 14px; }
  .small { fill: #59636e; font-size: 12px; }
  .head { font-weight: 600; }
  .box { fill: #ffffff; stroke: #8c959f; stroke-width: 1.2; }
  .host { fill: #f6f8fa; stroke: #8c959f; stroke-width: 1.2; }
  .cell { fill: #fff8e5; stroke: #bf8700; stroke-width: 3; }
  .ask { fill: #ddf4ff; stroke: #0969da; stroke-width: 1.6; }
  .line { stroke: #59636e; stroke-width: 1.6; fill: none; }
  .tip { fill: #59636e; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .small { fill: #9198a1; }
    .box { fill: #0d1117; stroke: #656c76; }
    .host { fill: #151b23; stroke: #656c76; }
    .cell { fill: #272115; stroke: #d29922; }
    .ask { fill: #121d2f; stroke: #4493f8; }
    .line { stroke: #9198a1; }
    .tip { fill: #9198a1; }
  }
"""


def box(kind, x, y, width, height, title, lines, radius=8):
    """A box with a title and small lines below it, centred."""
    yield f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}"/>'
    middle = x + width / 2
    top = y + height / 2 + 5 - 8.5 * len(lines)
    yield f'<text class="head" x="{middle:g}" y="{top:g}" text-anchor="middle">{escape(title)}</text>'
    for number, line in enumerate(lines, 1):
        yield f'<text class="small" x="{middle:g}" y="{top + 17 * number:g}" text-anchor="middle">{escape(line)}</text>'


def arrow(*points):
    """A line through the points, with a tip at the last one."""
    yield f'<polyline class="line" points="{" ".join(f"{x:g},{y:g}" for x, y in points)}" marker-end="url(#tip)"/>'


def label(x, y, text, kind="small", anchor="middle"):
    yield f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'


def parts():
    # The host: one process.
    yield '<rect class="host" x="150" y="16" width="640" height="340" rx="12"/>'
    yield from label(166, 38, "toolcell: one process", "head", "start")

    yield from box("box", 12, 92, 108, 84, "MCP client", ["2024-11-05 to", "2026-07-28"])
    yield from box("box", 178, 62, 150, 144, "Protocol", ["one strict decoder", "frame and line limits", "who is the caller?", "arguments fit the", "schema?"])
    yield from box("box", 362, 62, 150, 144, "Admission", ["rate, queue, places", "a person's approval", "audit: call.started,", "or the call is refused"])
    yield from box("cell", 546, 62, 226, 144, "Sandbox of this call", ["a fresh instance", "fuel · deadline · memory", "output · log · host data", "no files, no network, no", "environment by itself"])

    yield from box("ask", 546, 246, 226, 92, "Grants of the manifest", ["decide on each request:", "a permit, or a denial that names", "the line that would allow it"])
    yield from box("box", 828, 232, 120, 120, "The world", ["files", "hosts, sockets", "variables", "secrets, state"])
    yield from box("box", 178, 246, 334, 92, "Result", ["bounded, checked, secrets taken out", "audit: call.finished, with outcome and usage", "encoded for the client's revision"])

    yield from arrow((120, 120), (178, 120))
    yield from arrow((328, 134), (362, 134))
    yield from arrow((512, 134), (545, 134))
    yield from arrow((620, 206), (620, 246))
    yield from arrow((664, 246), (664, 208))
    yield from label(612, 230, "may I?", anchor="end")
    yield from label(672, 230, "permit or denial", anchor="start")
    yield from arrow((772, 292), (828, 292))
    yield from label(800, 284, "permit")
    yield from arrow((560, 206), (560, 226), (440, 226), (440, 246))
    yield from arrow((178, 292), (66, 292), (66, 176))
    yield from label(122, 284, "answer")
    yield from label(149, 112, "call")


def picture():
    body = "\n".join(f"  {part}" for part in parts())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">\n'
        "  <title>A call of a tool and its walls</title>\n"
        f"  <style>{STYLE}  </style>\n"
        '  <defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">'
        '<path class="tip" d="M0 0 10 5 0 10z"/></marker></defs>\n'
        f"{body}\n</svg>\n"
    )


def main():
    if sys.argv[1:] == ["--check"]:
        if PICTURE.exists() and PICTURE.read_text("utf-8") == picture():
            return 0
        print(f"{PICTURE.name} is not what {Path(__file__).name} draws; run it without --check", file=sys.stderr)
        return 1
    PICTURE.write_text(picture(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
