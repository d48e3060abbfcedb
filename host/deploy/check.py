#!/usr/bin/env python3
"""Installs every package of `make dist` in a clean folder or root and serves the examples from it: `make dist-check`.

    host/deploy/check.py [--packages FOLDER] [--target TARGET] [--only NAME]… [--twice | --builds]

Packages for a processor that this machine does not have (`--target`) are looked into, and nothing of them is run.
`--twice` packs the binary once more and compares all bytes. `--builds` builds two binaries from two folders and compares
these. Roots of their own need to be root; without, the .deb and the image are only unpacked and looked into, and stderr
says so. Needs binutils, npm, and what make guests builds.
"""

import argparse
import functools
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

import build
import crates
import dist
import elf
import image
import project
import share
import tools
from archive import PROGRAM, Entry, tar, zipped
from session import examples, served

# What every system with a C library has; Debian's package of it has them all.
LIBRARIES = {*image.LIBRARIES, *(Path(platform.loader).name for platform in project.PLATFORMS.values())}
SECURITY_MAX = 2.0


# An API of one operation.
DOCUMENT = {
    "openapi": "3.1.0", "info": {"title": "clock", "version": "1"}, "servers": [{"url": "https://api.example.com"}],
    "paths": {"/now": {"get": {"operationId": "now", "summary": "The time", "responses": {"200": {"description": "It"}}}}},
}  # fmt: skip


class Check:
    """What all checks share: the packages, the examples, a folder for each."""

    def __init__(self, folder, scratch, platform):
        self.folder, self.scratch, self.platform = folder, scratch, platform
        self.version = project.version()
        # Compiled once for all packages: the same program compiles to the same code.
        self.environment = os.environ | {
            "TOOLCELL_CODE_CACHE": str(scratch / "code"), "XDG_STATE_HOME": str(scratch / "state"), "XDG_RUNTIME_DIR": str(self.empty("run")),
        }

    @functools.cached_property
    def manifest(self):
        """That of the examples."""
        return examples(self.scratch / "examples")

    def empty(self, name):
        """A new folder."""
        folder = self.scratch / name
        folder.mkdir()
        return folder

    def file(self, pattern):
        """The one package of this name."""
        found = list(self.folder.glob(pattern))
        assert len(found) == 1, f"{self.folder} has {len(found)} files {pattern}: make dist"
        return found[0]

    def deb(self):
        return self.file(f"*_{self.platform.debian}.deb")

    def wheel(self):
        return self.file(f"*-py3-none-{self.platform.wheel}.whl")

    def npm(self):
        """The npm package of the platform."""
        return self.file(f"toolcell-linux-{self.platform.node}-*.tgz")

    def image(self):
        return self.file(f"*-{self.platform.oci}.oci.tar")

    def serves(self, command, **options):
        """The examples are served by this program, in a folder where nothing else is."""
        names = served([*command, "serve", "--manifest", self.manifest], env=self.environment, **options)
        print(f"  serves {len(names)} tools: {' '.join(map(str, command))}")

    def finds_components(self, command, folder):
        """The program finds what comes with it: a script runs, and a document of an API becomes a component."""
        (folder / "toolcell.toml").write_text("version = 1\n\n[server]\nname = \"packed\"\n\n[code]\ncalls = []\n", "utf-8")
        (folder / "api.json").write_text(json.dumps(DOCUMENT), "utf-8")
        options = {"cwd": folder, "env": self.environment}
        assert "42" in run(*command, "call", "run_code", json.dumps({"code": "return 6 * 7"}), **options)
        run(*command, "add", "api.json", "--name", "clock", "--yes", **options)
        assert "clock_now" in run(*command, "list", **options)

    def unpacked(self):
        """The tarball, unpacked."""
        folder = self.scratch / "tarball"
        if not folder.exists():
            with tarfile.open(self.file(f"{project.NAME}-*-{self.platform.target}.tar.gz")) as archive:
                archive.extractall(folder, filter="data")
        return folder / f"{project.NAME}-{self.version}-{self.platform.target}"

    def binary(self):
        """The program in the tarball. Every other package has the same: see `digests`."""
        return self.unpacked() / "bin" / project.NAME


