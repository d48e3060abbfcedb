#!/usr/bin/env python3
"""Types the commands of host/docs/operating.md as they stand there, and tries what the page says: `make operating-check`.

Usage: operating.py [--other BINARY] [--all] [PART...]

PART is backup, versions, forms, replicas, clocks, snapshot or revoked; all without one.

  --other BINARY   a toolcell of another version, for the parts with two; the same binary without it
  --all            fail where a part cannot run, instead of leaving it out

The binary under test is target/release/toolcell, or TOOLCELL_BIN. The last four parts need a Valkey or Redis server:
TEST_VALKEY_SERVER, `valkey-server` or `redis-server` in PATH, or what tests/clients/setup.sh gets. `clocks` also needs `cc`.
Each host has a folder of its own, and everything is on the loopback. A failure shows what the hosts said.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import http.client
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "host" / "docs" / "operating.md"
BINARY = Path(os.environ.get("TOOLCELL_BIN") or ROOT / "target" / "release" / "toolcell").resolve()
# Blocks of the page that are typed here, each behind a comment with its name.
BLOCK = re.compile(r"^<!-- tests/operating\.py: ([a-z ]+) -->\n```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What tar says of a file that grew while it was read: the page allows it.
GREW = re.compile(r"^tar: .*: file changed as we read it$")
# Seconds for a start, an answer, a command and an end. Each takes a fraction on an idle machine.
START_S, ANSWER_S, RUN_S, END_S = 180, 60, 180, 60
# Seconds between two looks at something that is waited for.
LOOK_S = 0.02
MODERN, LEGACY = "2026-07-28", "2025-11-25"
TASKS = "io.modelcontextprotocol/tasks"
KEY = "0123456789abcdef0123456789abcdef"
# Seconds that clocks of replicas are apart: within the time for questions of five minutes, and past a session's day.
NEAR_S, FAR_S = 200, 25 * 3600
# Has a process see another time of day, and the time since its start as it is.
CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, now);
    if (!failed && clock == CLOCK_REALTIME) now->tv_sec += AHEAD_S;
    return failed;
}
"""


class Failed(Exception):
    """A claim that does not hold."""


class Missing(Exception):
    """A part cannot run on this machine."""


def check(holds, claim, *details):
    if not holds:
        raise Failed("\n  ".join([claim, *(str(detail)[:4000] for detail in details)]))


def equal(found, wanted, claim):
    check(found == wanted, claim, f"found  {found!r}", f"wanted {wanted!r}")


def in_time(claim, holds):
    """Waits until this holds."""
    late = time.monotonic() + ANSWER_S
    while not holds():
        check(time.monotonic() < late, f"not in time: {claim}")
        time.sleep(LOOK_S)


