#!/usr/bin/env python3
"""Stands in for a peer if none is at hand: an MCP server on stdin and stdout whose only tool returns its text.

Like wassette it has no tool at first. It sends a list-changed notification once it has one, and again before answers.
It accepts the command lines of all peers and ignores them:
PEER_WASSETTE=tests/bench/peers/stand_in.py PEER_HYPER_MCP=tests/bench/peers/stand_in.py make bench ARGS='--quick --filter peers'
"""

import json
import sys

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
TELLS_EVERY = 10  # calls
TOOL = {"name": "stand-in-echo", "description": "Gives back the text it is given.", "inputSchema": SCHEMA}


def answer(request, lists):
    """The answer to the request. `lists` is the number of earlier requests for the list."""
    method, params = request["method"], request.get("params", {})
    if method == "initialize":
        server = {"name": "stand-in", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        return {"tools": [TOOL] if lists else []}
    return {"content": [{"type": "text", "text": json.dumps({"result": params["arguments"]["text"]})}]}


def tell(frame):
    """Writes one frame."""
    print(json.dumps(frame), flush=True)


lists = calls = 0
for line in sys.stdin:
    frame = json.loads(line)
    if "id" not in frame:
        continue
    if frame["method"] == "tools/call":
        calls += 1
        if calls % TELLS_EVERY == 1:
            tell(CHANGED)
    tell({"jsonrpc": "2.0", "id": frame["id"], "result": answer(frame, lists)})
    if frame["method"] == "tools/list":
        if not lists:
            tell(CHANGED)
        lists += 1
