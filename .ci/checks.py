#!/usr/bin/env python3
"""Runs what `.ci/checks.toml` names: the gate, which holds for every change, and parts, which hold for what they depend on.

    .ci/checks.py list                    each part, and whether its note is current
    .ci/checks.py parts [NAME…] [--stale] runs parts and writes their notes: `make check-all`
    .ci/checks.py gate                    runs the gate, then parts that are due, while there is time: `.ci/run`
    .ci/checks.py --self-test             tries the rules on samples

A part's note, `.ci/notes/NAME.json`, holds the hash of the files that the part depends on. It is written after the part has
passed, if these files are committed. Commit it with them. The note also names the versions of the tools, for readers.

The gate runs all of its steps even if one fails, but for those after a failed `make run`. Neighbours that say `beside` run at
the same time, since each waits for half of its time. Then parts without a current note
run, overdue ones first and the others in an order that the commit's hash turns, as long as less than an hour has passed and
the part's `minutes` end within eighty.
A part that is left out is overdue when more than 30 commits have changed its files since its note, and fails the run.
"""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import datetime
import hashlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / ".ci" / "checks.toml"
NOTES = Path(".ci") / "notes"
# Seconds after which the gate begins no further part, and after which no part may still run.
PARTS_BEGIN_S = 3600
PARTS_END_S = 4800
# Commits that may change a part's files before the part has to run.
COMMITS_MAX = 30
TOOLS = (["rustc", "--version"], ["cargo", "--version"], ["python3", "--version"], ["node", "--version"], ["cc", "--version"])
# Steps behind this one use what it builds.
BUILDS = "run"
# Lines of failed tests, and last lines of each failed step, that stand once more at the end.
FAILED_TEST_LINES = 80
LAST_LINES = 20
FAILED_TEST = re.compile(r"^---- \S+ stdout ----$")
TEST_RESULT = re.compile(r"^test result: .*? (\d+) passed; (\d+) failed")


@dataclasses.dataclass
class Part:
    """One part of `make check-all`."""

    name: str
    about: str
    command: str
    paths: list
    # How long it takes on a busy machine.
    minutes: int

    def fits(self, passed_s):
        """True if the gate may begin it after so many seconds."""
        return passed_s < PARTS_BEGIN_S and passed_s + self.minutes * 60 <= PARTS_END_S

    def digest(self):
        """The hash of its definition and of all files it depends on, as the index of git has them."""
        listed = git("ls-files", "-s", "-z", "--", *self.paths)
        return hashlib.sha256(json.dumps([self.command, self.paths, listed]).encode()).hexdigest()

    def note(self):
        try:
            return json.loads((ROOT / NOTES / f"{self.name}.json").read_text("utf-8"))
        except (OSError, ValueError):
            return None

    def current(self):
        note = self.note()
        return note is not None and note.get("paths") == self.digest()

    def commits(self):
        """Commits that have changed its files since the last one that changed its note, or since the table of parts is there."""
        noted = git("log", "-1", "--format=%H", "--", str(NOTES / f"{self.name}.json")).strip()
        since = noted or git("log", "--diff-filter=A", "--format=%H", "--", ".ci/checks.toml").split()[-1]
        return int(git("rev-list", "--count", f"{since}..HEAD", "--", *self.paths))

    def changed(self):
        """Files of its own that are not committed."""
        return git("status", "--porcelain", "--", *self.paths).splitlines()

    def write_note(self, folders):
        about = {"paths": self.digest(), "command": self.command, "tools": versions(), "when": today()}
        for folder in folders:
            place = folder / NOTES / f"{self.name}.json"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n", "utf-8")


@dataclasses.dataclass
class Ran:
    """One step that has run, with what it took. CPU seconds are those of all processes that it waited for."""

    name: str
    status: int
    seconds: float
    cpu_seconds: float
    passed: int = 0
    failed: int = 0
    # What it printed, as far as that says why it failed.
    why: str = ""


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def today():
    return datetime.datetime.now(datetime.timezone.utc).date().isoformat()


def versions():
    found = []
    for command in TOOLS:
        try:
            said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        except OSError:
            continue
        found.extend(said.splitlines()[:1])
    return found


def table():
    read = tomllib.loads(TABLE.read_text("utf-8"))
    parts = [Part(**part) for part in read["part"]]
    return read["gate"], parts