class Site:
    """A machine's folders as the page names them: configuration, data, and what is made anew without them."""

    def __init__(self, folder, lines="", tokens=True):
        self.folder, self.config, self.data = folder, folder / "etc", folder / "var lib"
        self.manifest, self.backup = self.config / "toolcell.toml", folder / "backup.tar"
        for made in (self.config / "components", self.data, folder / "bin", folder / "run"):
            made.mkdir(parents=True, mode=0o700)
        self.components = self.config / "components"
        for name, source in (("counter", "guest-examples"), ("tasks", "tests/fixtures"), ("versioned", "tests/fixtures")):
            found = ROOT / source / "components" / (f"{name}_a.wasm" if name == "versioned" else f"{name}.wasm")
            check(found.exists(), f"there is no {found.relative_to(ROOT)}: make guests fixtures")
            shutil.copyfile(found, self.components / f"{name}.wasm")
        (self.config / "state.key").write_text(KEY)
        (self.config / "state.key").chmod(0o600)
        self.manifest.write_text(f"""version = 1

[server]
state = "{self.data}/state"
state_key = "file:state.key"

[http]
listen = "127.0.0.1:0"
drain = "1s"
{'tokens = "tokens.jsonl"' if tokens else ""}

[audit]
file = "{self.data}/audit.jsonl"

[components.counter]
source = "components/counter.wasm"
[components.counter.keyvalue]
quota = "64KiB"
[components.counter.limits]
rate = "100000/min"

[components.tasks]
source = "components/tasks.wasm"
task = "0ms"

[components.versioned]
source = "components/versioned.wasm"
{lines}
""")

    def environment(self, binary):
        """Of a host and of who types: as the packaged unit sets it. The page's `toolcell` is this binary."""
        link = self.folder / "bin" / "toolcell"
        link.unlink(missing_ok=True)
        link.symlink_to(binary)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "TOOLCELL_", "LD_"))}
        return {
            **kept,
            "PATH": f"{link.parent}:{os.environ['PATH']}",
            "HOME": str(self.data),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "XDG_STATE_HOME": str(self.data / "host"),
            "XDG_RUNTIME_DIR": str(self.folder / "run"),
            "config": str(self.config),
            "data": str(self.data),
            "backup": str(self.backup),
        }

    def run(self, *arguments, binary=BINARY, codes=(0,)):
        """What a command prints, on both outputs, once it has ended with one of these codes."""
        command = [str(binary), *map(str, arguments)]
        done = subprocess.run(command, env=self.environment(binary), cwd=self.config, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=RUN_S, check=False)
        check(done.returncode in codes, f"toolcell {' '.join(command[1:])} ends with {codes}", done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def types(self, block, binary=BINARY, grows=False):
        """Types a block of the page in a shell. Every line of it works: the shell ends with the first that does not."""
        command = ["sh", *([] if grows else ["-e"]), "-c", blocks()[block]]
        done = subprocess.run(command, env=self.environment(binary), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=RUN_S, check=False)
        said = done.stdout + done.stderr
        check(done.returncode == 0, f"the page's commands \"{block}\" work", said)
        if grows:
            wrong = [line for line in done.stderr.splitlines() if not GREW.match(line)]
            check(not wrong, f"the page's commands \"{block}\" complain of nothing else", said)
        return said

    def token(self, name, binary=BINARY):
        return re.search(r"^toolcell_\w+$", self.run("token", "new", name, binary=binary), re.MULTILINE)[0]

    def head(self):
        """The number of records of the audit, and the hash of the last."""
        found = json.loads(self.run("audit", "verify", "--json"))
        found = found[0] if isinstance(found, list) else found
        return found["records"], found["head"]

    @contextlib.contextmanager
    def serves(self, binary=BINARY, locked=True, token=None, **environment):
        host = Host(self, binary, ["--locked"] if locked else [], token, environment)
        try:
            yield host
        except BaseException:
            print(f"---- {host.log} ----\n{host.log.read_text(errors='replace')}", file=sys.stderr)
            raise
        finally:
            host.end()


class Host:
    """A host that serves a site over HTTP, and one client of it."""

    def __init__(self, site, binary, options, token, environment):
        self.site, self.token, self.log = site, token, site.folder / "host.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([str(binary), "serve", "--http", *options], cwd=site.config, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, env={**site.environment(binary), **environment})
        late = time.monotonic() + START_S
        while not (found := re.search(r"at http://127\.0\.0\.1:(\d+)/mcp", self.log.read_text(errors="replace"))):
            if self.process.poll() is not None or time.monotonic() > late:
                self.end()
                raise Failed(f"the host serves\n{self.log.read_text(errors='replace')}")
            time.sleep(LOOK_S)
        self.port = int(found[1])

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(END_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(END_S)

    def post(self, message, **headers):
        """The status of an answer, its headers and its last message."""
        fields = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        if self.token:
            fields["authorization"] = f"Bearer {self.token}"
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_S)
        try:
            connection.request("POST", "/mcp", json.dumps(message), fields)
            answer = connection.getresponse()
            body = answer.read().decode()
        finally:
            connection.close()
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            body = [line[len("data:"):] for line in body.splitlines() if line.startswith("data:")][-1]
        return answer.status, answer.headers, json.loads(body) if body.strip() else None

    def answered(self, method, params, capabilities=None, meta=None):
        """The status of a request of 2026-07-28, and its answer."""
        about = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "operating", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": capabilities or {},
            **(meta or {}),
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": about}}
        name = params.get("name") or params.get("taskId")
        status, _, answer = self.post(message, mcp_protocol_version=MODERN, mcp_method=method, mcp_name=name)
        return status, answer

    def modern(self, method, params, *more, **others):
        """The result of a request of 2026-07-28."""
        status, answer = self.answered(method, params, *more, **others)
        check(status == 200 and "result" in answer, f"{method} is answered", params, status, answer)
        return answer["result"]

    def call(self, tool, arguments=None, **more):
        """The text of a tool's result."""
        result = self.modern("tools/call", {"name": tool, "arguments": arguments or {}}, **more)
        return result["content"][0]["text"]

    def counts(self, name, by):
        """The value of a counter, once this was added."""
        return json.loads(self.call("counter_add", {"name": name, "by": by}))["value"]

    def counted(self):
        """All counters."""
        return {one["name"]: one["value"] for one in json.loads(self.call("counter_list"))["counters"]}

    def begins_task(self, label, seconds=0):
        """The name of a task."""
        arguments = {"seconds": seconds, "label": label}
        result = self.modern("tools/call", {"name": "slow_compute", "arguments": arguments}, {"extensions": {TASKS: {}}})
        equal(result["resultType"], "task", "a call becomes a task")
        return result["taskId"]

    def task(self, name):
        """The status of a task, and the text of its result."""
        task = self.modern("tasks/get", {"taskId": name}, {"extensions": {TASKS: {}}})
        content = task.get("result", {}).get("content", [{}])
        return task["status"], content[0].get("text")

    def finishes_task(self, label):
        name = self.begins_task(label)
        in_time(f"the task {label} is over", lambda: self.task(name)[0] != "working")
        equal(self.task(name), ("completed", f"computed {label}"), "a task has its result")
        return name

    def asks(self, asked=None):
        """The answer to the first round of a call that asks, or to the second."""
        more = {} if asked is None else {
            "requestState": asked["result"]["requestState"],
            "inputResponses": {"confirm": {"action": "accept", "content": {"confirm": True}}},
        }
        return self.answered("tools/call", {"name": "confirm_delete", "arguments": {}, **more}, {"elicitation": {"form": {}}})[1]

    def initialized(self):
        """The answer to an older client that begins a session."""
        about = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "older", "version": "1"}}
        return self.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about})

    def session_status(self):
        return self.initialized()[0]

    def session(self):
        """The id of a new session of an older client."""
        status, headers, _ = self.initialized()
        equal(status, 200, "a session begins")
        return headers["mcp-session-id"]

    def in_session(self, session):
        """The status of a call in a session, and its text."""
        message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "version", "arguments": {}}}
        status, _, answer = self.post(message, mcp_session_id=session, mcp_protocol_version=LEGACY)
        return status, answer["result"]["content"][0]["text"] if status == 200 else None


