"""A short MCP conversation with an installed program: it serves the examples, and answers as they should.

Holds the conversation. Must not hold: how the program came to be there.
"""

import json
import shutil
import subprocess
import threading

from project import ROOT

# Compiling all examples anew takes half of this on two busy cores.
SECONDS_MAX = 300
LEFT_OUT = shutil.ignore_patterns("target", "node_modules", "docs", "gallery", ".toolcell", "src", "notes", "toolcell.lock")


def examples(folder):
    """A copy of the examples in a folder; the path of its manifest."""
    source = ROOT / "guest-examples"
    if not (source / "components" / "echo.wasm").exists():
        raise SystemExit("dist-check: there are no examples to serve yet: make guests")
    shutil.copytree(source, folder, ignore=LEFT_OUT)
    return folder / "toolcell.toml"


def served(command, **options):
    """Talks to `COMMAND`, a server on its input and output. Gives the names of its tools."""
    process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    patience = threading.Timer(SECONDS_MAX, process.kill)
    patience.start()
    said = []
    # What it says meanwhile must not fill the pipe.
    listener = threading.Thread(target=lambda: said.append(process.stderr.read()))
    listener.start()

    def send(message):
        process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
        process.stdin.flush()

    def asked(id, method, params):
        send({"id": id, "method": method, "params": params})
        for line in process.stdout:
            answer = json.loads(line)
            if answer.get("id") == id:
                return answer["result"]
        raise AssertionError(f"{command}: no answer to {method}")

    try:
        client = {"name": "dist-check", "version": "1"}
        asked(1, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
        send({"method": "notifications/initialized"})
        names = {tool["name"] for tool in asked(2, "tools/list", {})["tools"]}
        assert {"echo", "text_diff", "chart", "units_convert", "notes_write"} <= names, names
        answer = asked(3, "tools/call", {"name": "text_diff", "arguments": {"before": "tea\nmilk\n", "after": "tea\noat milk\n"}})
        assert "+oat milk" in answer["content"][0]["text"], answer
    except (AssertionError, OSError, ValueError, KeyError) as problem:
        process.kill()
        listener.join()
        raise SystemExit(f"dist-check: {' '.join(map(str, command))}: {problem!r}\n{''.join(said)}") from problem
    finally:
        patience.cancel()
    process.stdin.close()
    code = process.wait()
    listener.join()
    assert code == 0, f"{command}: ended with {code}: {''.join(said)}"
    return names
