#!/usr/bin/env python3
"""Installs a .deb under a real systemd, of Debian 12 and of a newer Debian, and does what an administrator does.

    host/deploy/check_service.py FILE.deb EXAMPLES [--suite SUITE]…

EXAMPLES is the folder of the examples' components. Needs root: each systemd is the first process of namespaces of its own.
"""

import argparse
import json
import os
import re
import shutil

import time
import tomllib
from pathlib import Path

from debian_archive import Unreachable
from systemd_machine import SystemdMachine

SUITES = ("bookworm", "trixie")
UNIT = Path("/usr/lib/systemd/system/toolcell.service")
MANIFEST = Path("/etc/toolcell/toolcell.toml")
# As the packaged manifest's examples name it.
COMPONENTS = MANIFEST.parent / "components"
ADMINISTRATOR, STRANGER = 4001, 4002


class Service:
    """The package, installed in a machine."""

    def __init__(self, machine, deb, examples):
        self.machine = machine
        shutil.copy(deb, machine.path("/toolcell.deb"))
        # The packages of the machine are only unpacked, so dpkg knows none of them.
        machine.run("dpkg", "--force-depends", "--install", "/toolcell.deb")
        folder = machine.path(COMPONENTS)
        folder.mkdir(parents=True)
        for name in ("weather", "file_notes"):
            shutil.copy(examples / f"{name}.wasm", folder / f"{name}.wasm")
        self.packaged = self.manifest
        self.group = machine.path("/etc/group").read_text("utf-8").split("\ntoolcell:x:")[1].split(":")[0]

    @property
    def manifest(self):
        return self.machine.path(MANIFEST).read_text("utf-8")

    def write(self, text):
        self.machine.path(MANIFEST).write_text(text, "utf-8")

    def logged(self, pattern):
        """Waits until the journal has it: lines come there later than a command ends."""
        words = ("journalctl", "--no-pager", "--output=cat", "--unit=toolcell")
        return self.machine.until(f"the journal says {pattern}", lambda: re.search(pattern, self.machine.run(*words)))

    def status(self):
        """The state of the one process that serves. Nothing names the manifest: there is only this one."""
        (status,) = json.loads(self.machine.tried("toolcell", "status", "--json").stdout)
        return status

    def restart(self):
        # More starts in a moment than a person would ask for.
        self.machine.tried("systemctl", "reset-failed", "toolcell")
        self.machine.run("systemctl", "restart", "toolcell")

    def as_user(self, number, *words, groups=None):
        """What came of a command of a user who is not root."""
        groups = ["--clear-groups"] if groups is None else ["--groups", groups]
        return self.machine.tried("setpriv", "--reuid", str(number), "--regid", str(number), *groups, "--", *words)


def examples_of(manifest):
    """Each example of the packaged manifest: the lines that begin with # and no space, up to others."""
    lines = manifest.splitlines()
    groups, group = [], []
    for number, line in enumerate([*lines, ""]):
        if re.match(r"#\S", line):
            group.append(number)
        elif group:
            groups.append(group)
            group = []
    for group in groups:
        yield "\n".join(line[1:] if number in group else line for number, line in enumerate(lines)) + "\n"
    yield re.sub(r"^#(\S)", r"\1", manifest, flags=re.MULTILINE)


def walls(service):
    """Inside the unit, the walls are missing that the packaged manifest names, and no others."""
    machine = service.machine
    # A file has all of it when the unit has ended, a journal has not.
    start = "ExecStart=/usr/bin/toolcell walls --json\nStandardOutput=truncate:/walls.json"
    unit = re.sub(r"^ExecStart=.*$", start, machine.path(UNIT).read_text("utf-8"), flags=re.MULTILINE)
    unit = re.sub(r"^(ExecReload|Restart|WatchdogSec)=.*$", "", re.sub(r"^Type=.*$", "Type=oneshot", unit, flags=re.MULTILINE), flags=re.MULTILINE)
    machine.path("/etc/systemd/system/walls.service").write_text(unit, "utf-8")
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "start", "walls.service")
    report = json.loads(machine.path("/walls.json").read_text("utf-8"))
    missing = {wall["wall"] for wall in report["walls"] if wall["state"] == "missing"}
    named = set(tomllib.loads(service.packaged)["server"]["walls_without"])
    assert missing == named, (missing, report)
    print(f"  walls inside the unit: all but {', '.join(sorted(missing))}")