class Valkey:
    """A server in a folder of its own. Its log is off and its snapshots are taken by hand, as some lines of the page need it."""

    def __init__(self, folder, *options):
        folder.mkdir(exist_ok=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.folder, self.log = folder, folder / "server.log"
        command = [valkey_server(), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", "", *options]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        in_time("the server answers", self.answers)

    def answers(self):
        check(self.process.poll() is None, "the Valkey server runs", self.log.read_text(errors="replace"))
        with contextlib.suppress(OSError):
            return self.ask("PING") == "+PONG"
        return False

    def ask(self, command):
        """The first line of an answer."""
        with socket.create_connection(("127.0.0.1", self.port), ANSWER_S) as connection:
            connection.sendall(f"{command}\r\n".encode())
            return connection.makefile().readline().strip()

    def writes_log(self):
        """True while the server writes its log anew, or is about to."""
        with socket.create_connection(("127.0.0.1", self.port), ANSWER_S) as connection:
            connection.sendall(b"INFO persistence\r\n")
            answer = connection.makefile("rb")
            facts = answer.read(int(answer.readline()[1:])).decode().split()
        return "aof_rewrite_in_progress:0" not in facts or "aof_rewrite_scheduled:0" not in facts

    def lines(self, prefix):
        """Of a manifest: this server, and a rate that one call uses up."""
        return f"""
[components.versioned.limits]
rate = "1/h"

[state]
shared = "redis://127.0.0.1:{self.port}"
prefix = "{prefix}"
within = "10s"
"""

    def end(self):
        self.process.kill()
        self.process.wait(END_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


def blocks():
    """The page's blocks, by their names."""
    return dict(BLOCK.findall(PAGE.read_text("utf-8")))


def valkey_server():
    named = os.environ.get("TEST_VALKEY_SERVER") or shutil.which("valkey-server") or shutil.which("redis-server")
    if named:
        return named
    got = subprocess.run([ROOT / "tests" / "clients" / "setup.sh", "valkey"], capture_output=True, text=True, check=False)
    if got.returncode:
        said = [line for line in got.stderr.splitlines() if line.startswith("clients: ")]
        raise Missing(f"no Valkey server is available: {said[-1] if said else got.stderr}")
    return got.stdout.strip()


def archive(path, component):
    """Writes a component as the archive of a store, and returns the digest of its manifest."""
    blobs = {}

    def blob(media_type, content):
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    oci = "application/vnd.oci.image"
    manifest = blob(f"{oci}.manifest.v1+json", json.dumps({
        "schemaVersion": 2, "mediaType": f"{oci}.manifest.v1+json",
        "config": blob("application/vnd.wasm.config.v0+json", b"{}"),
        "layers": [blob("application/wasm", component)],
    }).encode())
    files = {
        "oci-layout": b'{"imageLayoutVersion":"1.0.0"}',
        "index.json": json.dumps({"schemaVersion": 2, "manifests": [manifest]}).encode(),
        **blobs,
    }
    with tarfile.open(path, "w") as tar:
        for name, content in files.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            tar.addfile(about, io.BytesIO(content))
    return manifest["digest"]


def with_pinned(folder, binary=BINARY):
    """A site with a component of a registry in its store, a caller's token, and a lock of it all, which this binary wrote."""
    site = Site(folder)
    digest = archive(folder / "echo.tar", (ROOT / "guest-examples" / "components" / "echo.wasm").read_bytes())
    site.run("store", "import", folder / "echo.tar", binary=binary)
    with site.manifest.open("a") as manifest:
        manifest.write(f'\n[components.echo]\nsource = "oci://registry.example.com/tools/echo:1@{digest}"\n')
    token = site.token("ann", binary)
    site.run("lock", binary=binary)
    return site, token


def quarantined(site):
    """The components that wait for a person."""
    return [one["component"] for one in json.loads(site.run("status", "--json", codes=(0, 1)))[0]["quarantined"]]


def refuses_a_change(site, host):
    """A component that differs from the lock waits for a person, and the pinned one serves on. Returns the difference."""
    pinned = (site.components / "versioned.wasm").read_bytes()
    shutil.copyfile(ROOT / "tests" / "fixtures" / "components" / "versioned_b.wasm", site.components / "versioned.wasm")
    said = site.run("diff", codes=(1,))
    check("versioned" in said, "the lock tells that a component differs", said)
    in_time("the changed component is quarantined", lambda: quarantined(site) == ["versioned"])
    equal(host.call("version"), "a", "the pinned component serves on")
    (site.components / "versioned.wasm").write_bytes(pinned)
    in_time("the pinned component is back", lambda: quarantined(site) == [])
    return said


def confirmed(answer):
    """True if a tool got the answer to its question."""
    return "confirm" in answer.get("result", {}).get("content", [{}])[0].get("text", "")


class Writer(threading.Thread):
    """Counts without a pause until it is stopped. No call may fail."""

    def __init__(self, host):
        super().__init__(daemon=True)
        self.host, self.last, self.problem, self.ends = host, 0, None, threading.Event()

    def run(self):
        try:
            while not self.ends.is_set():
                self.last = self.host.counts("busy", 1)
        except Exception as problem:
            self.problem = problem

    def __enter__(self):
        self.start()
        in_time("it counts", lambda: self.last > 10 or self.problem)
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.join(ANSWER_S)
        check(self.problem is None, "calls work while a backup is taken", self.problem)


def backup(folder, _other):
    """A backup while the host runs, brought back into empty folders."""
    site, token = with_pinned(folder)
    with site.serves(token=token) as host:
        equal(host.counts("steady", 5), 5, "a counter counts")
        equal(host.call("echo", {"text": "from the store"}), "from the store", "the store's component serves")
        done, runs = host.finishes_task("sum"), host.begins_task("rest", 3600)
        differs = refuses_a_change(site, host)
        with Writer(host) as writer:
            before = writer.last
            head = re.search(r"^head: +(\w{64})$", site.types("back up", grows=True), re.MULTILINE)[1]
            after = writer.last
            in_time("calls go on", lambda: writer.last > after or writer.problem)
        equal(host.counts("steady", 7), 12, "it counts on")
    gone = folder / "gone"
    gone.mkdir()
    for lost in (site.config, site.data, folder / "cache", folder / "run"):
        lost.rename(gone / lost.name)
    (folder / "run").mkdir(mode=0o700)
    site.types("restore")
    with site.serves(token=token) as host:
        said = site.types("look")
        for line in ("nothing differs", "ok; records: ", "serving "):
            check(line in said, f"the page's commands \"look\" say \"{line}\"", said)
        counted = host.counted()
        equal(counted["steady"], 5, "the counter is that of the backup")
        # A call may have been counted and not yet answered.
        check(before <= counted["busy"] <= after + 1, "the file is one of the time of the backup", before, counted, after)
        equal(host.counts("steady", 1), 6, "it counts on from there")
        equal(host.task(done), ("completed", "computed sum"), "the result of a finished task is there")
        equal(host.task(runs)[0], "failed", "a task that ran has failed")
        equal(host.call("echo", {"text": "again"}), "again", "the store's component serves, without its registry")
        equal(refuses_a_change(site, host), differs, "the lock holds as before")
    site.run("audit", "verify", "--head", head)
    first, _ = site.head()
    with site.serves(token=token):
        pass
    more, _ = site.head()
    check(more > first, "the chain goes on", first, more)
    print(f"    counted from {before} to {after} while it was taken, and the copy has {counted['busy']}; {more} records in one chain")


def versions(folder, other):
    """An upgrade, and the way back: what one program writes, the other reads."""
    site, token = with_pinned(folder, other)
    tasks = {}
    for turn, (binary, beside) in enumerate([(other, BINARY), (BINARY, other), (other, BINARY)], start=1):
        with site.serves(binary, token=token) as host:
            equal(host.counts("steady", 1), turn, "the counter of the other version is there")
            for label, name in tasks.items():
                equal(host.task(name), ("completed", f"computed {label}"), "so is the result of its task")
            tasks[f"turn {turn}"] = host.finishes_task(f"turn {turn}")
            equal(host.call("echo", {"text": "x"}), "x", "so is the store")
            session = host.session()
            equal(host.in_session(session), (200, "a"), "an older client has a session")
            # The commands of the version that the page is of, with hosts of both.
            said = site.types("look")
            check("nothing differs" in said, "the lock holds", said)
            check("serving " in site.run("status", binary=beside), "the other version's `status` is answered")
        records, head = site.head()
        site.run("audit", "verify", site.data / "audit.jsonl", "--head", head, binary=other)
    with site.serves(token=token) as host:
        equal(host.in_session(session)[0], 404, "without [state] a session ends with its host")
    print(f"    {records} records of three hosts in one chain")


def forms(folder, _other):
    """Files in a form of a later version, one after the other. Those of state and of logins have tests in their crates."""
    site, token = with_pinned(folder)
    with site.serves(token=token) as host:
        host.finishes_task("sum")
    lock, layout = site.config / "toolcell.lock", site.data / ".local" / "share" / "toolcell" / "store" / "oci-layout"
    for file, before, after, says in (
        (site.manifest, "version = 1", "version = 2", "version = 2"),
        (site.manifest, "[http]", "[http]\nof_a_later_version = 1", "of_a_later_version"),
        (site.config / "tokens.jsonl", "{", '{"of_a_later_version":1,', "of_a_later_version"),
        (lock, "version = 1", "version = 2", "version is not 1"),
    ):
        with changed(file, before, after):
            said = site.run("serve", "--http", "--locked", codes=(1,))
            check(says in said, f"{file.name} with {after!r} keeps a host from starting, which says why", said)
    with changed(layout, "1.0.0", "2.0.0"):
        said = site.run("store", "verify", codes=(1,))
        check("is not of version 1.0.0" in said, "a store of another form is refused", said)
        with site.serves(token=token) as host:
            status = json.loads(site.run("status", "--json", codes=(1,)))[0]
            equal([one["component"] for one in status["left_out"]], ["echo"], "its component is left out")
            equal(host.call("version"), "a", "others serve")
    task = next((site.data / "state" / "tasks").glob("*/" + 32 * "?"))
    task.write_bytes(task.read_bytes().replace(b"toolcell-task-2", b"toolcell-task-9", 1))
    with site.serves(token=token):
        check(site.run("status", "--json", codes=(0, 1)), "the host serves")
    kept = [path for path in (site.data / "state" / "tasks").glob("*/" + task.name) if b"toolcell-task-9" in path.read_bytes()]
    check(kept, "a task of a later form is left until its time is over")


@contextlib.contextmanager
def changed(file, before, after):
    """Has a file say something else meanwhile."""
    kept = file.read_text()
    check(before in kept, f"{file.name} has {before!r}")
    file.write_text(kept.replace(before, after, 1))
    yield
    file.write_text(kept)


def replicas(folder, other):
    """Two versions on one Valkey server, and a roll."""
    with Valkey(folder / "valkey") as valkey:
        old, new = (Site(folder / name, valkey.lines("tools"), tokens=False) for name in ("old", "new"))
        with contextlib.ExitStack() as stack:
            stays = stack.enter_context(new.serves(locked=False))
            with old.serves(other, locked=False) as goes:
                session, asked, done = goes.session(), goes.asks(), goes.finishes_task("sum")
                equal(asked["result"]["resultType"], "input_required", "a call asks")
                key = {"meta": {"toolcell/requestKey": "one"}}
                equal(goes.call("counter_add", {"name": "n", "by": 2}, **key), stays.call("counter_add", {"name": "n", "by": 2}, **key),
                      "a request with a key runs once, and its answer is kept for both")
                equal((goes.counts("n", 1), stays.counts("n", 1)), (3, 4), "both count in one state")
                equal(stays.in_session(session), (200, "a"), "a session of one is served by the other")
                said = goes.call("version")
                check("too many calls" in said, "a rate is one for both", said)
                runs = goes.begins_task("rest", 3600)
                equal(stays.task(runs)[0], "working", "both know a task")
                in_time("its replica ends", lambda: goes.end() or goes.process.poll() is not None)
            equal(stays.task(runs)[0], "failed", "a task ends with its replica")
            equal(stays.task(done), ("completed", "computed sum"), "the result of one that has ended stays")
            equal(stays.in_session(session)[0], 200, "the session goes on")
            equal(confirmed(stays.asks(asked)), True, "a question of the one that is gone is answered")
            equal(stays.counts("n", 1), 5, "state stays")
            with old.serves(other, locked=False) as back:
                equal(back.in_session(session)[0], 200, "the way back: the session goes on")
                equal(back.counts("n", 1), 6, "the way back: state stays")
                equal(back.call("counter_add", {"name": "n", "by": 2}, **key), '{"name":"n","value":2}', "and so do kept answers")


def clocks(folder, _other):
    """Replicas whose clocks differ."""
    compiler = shutil.which("cc")
    if not compiler:
        raise Missing("no C compiler for a clock that differs")
    (folder / "clock.c").write_text(CLOCK)
    with Valkey(folder / "valkey") as valkey:
        sites = {name: Site(folder / name, valkey.lines("tools"), tokens=False) for name in ("right", "near", "far")}
        ahead = {}
        for name, seconds in (("near", NEAR_S), ("far", FAR_S)):
            library = folder / f"{name}.so"
            subprocess.run([compiler, "-shared", "-fPIC", f"-DAHEAD_S={seconds}", "-o", library, folder / "clock.c", "-ldl"], check=True)
            ahead[name] = {"LD_PRELOAD": str(library)}
        with (sites["right"].serves(locked=False) as right, sites["near"].serves(locked=False, **ahead["near"]) as near,
              sites["far"].serves(locked=False, **ahead["far"]) as far):
            session, asked, done = right.session(), right.asks(), right.finishes_task("sum")
            equal(near.in_session(session), (200, "a"), "a clock that is minutes ahead serves the session")
            equal(far.in_session(session)[0], 404, "one that is past `session_time` has none of that id")
            refused = "params.requestState has expired: call the tool again without it"
            equal(far.asks(asked).get("error", {}).get("message"), refused, "one that is past `ask_wait` refuses the answer")
            equal(confirmed(near.asks(asked)), True, "one within `ask_wait` takes it")
            for replica in (right, near, far):
                said = replica.call("version")
                check("too many calls" in said, "rates follow the server's clock", said)
                equal(replica.task(done), ("completed", "computed sum"), "so do tasks")
            equal([replica.counts("n", 1) for replica in (right, near, far)], [1, 2, 3], "state has no time")


def snapshot(folder, _other):
    """State of tools on Valkey, copied and brought back as the page says."""
    with Valkey(folder / "first", "--appendonly", "yes") as first:
        site = Site(folder / "site", first.lines("tools"), tokens=False)
        with site.serves(locked=False) as host:
            equal(host.counts("n", 5), 5, "a counter counts")
            done = host.finishes_task("sum")
            equal(first.ask("SAVE"), "+OK", "the server writes its memory")
            equal(host.counts("n", 1), 6, "it counts on")
    (folder / "second").mkdir()
    shutil.copyfile(folder / "first" / "dump.rdb", folder / "second" / "dump.rdb")
    with Valkey(folder / "second", "--appendonly", "no") as second:
        equal(second.ask("CONFIG SET appendonly yes"), "+OK", "the log is made anew")
        site.manifest.write_text(site.manifest.read_text().replace(f":{first.port}\"", f":{second.port}\""))
        with site.serves(locked=False) as host:
            equal(host.counts("n", 1), 6, "state is that of the copy")
            equal(host.task(done), ("completed", "computed sum"), "so are results of tasks")
            in_time("the log is whole", lambda: not second.writes_log())
    with Valkey(folder / "second", "--appendonly", "yes") as third:
        site.manifest.write_text(site.manifest.read_text().replace(f":{second.port}\"", f":{third.port}\""))
        with site.serves(locked=False) as host:
            equal(host.counts("n", 1), 7, "the log has it all")


def revoked(folder, _other):
    """Tokens that were revoked after the backup."""
    with Valkey(folder / "valkey") as valkey:
        for name, lines, status in (("alone", "", 200), ("shared", valkey.lines("tools"), 401)):
            site = Site(folder / name, lines)
            token = site.token("ann")
            with site.serves(locked=False, token=token) as host:
                host.finishes_task("sum")
                site.run("lock")
                site.types("back up", grows=True)
                site.run("token", "revoke", "ann")
                in_time("the token is revoked", lambda: host.session_status() == 401)
                if lines:
                    in_time("the server has it", lambda: valkey.ask("KEYS tools:1:set:*") == "*1")
            site.types("restore")
            with site.serves(locked=False, token=token) as host:
                equal(host.session_status(), status, f"the token that is back in its file, {name}")


PARTS = {part.__name__: part for part in (backup, versions, forms, replicas, clocks, snapshot, revoked)}


def main():
    reader = argparse.ArgumentParser(usage=__doc__, add_help=False, allow_abbrev=False)
    reader.add_argument("--other", type=Path, default=BINARY)
    reader.add_argument("--all", action="store_true")
    reader.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART")
    asked = reader.parse_args()
    other = asked.other.resolve()
    for binary in (BINARY, other):
        if not binary.exists():
            sys.exit(f"there is no {binary.name}: make build, or set TOOLCELL_BIN")
    if sorted(blocks()) != ["back up", "look", "restore"]:
        sys.exit(f"other blocks than expected are marked in {PAGE.relative_to(ROOT)}: {', '.join(blocks())}")
    failed = left_out = 0
    for name in asked.parts or PARTS:
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="toolcell-operating-") as folder:
            try:
                PARTS[name](Path(folder), other)
                said = "ok"
            except Missing as why:
                left_out, said = left_out + 1, f"left out: {why}"
            except Failed as problem:
                failed, said = failed + 1, f"FAILED\n  {problem}"
        print(f"{name}: {said} ({time.monotonic() - began:.1f} s)", flush=True)
    ran = len(asked.parts or PARTS)
    print(f"{ran - failed - left_out} passed, {failed} failed, {left_out} left out")
    sys.exit(1 if failed or (asked.all and left_out) else 0)


if __name__ == "__main__":
    main()
