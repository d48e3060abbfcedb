"""HTTP over wasi:http: `web.get(url).json()`. urllib and packages built on sockets do not work in a component.

The host checks each request against the manifest's rules, resolves names, speaks TLS and adds secrets.
"""

import json
from dataclasses import dataclass
from urllib.parse import urlsplit

from componentize_py_types import Err
from wit_world.imports import outgoing_handler
from wit_world.imports.streams import StreamError_Closed

try:
    from wit_world.imports import types as http
except ImportError:  # another package of the world has an interface `types` too
    from wit_world.imports import wasi_http_types as http

BODY_BYTES_MAX = 1 << 20
"""Most bytes of an answer that are read."""

METHODS = {"GET": http.Method_Get, "POST": http.Method_Post, "PUT": http.Method_Put, "DELETE": http.Method_Delete}


class Failed(Exception):
    """There is no answer: no rule allows the request, or the host cannot be reached."""


@dataclass
class Answer:
    status: int
    body: bytes

    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def json(self):
        return json.loads(self.body)


def get(url: str, headers: dict[str, str] | None = None) -> Answer:
    return request("GET", url, headers)


def request(method: str, url: str, headers: dict[str, str] | None = None, body: bytes = b"") -> Answer:
    parts = urlsplit(url)
    fields = http.Fields.from_list([(name.lower(), value.encode()) for name, value in (headers or {}).items()])
    asked = http.OutgoingRequest(fields)
    asked.set_method(METHODS[method]())
    asked.set_scheme(http.Scheme_Https() if parts.scheme == "https" else http.Scheme_Http())
    asked.set_authority(parts.netloc)
    asked.set_path_with_query((parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
    try:
        return answered(asked, body)
    except Err as problem:
        raise Failed(f"{method} {url}: {type(problem.value).__name__.removeprefix('ErrorCode_')}") from None


def answered(asked: http.OutgoingRequest, body: bytes) -> Answer:
    sent = asked.body()
    future = outgoing_handler.handle(asked, None)
    with sent.write() as stream:
        for at in range(0, len(body), 4096):
            stream.blocking_write_and_flush(body[at : at + 4096])
    http.OutgoingBody.finish(sent, None)
    with future.subscribe() as ready:
        ready.block()
    answer = future.get()
    if isinstance(answer, Err):
        raise answer
    answer = answer.value
    if isinstance(answer, Err):
        raise answer
    response = answer.value
    return Answer(response.status(), read(response.consume()))


def read(body: http.IncomingBody) -> bytes:
    held = bytearray()
    with body.stream() as stream:
        while len(held) < BODY_BYTES_MAX:
            try:
                held += stream.blocking_read(1 << 16)
            except Err as end:
                if isinstance(end.value, StreamError_Closed):
                    break
                raise
    return bytes(held[:BODY_BYTES_MAX])


# This runs once, when the component is built: what a call imports is imported then.
urlsplit("https://example.com/")
json.loads(b"{}")
