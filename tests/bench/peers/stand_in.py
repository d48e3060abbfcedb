#!/usr/bin/env python3
"""Stands in for a peer where none is at hand: an MCP server on stdin and stdout whose only tool gives back its text.

It takes the command lines of all peers and looks at none of them:
PEER_WASSETTE=tests/bench/peers/stand_in.py PEER_HYPER_MCP=tests/bench/peers/stand_in.py make bench ARGS='--quick --filter peers'
"""

import json
import sys

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOL = {"name": "stand-in-echo", "description": "Gives back the text it is given.", "inputSchema": SCHEMA}


def answer(request):
    """What the request is answered with."""
    method, params = request["method"], request.get("params", {})
    if method == "initialize":
        server = {"name": "stand-in", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        return {"tools": [TOOL]}
    return {"content": [{"type": "text", "text": json.dumps({"result": params["arguments"]["text"]})}]}


for line in sys.stdin:
    frame = json.loads(line)
    if "id" in frame:
        print(json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": answer(frame)}), flush=True)
