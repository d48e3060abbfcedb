"""The component's exports: the contract of wit/tools.wit."""

import json
import struct
import zlib
from pathlib import Path

from wit_world.imports.types import CallResult, Content_Image, Hints, MediaContent, Tool

# Read once, when the component is built: a call sees no files.
INPUT = (Path(__file__).parent / "schemas" / "input.json").read_text("utf-8")

HEIGHT = 100
BAR = 8  # pixels wide, one of them a gap


class Tools:
    """What the host calls; the name is the interface's."""

    def list_tools(self) -> list[Tool]:
        return [
            Tool(
                name="draw_bars",
                title="Draw bars",
                description="Draws numbers from 0 to 100 as a picture of bars, from left to right.",
                input_schema_json=INPUT,
                output_schema_json=None,
                hints=Hints(read_only=True, destructive=False, idempotent=True, open_world=False),
                icons=[],
                meta_json=None,
            )
        ]

    def call_tool(self, name: str, arguments_json: str) -> CallResult:
        picture = png(json.loads(arguments_json)["values"])
        content = Content_Image(MediaContent(data=picture, mime_type="image/png", annotations=None, meta_json=None))
        return CallResult(content=[content], structured_json=None, is_error=False, meta_json=None)


def png(values: list[int]) -> bytes:
    """A PNG with 8 bits of grey for each pixel."""
    rows = b"".join(
        b"\0" + b"".join((b"\x30" if HEIGHT - y <= value else b"\xff") * (BAR - 1) + b"\xff" for value in values)
        for y in range(HEIGHT)
    )
    header = struct.pack(">IIBBBBB", BAR * len(values), HEIGHT, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


# This runs once, when the component is built. Modules that Python loads where it needs them are there then.
Tools().call_tool("draw_bars", '{"values":[1]}')
