#!/usr/bin/env python3
"""Builds every package: `make dist`. They are the same bytes for the same commit and the same compilers.

    host/deploy/dist.py [--target TARGET]… [--output FOLDER] [--binary FILE]

The target is this machine's unless some are named; guest-examples/toolchain.sh gets the standard library of another
processor. `--binary` packs a program that is there instead of building one, to try the packaging: such packages are not to
be published, and stderr says so. Each package's time is that of the last commit (or SOURCE_DATE_EPOCH).
"""

import argparse
import hashlib
import shutil
import sys
from pathlib import Path

import build
import crates
import image
import packages
import project
import share
from debian_archive import Unreachable


def packed(platform, binary, runnable, epoch, components, libc=None):
    """All packages of one binary and the components that come with it, as (name, content)."""
    version = project.version()
    found, own = crates.with_components(project.ROOT, platform.target)
    licences, sbom = crates.licences(found), crates.sbom(found, own, epoch)
    documents = [*share.documents(licences, sbom), *share.placed(components)]
    shared = [*share.manual(runnable), *share.completions(runnable), *documents]
    yield packages.tarball(version, platform, binary, shared, epoch)
    yield packages.deb(version, platform, binary, shared, epoch)
    yield packages.wheel(version, platform, binary, share.placed(components), licences, sbom)
    yield packages.npm_platform(version, platform, binary, components, licences, sbom, epoch)
    yield f"{project.NAME}-{version}-{platform.target}.cdx.json", sbom
    try:
        yield image.image(version, platform, binary, documents, epoch, libc)
    except Unreachable as problem:
        print(f"dist: no image: {problem}", file=sys.stderr)


def common(platforms, epoch):
    """The packages that are the same for each platform."""
    version = project.version()
    yield packages.npm(version, platforms, epoch)
    yield packages.server_json(version)


def written(folder, files):
    """Writes the packages and their digests into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    sums = []
    for name, content in files:
        (folder / name).write_bytes(content)
        sums.append(f"{hashlib.sha256(content).hexdigest()}  {name}\n")
        print(f"{len(content):>12,}  {name}")
    (folder / "SHA256SUMS").write_text("".join(sorted(sums, key=lambda line: line.split()[1])), "ascii")
    print(f"{folder}: {len(sums)} files and SHA256SUMS")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--target", action="append", choices=project.PLATFORMS, help="build for this target")
    parser.add_argument("--output", type=Path, help="write the packages here [default: target/packages]")
    parser.add_argument("--binary", type=Path, help="pack this program instead of building one")
    return parser.parse_args()


def main():
    args = arguments()
    host, epoch = build.host_target(), build.source_date(project.ROOT)
    targets = args.target or [host]
    if host not in project.PLATFORMS or args.binary and len(targets) > 1:
        raise SystemExit("dist: packages are made on Linux, on x86-64 or aarch64; --binary is for one target")
    place = build.target_folder()
    if args.binary:
        print(f"dist: {args.binary} was not built by this recipe: these packages are not to be published", file=sys.stderr)
        binaries = {targets[0]: args.binary}
    else:
        binaries = {target: build.build(target, project.ROOT, place / "dist", epoch) for target in targets}
    for binary in binaries.values():
        if project.DRILL in binary.read_bytes():
            raise SystemExit(f"dist: {binary} is the program of the drill, whose guests can do anything: it is for tests alone")
    # Pages and scripts are the same for each target, and only this machine's program runs here.
    runnable = binaries.get(host) or build.build(host, project.ROOT, place / "dist", epoch)
    components = share.components(place)
    files = [file for target, binary in binaries.items() for file in packed(project.PLATFORMS[target], binary.read_bytes(), runnable, epoch, components)]
    files += common([project.PLATFORMS[target] for target in targets], epoch)
    written((args.output or place / "packages").absolute(), files)


if __name__ == "__main__":
    main()