def run(*words, **options):
    """Runs a command, which must succeed. Gives what it prints."""
    said = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **options)
    if said.returncode:
        raise SystemExit(f"dist-check: {' '.join(map(str, words))}: ended with {said.returncode}\n{said.stdout}{said.stderr}")
    return said.stdout


def recipe(_):
    """The recipe's own decisions: which texts fulfil a licence, and the same archive in whichever order files come."""
    for expression, texts in [
        ("MIT OR Apache-2.0", ["MIT"]), ("Apache-2.0 WITH LLVM-exception", ["Apache-2.0", "LLVM-exception"]), ("(Zlib OR MIT) AND MIT", None),
        ("CC0-1.0", None), ("Unicode-3.0 OR MIT", ["MIT"]), ("MIT AND Unicode-3.0", None), ("", None),
    ]:
        assert crates.choice(expression) == texts, (expression, crates.choice(expression))
    entries = [Entry("b/c", b"1"), Entry("a", b"2", PROGRAM), Entry("b", None, 0o700, 7)]
    assert tar(entries, 9) == tar(entries[::-1], 9) and zipped(entries[:2]) == zipped(entries[:2])
    with tarfile.open(fileobj=io.BytesIO(tar(entries, 9, "p/"))) as archive:
        assert [(each.name, each.mode, each.uid, each.mtime) for each in archive] == [("p/a", 0o755, 0, 9), ("p/b", 0o700, 7, 9), ("p/b/c", 0o644, 0, 9)]


def digests(check):
    """Each package is what SHA256SUMS says, and each holds the same program."""
    listed = dict(reversed(line.split()) for line in (check.folder / "SHA256SUMS").read_text("ascii").splitlines())
    assert listed.keys() == {file.name for file in check.folder.iterdir()} - {"SHA256SUMS"}, listed
    for name, digest in listed.items():
        assert hashlib.sha256((check.folder / name).read_bytes()).hexdigest() == digest, name
    program = check.binary().read_bytes()
    with zipfile.ZipFile(check.wheel()) as archive:
        assert archive.read(f"{project.NAME}-{check.version}.data/scripts/{project.NAME}") == program
    assert part(check.npm(), f"package/bin/{project.NAME}") == program
    run("dpkg-deb", "-x", check.deb(), check.scratch / "deb-program")
    assert (check.scratch / "deb-program/usr/bin" / project.NAME).read_bytes() == program


def binary(check):
    """The program is stripped, runs on old C libraries, names no machine, and tells its crates."""
    program = check.binary()
    floor = [int(part) for part in build.GLIBC.split(".")]
    assert elf.glibc(program) <= floor, f"needs glibc {elf.glibc(program)}"
    assert elf.needed(program) <= LIBRARIES, elf.needed(program)
    assert not elf.has_symbols(program) and not any(name.startswith(".debug") for name in elf.sections(program))
    content = program.read_bytes()
    cargo_home = build.cargo_home()
    # Sources of crates are named otherwise; host/registry is a crate of ours.
    for path in (project.ROOT, Path.home(), cargo_home, build.target_folder(), "cargo/registry/src"):
        assert str(path) == "/" or f"{path}/".encode() not in content, f"the program names {path}"
    found, own = crates.used(project.ROOT, check.platform.target)
    listed = {(crate.name, crate.version) for crate in found.values() if crate.runs}
    # cargo-auditable asks cargo for the features of the whole workspace, so it names more: macros, and crates of the tests.
    audited = elf.audited(program)
    assert listed <= audited, listed - audited
    known = {(crate["name"], crate["version"]) for crate in crates.metadata(project.ROOT, check.platform.target)["packages"]}
    assert audited <= known, audited - known
    whole, _ = crates.with_components(project.ROOT, check.platform.target)
    listed = {(crate.name, crate.version) for crate in whole.values() if crate.runs}
    bom = json.loads(check.file(f"{project.NAME}-*-{check.platform.target}.cdx.json").read_bytes())
    named = {(component["name"], component["version"]) for component in bom["components"] if component["scope"] == "required"}
    embedded = {(name, version) for name, version, *_ in crates.EMBEDDED}
    assert named | {(project.NAME, check.version)} == listed | embedded, (named ^ listed) - embedded
    print(f"  glibc {'.'.join(map(str, elf.glibc(program)))}, {len(content):,} bytes, {len(listed)} crates in the program and in the SBOM")


