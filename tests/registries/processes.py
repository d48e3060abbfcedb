"""Processes of the check: each is started with a log of its own and ended by its process id. And servers in threads.

Must not hold: what the processes are for.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

START_S = 120
"""Seconds until a process says its address. It takes a fraction of one on an idle machine."""

END_S = 60
"""Seconds from the signal to the end of a process."""

RUN_S = 300
"""Seconds for a program that ends by itself."""

LOOK_S = 0.02
"""Seconds between two looks at a log."""


class Broken(Exception):
    """A part that does not do its work, so that nothing can be said of toolcell."""


class Server:
    """A process that says where it listens."""

    def __init__(self, command: list[str], log: Path, says: str, folder: Path | None = None, **environment: str) -> None:
        self.log, begun = log, log.stat().st_size if log.exists() else 0
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                command, cwd=folder, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        late = time.monotonic() + START_S
        while self.process.poll() is None and time.monotonic() < late:
            if found := re.search(says, log.read_bytes()[begun:].decode(errors="replace")):
                self.address = found[1]
                return
            time.sleep(LOOK_S)
        self.end()
        raise Broken(f"{command[0]} said no address\n{log.read_text(errors='replace')}")

    def end(self) -> None:
        """Ends the process and waits for its end. Does nothing if it has ended."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(END_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(END_S)


class Listening(ThreadingHTTPServer):
    """A server of this program's own, at a port that the system chooses, in a thread until `end`."""

    daemon_threads = True

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.thread = threading.Thread(target=self.serve_forever)
        self.thread.start()

    def handle_error(self, *client: object) -> None:
        """A client that hangs up is not an error: clients of a bad registry do so."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(*client)

    def end(self) -> None:
        self.shutdown()
        self.thread.join()
        self.server_close()


def run(command: list[str | Path], input: bytes | None = None, folder: Path | None = None, **environment: str) -> bytes:
    """What a program prints. A program that fails is a broken part."""
    done = attempt(command, input, folder, **environment)
    if done.returncode != 0:
        said = (done.stdout + done.stderr).decode(errors="replace")
        raise Broken(f"{' '.join(map(str, command))} ended with {done.returncode}\n{said}")
    return done.stdout


Done = subprocess.CompletedProcess[bytes]


def attempt(command: list[str | Path], input: bytes | None = None, folder: Path | None = None, **environment: str) -> Done:
    """Runs a program to its end, whatever that is."""
    stdin = {"input": input} if input is not None else {"stdin": subprocess.DEVNULL}
    return subprocess.run(
        [str(part) for part in command], cwd=folder, env={**os.environ, **environment}, capture_output=True, timeout=RUN_S, **stdin
    )