def true_reasons(service):
    """Where a filter refuses the calls that walls are made of, the service does not start, and says that."""
    machine = service.machine
    drop_in = machine.path("/etc/systemd/system/toolcell.service.d")
    drop_in.mkdir()
    (drop_in / "filter.conf").write_text("[Service]\nSystemCallFilter=~landlock_create_ruleset seccomp\nRestart=no\n", "ascii")
    service.write(list(examples_of(service.packaged))[-1])
    machine.run("toolcell", "token", "new", "ann", "--file", "/etc/toolcell/tokens.jsonl")
    machine.run("systemctl", "daemon-reload")
    failed = machine.tried("systemctl", "start", "toolcell")
    assert failed.returncode != 0, failed
    for wall, call in (("landlock", "landlock_create_ruleset"), ("system-calls", "seccomp")):
        service.logged(rf"{wall} \({call}: Operation not permitted .*a filter of system calls around the host refuses it")
    shutil.rmtree(drop_in)
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "reset-failed", "toolcell")
    print("  a filter that refuses landlock is named as what it is")


def packaged_examples(service):
    """Each example of the packaged manifest is right as it stands, alone and with all others."""
    machine = service.machine
    count = 0
    for text in examples_of(service.packaged):
        service.write(text)
        machine.run("setpriv", "--reuid=toolcell", "--regid=toolcell", "--clear-groups", "--", "toolcell", "check", "--no-code-cache", MANIFEST)
        service.restart()
        count += 1
    print(f"  {count} examples of the packaged manifest serve")
    service.write(service.packaged + '[audit]\nfile = "audit.jsonl"\n')
    refused = machine.tried("toolcell", "check", "--no-code-cache", MANIFEST)
    assert refused.returncode == 1 and "/var/lib/toolcell/audit.jsonl" in refused.stdout + refused.stderr, refused
    service.write(list(examples_of(service.packaged))[-1])
    service.restart()


def life(service):
    """Started is serving, a reload of something broken fails and says why, and a stop is in the log."""
    machine = service.machine
    socket = machine.path("/run/toolcell/toolcell.sock")
    service.restart()
    assert socket.is_socket(), "restart came back before it serves"
    status = service.status()
    named = set(tomllib.loads(service.packaged)["server"]["walls_without"])
    assert status["problems"] == [] and {wall["wall"] for wall in status["walls_done_without"]} == named, status
    good = service.manifest
    service.write(good + "[components.nothing]\nsource = 7\n")
    refused = machine.tried("systemctl", "reload", "toolcell")
    assert refused.returncode != 0, "a broken manifest was reloaded"
    service.logged("source")
    assert service.status()["failed"] is not None
    service.write(good)
    machine.run("systemctl", "reload", "toolcell")
    assert service.status()["failed"] is None and service.status()["pid"] == status["pid"]
    watched = machine.run("systemctl", "show", "toolcell", "--property=WatchdogUSec,NotifyAccess")
    assert "WatchdogUSec=1min" in watched, watched
    machine.run("systemctl", "stop", "toolcell")
    service.logged("SIGTERM: the server stops")
    service.logged(r"stopped by SIGTERM, which took \d+ ms")
    machine.run("systemctl", "start", "toolcell")
    print("  start, reload, stop")