def platform(check):
    """The program and each package that says so are for the same processor, and the image has its C library."""
    wanted = check.platform
    assert elf.machine(check.binary().read_bytes()) == wanted.machine
    assert run("dpkg-deb", "--field", check.deb(), "Architecture") == f"{wanted.debian}\n"
    with zipfile.ZipFile(check.wheel()) as archive:
        tags = archive.read(f"{project.NAME}-{check.version}.dist-info/WHEEL").decode("ascii")
    assert re.findall("^Tag: (.*)$", tags, re.MULTILINE) == [f"py3-none-{wanted.wheel}"], tags
    about = json.loads(part(check.npm(), "package/package.json"))
    assert (about["os"], about["cpu"], about["libc"]) == (["linux"], [wanted.node], ["glibc"]), about
    launcher = json.loads(part(check.file("toolcell-[0-9]*.tgz"), "package/package.json"))
    assert launcher["optionalDependencies"][about["name"]] == about["version"], launcher

    def blob(descriptor):
        return part(check.image(), f"blobs/{descriptor['digest'].replace(':', '/')}")

    listed = json.loads(part(check.image(), "index.json"))["manifests"][0]
    manifest = json.loads(blob(listed))
    config = json.loads(blob(manifest["config"]))
    assert listed["platform"] == {key: config[key] for key in ("architecture", "os")} == {"architecture": wanted.oci, "os": "linux"}, listed
    machines = {}
    for layer in manifest["layers"]:
        with tarfile.open(fileobj=io.BytesIO(blob(layer))) as archive:
            machines |= {file.name: elf.machine(archive.extractfile(file).read()) for file in archive if file.isfile()}
    of_programs = {name: machine for name, machine in machines.items() if machine is not None}
    assert {f"usr/bin/{project.NAME}", wanted.loader, f"lib/{wanted.multiarch}/libc.so.6"} <= of_programs.keys(), of_programs
    assert set(of_programs.values()) == {wanted.machine}, of_programs


def tarball(check):
    """Unpacked, it serves; its pages and scripts are there and can be read."""
    folder = check.unpacked()
    check.serves([folder / "bin" / project.NAME], cwd=check.empty("tarball-here"))
    check.finds_components([folder / "bin" / project.NAME], check.empty("tarball-components"))
    pages = {page.name: page.read_text("utf-8") for page in (folder / "share/man/man1").iterdir()}
    for command in ("", "-serve", "-call", "-policy-explain"):
        assert pages[f"toolcell{command}.1"].count(".SH") >= 3, command
    assert "toolcell-man.1" not in pages
    run("bash", "-n", folder / "share/bash-completion/completions/toolcell")
    licences = (folder / "share/doc/toolcell/THIRD-PARTY-LICENSES.txt").read_text("utf-8")
    assert re.search(r"^wasmtime \S+ \(Apache-2.0 WITH LLVM-exception\)$", licences, re.MULTILINE)
    assert "uPlot 1.6.32 (MIT)\n" in licences and "Copyright (c) 2022 Leon Sorokin" in licences