def readme_commands(text):
    """The commands of the README's first block of shell, without their comments."""
    block = re.search(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [re.sub(r" *#.*", "", line) for line in block[1].splitlines()] if block else []
    return [line for line in lines if line]


def run(name, command, environment=None, held=False):
    """Runs one command of the shell, shows what it prints, and counts the results of tests in it. What it prints is `held` until
    it has ended where others run beside it."""
    print(f"\nci: {name}: {command}", flush=True)
    began = time.monotonic()
    ran = Ran(name, 1, 0.0, 0.0)
    lines = []
    with subprocess.Popen(
        command, shell=True, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True, text=True, errors="replace",
    ) as process:  # fmt: skip
        CHILDREN.append(process)
        for line in process.stdout:
            lines.append(line)
            if not held:
                print(line, end="", flush=True)
            if found := TEST_RESULT.match(line):
                ran.passed += int(found[1])
                ran.failed += int(found[2])
        # Of this process alone: others may run beside it.
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = ran.status = os.waitstatus_to_exitcode(status)
        CHILDREN.remove(process)
    ran.seconds = time.monotonic() - began
    ran.cpu_seconds = used.ru_utime + used.ru_stime
    if ran.status:
        ran.why = why(lines)
    how = "passed" if ran.status == 0 else f"FAILED with {ran.status}"
    said = f"\nci: {name} printed:\n{''.join(lines)}" if held else ""
    print(f"{said}ci: {name} {how} after {ran.seconds:.0f} s", flush=True)
    return ran


def why(lines):
    """The lines that say why a step failed: what failed tests of cargo printed, and the step's last lines."""
    shown, within = [], False
    for line in lines:
        if FAILED_TEST.match(line):
            within = True
        elif TEST_RESULT.match(line) or line == "failures:\n":
            within = False
        if within:
            shown.append(line)
    last = lines[-LAST_LINES:]
    shown = shown[:FAILED_TEST_LINES]
    return "".join([*shown, "[…]\n", *last] if shown else last)


# Steps that run. Each has a session of its own, which ends with this program.
CHILDREN = []


def end(*_):
    for process in CHILDREN:
        try:
            os.killpg(process.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
    sys.exit(1)


def ran_table(all_ran):
    lines = [f"{'step':<16}{'':8}{'seconds':>9}{'CPU s':>9}"]
    for ran in all_ran:
        lines.append(f"{ran.name:<16}{'passed' if ran.status == 0 else 'FAILED':<8}{ran.seconds:>9.0f}{ran.cpu_seconds:>9.0f}")
    lines.append(f"{'all':<24}{sum(ran.seconds for ran in all_ran):>9.0f}{sum(ran.cpu_seconds for ran in all_ran):>9.0f}")
    return "\n".join(lines)


def in_turn(parts, commit):
    """Overdue parts first, then the others. The commit's hash says with which of them each list begins."""
    start = int(commit, 16)
    overdue, due = [], []
    for part in parts:
        (overdue if part.commits() > COMMITS_MAX else due).append(part)
    turned = []
    for some in (overdue, due):
        at = start % len(some) if some else 0
        turned += some[at:] + some[:at]
    return turned


def groups(steps):
    """The steps in order. Neighbours with `beside = true` are one group, and run at the same time."""
    found = []
    for step in steps:
        if step.get("beside") and found and found[-1][0].get("beside"):
            found[-1].append(step)
        else:
            found.append([step])
    return found


def gate(options):
    began = time.monotonic()
    steps, parts = table()
    wanted = [step["readme"] for step in steps if "readme" in step]
    stands = readme_commands((ROOT / "README.md").read_text("utf-8"))
    if stands != wanted:
        sys.exit(f'ci: README\'s first block of shell is "{" ; ".join(stands)}", and the gate runs "{" ; ".join(wanted)}"')
    keep = options.keep or ROOT
    all_ran, skipped = [], []
    for group in groups(steps):
        if any(ran.name == BUILDS and ran.status for ran in all_ran):
            skipped += [step["name"] for step in group]
            continue

        def run_step(step, held=len(group) > 1):
            # One run shows every failure: make goes on with the targets that need nothing of one that failed.
            environment = {**os.environ, "MAKEFLAGS": "k"}
            if step["name"] == BUILDS and options.home:
                environment["HOME"] = str(options.home)
            return run(step["name"], step.get("command") or step["readme"], environment, held)

        with concurrent.futures.ThreadPoolExecutor(len(group)) as beside:
            all_ran += beside.map(run_step, group)
        write_times(keep, all_ran)
    gate_s = time.monotonic() - began
    failed = [ran.name for ran in all_ran if ran.status]
    left_out = []
    stale = [part for part in parts if not part.current()]
    if failed:
        left_out = stale
    else:
        for part in in_turn(stale, git("rev-parse", "HEAD").strip()):
            if not part.fits(time.monotonic() - began):
                left_out.append(part)
                continue
            ran = run(part.name, part.command)
            all_ran.append(ran)
            write_times(keep, all_ran)
            if ran.status == 0:
                part.write_note({ROOT, keep})
            else:
                failed.append(part.name)
    print(f"\n{ran_table(all_ran)}\nci: the gate took {gate_s:.0f} s, of {os.cpu_count()} CPUs", flush=True)
    for name in skipped:
        print(f"not run: {name}, because make run failed")
    for part in left_out:
        commits = part.commits()
        print(f"not run: {part.name}, for {commits} commits")
        if commits > COMMITS_MAX and part.name not in failed:
            failed.append(part.name)
    for ran in all_ran:
        if ran.status:
            print(f"\nci: {ran.name} failed, and printed:\n{ran.why}")
    if failed:
        print(f"ci: failed: {', '.join(failed)}")
    passed_tests, failed_tests = sum(ran.passed for ran in all_ran), sum(ran.failed for ran in all_ran)
    print(f"{passed_tests} passed, {failed_tests} failed", flush=True)
    return 1 if failed else 0


def write_times(folder, all_ran):
    place = folder / "target" / "ci-times.json"
    place.parent.mkdir(exist_ok=True)
    times = [{name: value for name, value in dataclasses.asdict(ran).items() if name != "why"} for ran in all_ran]
    place.write_text(json.dumps(times, indent=2) + "\n", "utf-8")


def check_all(options):
    _, parts = table()
    unknown = set(options.names) - {part.name for part in parts}
    if unknown:
        sys.exit(f"no part is {', '.join(sorted(unknown))}; .ci/checks.py list prints them")
    chosen = [part for part in parts if (not options.names or part.name in options.names) and not (options.stale and part.current())]
    if not chosen:
        print("every note is current")
        return 0
    all_ran = []
    for part in chosen:
        ran = run(part.name, part.command)
        all_ran.append(ran)
        if ran.status:
            continue
        if part.changed():
            print(f"ci: no note for {part.name}: files that it depends on are not committed", flush=True)
        else:
            part.write_note({ROOT})
    print(f"\n{ran_table(all_ran)}", flush=True)
    return 1 if any(ran.status for ran in all_ran) else 0


def show(_):
    for part in table()[1]:
        note = part.note()
        state = "current" if part.current() else f"stale, for {part.commits()} commits" if note else "never run"
        print(f"{part.name:<16}{state:<24}{part.about}")
    return 0


def self_test():
    assert readme_commands("a\n```sh\nmake run    # serves\nmake test\n```\n```sh\nmake x\n```\n") == ["make run", "make test"]
    assert readme_commands("no block") == []
    steps, parts = table()
    names = [step["name"] for step in steps] + [f"part {part.name}" for part in parts]
    assert len(set(names)) == len(names), "two steps or two parts have one name"
    for part in parts:
        assert git("ls-files", "--", *part.paths), f"{part.name} depends on no file"
        assert all(git("ls-files", "--", path) for path in part.paths if not path.startswith(":!")), f"a path of {part.name} names no file"
        assert len(part.digest()) == 64
    found = TEST_RESULT.match("test result: ok. 12 passed; 3 failed; 0 ignored")
    assert found and found.groups() == ("12", "3")
    first = Part("a", "", "", [".ci/checks.py"], 20)
    second = Part("b", "", "", [".ci/checks.toml"], 1)
    assert [first.fits(at) for at in (3599, 3600, 3601)] == [True, False, False]
    assert not Part("c", "", "", [], 30).fits(3001)
    assert {part.name for part in in_turn([first, second], "1")} == {"a", "b"}
    named = [{"name": "a"}, {"name": "b", "beside": True}, {"name": "c", "beside": True}, {"name": "d"}]
    assert [[step["name"] for step in group] for group in groups(named)] == [["a"], ["b", "c"], ["d"]]
    with contextlib.redirect_stdout(io.StringIO()):
        ran = run("a sample", "echo 'test result: ok. 2 passed; 0 failed'; exit 3", held=True)
    assert (ran.status, ran.passed) == (3, 2)
    printed = "a\n---- one stdout ----\nwhy\n\nfailures:\n    one\ntest result: FAILED. 0 passed; 1 failed\n" + "b\n" * LAST_LINES
    assert ran.why.startswith("test result") and why(printed.splitlines(keepends=True)).startswith("---- one stdout ----\nwhy\n\n[…]\nb\n")
    print("ci: the rules hold on the samples")
    return 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    commands.add_parser("list", help="each part, and whether its note is current").set_defaults(does=show)
    one = commands.add_parser("parts", help="run parts and write their notes")
    one.add_argument("names", nargs="*", metavar="NAME", help="these alone [default: all]")
    one.add_argument("--stale", action="store_true", help="only parts whose note is not current")
    one.set_defaults(does=check_all)
    whole = commands.add_parser("gate", help="run the gate, then parts that are due")
    whole.add_argument("--home", type=Path, help="HOME of the first command, as a new user has it")
    whole.add_argument("--keep", type=Path, help="the folder that keeps times and notes [default: this clone]")
    whole.set_defaults(does=gate)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    return options.does(options)


if __name__ == "__main__":
    sys.exit(main())