def administration(service):
    """Root and members of the group ask the service; strangers are refused; what they did is in the audit."""
    machine = service.machine
    for words in (("status",), ("top", "--once"), ("reload",), ("log-level", "debug")):
        machine.run("toolcell", *words)
        member = service.as_user(ADMINISTRATOR, "toolcell", *words, groups=service.group)
        assert member.returncode == 0, member
        refused = service.as_user(STRANGER, "toolcell", *words)
        assert refused.returncode == 1 and "sudo" in refused.stderr, refused
    audit = machine.path("/var/lib/toolcell/audit.jsonl").read_text("utf-8")
    records = [json.loads(line) for line in audit.splitlines()]
    done = {(record["session"], record["decision"]) for record in records if record["event"] == "console.decided"}
    for who in (0, ADMINISTRATOR):
        assert {(f"terminal of uid {who}", "reload"), (f"terminal of uid {who}", "log-level")} <= done, done
    print("  root and the group toolcell ask it, and the audit has who did what")


def files_of_root(service):
    """What root writes for the service, the service reads."""
    machine = service.machine
    for folder in ("/etc/toolcell", "/var/lib/toolcell"):
        file = f"{folder}/others.jsonl"
        machine.run("toolcell", "token", "new", "bob", "--file", file)
        # A second change needs the lock of the first.
        for words in (("test", "-r", file), ("toolcell", "token", "list", "--file", file)):
            read = machine.tried("setpriv", "--reuid=toolcell", "--regid=toolcell", "--clear-groups", "--", *words)
            assert read.returncode == 0, (file, read)
        assert service.as_user(STRANGER, "test", "-r", file).returncode != 0, file
    machine.run("toolcell", "lock", "--manifest", MANIFEST, "--no-code-cache")
    read = machine.tried("setpriv", "--reuid=toolcell", "--regid=toolcell", "--clear-groups", "--", "test", "-r", MANIFEST.with_suffix(".lock"))
    assert read.returncode == 0, read
    service.restart()
    assert service.status()["problems"] == []
    print("  tokens and locks that root wrote are read")


def broken_parts(service):
    """After a reboot with three broken components all others serve, and what is wrong is said."""
    machine = service.machine
    service.write(service.packaged + """
[audit]
file = "/var/lib/toolcell/audit.jsonl"
[components.weather]
source = "components/weather.wasm"
[components.cut]
source = "components/cut.wasm"
[components.secretless]
source = "components/weather.wasm"
prefix = "s_"
secrets.KEY = { from = "env:NOBODY_SETS_THIS", expose = true }
[components.folderless]
source = "components/file_notes.wasm"
filesystem."/notes" = { path = "/var/lib/toolcell/nowhere", access = "read" }
""")
    components = machine.path(COMPONENTS)
    (components / "cut.wasm").write_bytes((components / "weather.wasm").read_bytes()[:5000])
    service.restart()
    status = service.status()
    assert [component["component"] for component in status["left_out"]] == ["cut", "secretless", "folderless"], status
    assert [component["name"] for component in status["components"]] == ["weather"], status
    machine.run("systemctl", "reload", "toolcell")
    print("  three broken components, and the fourth serves")


CHECKS = (walls, true_reasons, packaged_examples, life, administration, files_of_root, broken_parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("deb", type=Path)
    parser.add_argument("examples", type=Path)
    parser.add_argument("--suite", action="append", choices=SUITES)
    parser.add_argument("--only", action="append", choices=[check.__name__ for check in CHECKS])
    args = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("check_service: only root makes namespaces with a systemd in them")
    for suite in args.suite or SUITES:
        began = time.monotonic()
        try:
            with SystemdMachine(suite) as machine:
                print(f"{suite}: {machine.run('systemctl', '--version').splitlines()[0]}")
                service = Service(machine, args.deb, args.examples)
                for check in CHECKS:
                    if not args.only or check.__name__ in args.only:
                        check(service)
        except Unreachable as problem:
            raise SystemExit(f"check_service: {problem}") from problem
        print(f"  {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