def wheel(check):
    """pip installs it without an index; uvx runs it without installing."""
    file = check.wheel()
    environment = check.empty("venv")
    run(sys.executable, "-m", "venv", environment)
    run(environment / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", file)
    check.serves([environment / "bin/toolcell"], cwd=check.empty("wheel-here"))
    check.finds_components([environment / "bin/toolcell"], check.empty("wheel-components"))
    shown = run(environment / "bin/python", "-m", "pip", "show", "--files", "toolcell")
    assert "licenses/LICENSE" in shown and f"Version: {check.version}" in shown
    uv = tools.uv()
    variables = check.environment | {"UV_CACHE_DIR": str(check.empty("uv")), "UV_PYTHON_DOWNLOADS": "never"}
    command = [uv / "bin/uvx", "--offline", "--no-index", "--python", sys.executable, "--from", file, "toolcell"]
    assert run(*command, "--version", env=variables) == f"toolcell {check.version}\n"
    names = served([*command, "serve", "--manifest", check.manifest], env=variables, cwd=check.empty("uvx-here"))
    print(f"  serves {len(names)} tools: uvx")


def npm(check):
    """npm installs both packages, and npx starts the program, which ends with its launcher."""
    folder = check.empty("npm")
    (folder / "package.json").write_text("{}", "ascii")
    files = [check.npm(), check.file("toolcell-[0-9]*.tgz")]
    options = ["--offline", "--no-audit", "--no-fund", "--loglevel=error", "--cache", check.empty("npm-cache")]
    run("npm", "install", *options, *files, cwd=folder)
    assert run("npx", "--no-install", "toolcell", "--version", cwd=folder) == f"toolcell {check.version}\n"
    check.serves(["npx", "--no-install", "toolcell"], cwd=folder)
    check.finds_components(["npx", "--no-install", "toolcell"], folder)
    failed = subprocess.run(["npx", "--no-install", "toolcell", "no-such-command"], cwd=folder, capture_output=True, check=False)
    assert failed.returncode == 2, failed


def deb(check):
    """Installed in a root of its own, it has its user and unit, serves as that user, and goes when it is purged."""
    file = check.deb()
    about = run("dpkg-deb", "--info", file)
    assert f"libc6 (>= {build.GLIBC})" in about and "conffiles" in about
    folder = check.empty("deb")
    run("dpkg-deb", "-x", file, folder)
    unit = folder / "usr/lib/systemd/system/toolcell.service"
    exposure = run("systemd-analyze", "security", "--offline=true", unit).strip().splitlines()[-1]
    score = float(re.search(r": ([\d.]+) ", exposure).group(1))
    assert score <= SECURITY_MAX, exposure
    print(f"  systemd-analyze security: {score}")
    run(folder / "usr/bin/toolcell", "check", folder / "etc/toolcell/toolcell.toml")
    check.finds_components([folder / "usr/bin/toolcell"], check.empty("deb-components"))
    if os.geteuid() != 0:
        print("  LEFT OUT: installing it in a root of its own, which only root can", file=sys.stderr)
        return
    said = run("unshare", "--mount", "--pid", "--fork", "--kill-child", sys.executable, Path(__file__).with_name("check_debian.py"), file, check.manifest.parent)
    print("".join(f"  {line}\n" for line in said.splitlines()), end="")


def service(check):
    """Under a real systemd, of two versions, it has its walls, and an administrator asks it."""
    if os.geteuid() != 0:
        print("  LEFT OUT: starting a systemd, which only root can", file=sys.stderr)
        return
    said = run(sys.executable, Path(__file__).with_name("check_service.py"), check.deb(), check.manifest.parent / "components")
    print("".join(f"  {line}\n" for line in said.splitlines()), end="")


def container(check):
    """The image holds what runs, and nothing else; it runs as nobody, with a root that nobody can write."""
    folder = check.empty("image")
    with tarfile.open(check.image()) as archive:
        archive.extractall(folder / "layout", filter="data")
    if os.geteuid() != 0:
        print("  LEFT OUT: running the image, which only root can without a daemon", file=sys.stderr)
        return
    umoci = tools.umoci()
    listed = run(umoci, "ls", "--layout", folder / "layout").split()
    assert listed == [check.version], listed
    run(umoci, "unpack", "--image", f"{folder / 'layout'}:{check.version}", folder / "bundle")
    config = json.loads((folder / "bundle/config.json").read_text("utf-8"))
    assert config["process"]["user"]["uid"] == config["process"]["user"]["gid"] == image.NOBODY, config["process"]["user"]
    assert config["process"]["args"] == ["/usr/bin/toolcell", "serve"] and config["process"]["cwd"] == "/tools"
    root = folder / "bundle/rootfs"
    programs = [path.relative_to(root) for path in root.rglob("*") if path.is_file() and path.stat().st_mode & 0o111]
    assert all("lib" in str(path) for path in programs if path.name != "toolcell"), programs
    # Nobody reaches the folders of this check, and owns those that tools write.
    for place in (check.scratch, folder, folder / "bundle"):
        place.chmod(0o755)
    tools_folder = examples(folder / "tools").parent
    run("chown", "-R", f"{image.NOBODY}:{image.NOBODY}", tools_folder)
    environment = {"PATH": os.environ["PATH"], **dict(variable.split("=", 1) for variable in config["process"]["env"] if not variable.startswith("PATH="))}
    command = ["unshare", "--mount", "bash", "-ec", IN_IMAGE, "image", root, tools_folder]
    refused = subprocess.run([*map(str, command), "man", "/written"], env=environment, capture_output=True, text=True, check=False)
    assert refused.returncode and "ead-only file system" in refused.stderr, refused
    names = served([*command, "serve"], env=environment)
    print(f"  serves {len(names)} tools: the image, as nobody, with a read-only root")


# As a runtime does it: the root is read-only, /proc, /dev and the tools are mounted, and the process has no privilege.
IN_IMAGE = """
mount --bind "$1" "$1"
mkdir -p "$1/proc" "$1/dev"
mount --bind /proc "$1/proc"
mount --bind /dev "$1/dev"
mount --bind "$2" "$1/tools"
mount -t tmpfs -o uid=65534,gid=65534,mode=700 none "$1/var/lib/toolcell"
mount -o remount,ro,bind "$1"
exec python3 -c '
import os, sys
root, *words = sys.argv[1:]
os.chroot(root)
os.chdir("/tools")
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
os.execv("/usr/bin/toolcell", ["toolcell", *words])' "$1" "${@:3}"
"""


def cargo_install(check):
    """`cargo install` takes the crate as it is: with the artifacts of `make build`, nothing is compiled again."""
    root = check.empty("cargo-install")
    run("cargo", "install", "--quiet", "--locked", "--path", project.ROOT / "host/cli", "--root", root, "--target-dir", build.target_folder(), "--no-track")
    assert run(root / "bin/toolcell", "--version") == f"toolcell {check.version}\n"


def binstall(check):
    """The metadata of `cargo binstall` names the tarball, and the program in it."""
    said = json.loads(run("cargo", "metadata", "--format-version", "1", "--no-deps", "--locked", cwd=project.ROOT))
    package = next(package for package in said["packages"] if package["name"] == project.NAME)
    about = package["metadata"]["binstall"]
    known = {"repo": "https://example.com", "name": project.NAME, "bin": project.NAME, "binary-ext": "", "version": check.version, "target": check.platform.target}
    rendered = {key: re.sub(r"\{ *([\w-]+) *\}", lambda match: known[match.group(1)], about[key]) for key in ("pkg-url", "bin-dir")}
    archive = check.file(rendered["pkg-url"].rpartition("/")[2])
    assert about["pkg-fmt"] == "tgz" and rendered["bin-dir"] in tarfile.open(archive).getnames(), rendered


def make_install(check):
    """`make install PREFIX=` puts everything where a system looks for it, and `--uninstall` takes it away again."""
    prefix = check.empty("prefix")
    install = [sys.executable, Path(__file__).with_name("install.py"), prefix]
    run(*install)
    check.serves([prefix / "bin/toolcell"], cwd=check.empty("prefix-here"))
    check.finds_components([prefix / "bin/toolcell"], check.empty("prefix-components"))
    assert (prefix / "share/man/man1/toolcell-serve.1").exists()
    run(*install, "--uninstall")
    assert not [path for path in prefix.rglob("*") if path.is_file()]


def server_json(check):
    """The entry of the MCP registry fulfils what its schema of 2025-12-11 says of these keys."""
    about = json.loads(check.file("server.json").read_text("utf-8"))
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", about["name"]) and 3 <= len(about["name"]) <= 200
    assert 1 <= len(about["description"]) <= 100 and 1 <= len(about["title"]) <= 100 and len(about["version"]) <= 255
    assert re.fullmatch(r"\d+\.\d+\.\d+", about["version"]) and about["version"] == check.version
    names = {"pypi": "toolcell", "npm": json.loads(part(check.file("toolcell-[0-9]*.tgz"), "package/package.json"))["name"]}
    for package in about["packages"]:
        assert package["transport"] == {"type": "stdio"} and package["version"] == check.version
        assert package["identifier"] == names[package["registryType"]]
        for argument in package["packageArguments"]:
            assert argument["type"] == "positional" and "value" in argument or argument["type"] == "named" and argument["name"].startswith("--")
    # The registry looks for the name in the packages themselves.
    assert json.loads(part(check.file("toolcell-[0-9]*.tgz"), "package/package.json"))["mcpName"] == about["name"]


def part(archive, name):
    """One file of a tarball."""
    with tarfile.open(archive) as opened:
        return opened.extractfile(name).read()


def bundle(check):
    """A bundle of the examples is right for the official tool, which unpacks it to what its description starts."""
    folder = check.empty("bundle")
    run(check.binary(), "bundle", "--manifest", check.manifest, "--output", folder / "examples.mcpb", "--author", "dist-check", env=check.environment)
    mcpb = tools.mcpb()
    run(mcpb, "unpack", folder / "examples.mcpb", folder / "unpacked")
    run(mcpb, "validate", folder / "unpacked/manifest.json")
    assert "examples.mcpb" in run(mcpb, "info", folder / "examples.mcpb")
    server = json.loads((folder / "unpacked/manifest.json").read_text("utf-8"))["server"]["mcp_config"]
    command = [word.replace("${__dirname}", str(folder / "unpacked")) for word in [server["command"], *server["args"]]]
    names = served(command, env=check.environment | server["env"], cwd=folder)
    print(f"  serves {len(names)} tools: the bundle, as its manifest.json says")


def twice(check):
    """The same binary gives the same packages."""
    content, epoch = check.binary().read_bytes(), build.source_date(project.ROOT)
    again = [*dist.packed(check.platform, content, check.binary(), epoch, share.components(build.target_folder())), *dist.common([check.platform], epoch)]
    for name, content in again:
        assert (check.folder / name).read_bytes() == content, f"{name} is another one the second time"
    print(f"  {len(again)} packages, twice the same bytes")


def builds(check):
    """A clone in another folder, with another target folder, gives the same binary."""
    folder = check.empty("a clone elsewhere")
    run("git", "clone", "--quiet", "--no-hardlinks", project.ROOT, folder / "toolcell")
    other = build.build(check.platform.target, folder / "toolcell", folder / "built elsewhere", build.source_date(folder / "toolcell"))
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (check.binary(), other)]
    assert digests[0] == digests[1], digests
    print(f"  two folders, one binary: sha256:{digests[0]}")


CHECKS = (recipe, digests, binary, platform, tarball, wheel, npm, deb, service, container, cargo_install, binstall, make_install, server_json, bundle)
# Those that run nothing of the packages.
LOOKS = (recipe, digests, binary, platform, binstall, server_json, builds)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--packages", type=Path, default=build.target_folder() / "packages", help="the folder of packages")
    parser.add_argument("--target", choices=project.PLATFORMS, default=build.host_target(), help="the packages of this target")
    parser.add_argument("--only", action="append", choices=[check.__name__ for check in CHECKS], help="only this check")
    parser.add_argument("--twice", action="store_true", help="pack twice, and compare")
    parser.add_argument("--builds", action="store_true", help="build in another folder, and compare")
    return parser.parse_args()


def main():
    args = arguments()
    if not (args.packages / "SHA256SUMS").exists():
        raise SystemExit("dist-check: there are no packages yet: make dist")
    is_run = args.target == build.host_target()
    wanted = [check for check in CHECKS if (check.__name__ in args.only if args.only else is_run or check in LOOKS)]
    wanted += [check for check, is_wanted in ((twice, args.twice), (builds, args.builds)) if is_wanted]
    if not is_run and not set(wanted) <= set(LOOKS):
        raise SystemExit(f"dist-check: programs for {args.target} do not run here; these checks do: {' '.join(check.__name__ for check in LOOKS)}")
    with tempfile.TemporaryDirectory(prefix="toolcell-dist-") as scratch:
        check = Check(args.packages.absolute(), Path(scratch), project.PLATFORMS[args.target])
        for one in wanted:
            started = time.monotonic()
            print(f"{one.__name__}: {one.__doc__.partition(chr(10))[0]}", flush=True)
            one(check)
            print(f"  ok, {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
