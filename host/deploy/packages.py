"""The packages of one binary: a tarball, a .deb, a wheel and two npm packages. Each is a function of bytes.

Holds their forms. Must not hold: how anything is built, or the image (image.py).
"""

import base64
import hashlib
import json
from pathlib import Path

from archive import PROGRAM, Entry, ar, gz, tar, with_folders, zipped

from project import LICENCE, MAINTAINER, NAME, REGISTRY_NAME, ROOT, SUMMARY

HERE = Path(__file__).resolve().parent
# The program needs no more of Debian than its C library; the floor is build.GLIBC.
GLIBC = "2.28"


def tarball(version, platform, binary, shared, epoch):
    """bin/ and share/, for any folder: also what `cargo binstall` unpacks."""
    prefix = f"{NAME}-{version}-{platform.target}/"
    entries = [Entry(f"bin/{NAME}", binary, PROGRAM), *shared, Entry("LICENSE", (ROOT / "LICENSE").read_bytes())]
    entries.append(Entry(f"lib/systemd/system/{NAME}.service", (HERE / "debian" / f"{NAME}.service").read_bytes()))
    return f"{prefix[:-1]}.tar.gz", gz(tar(entries, epoch, prefix))


def deb(version, platform, binary, shared, epoch):
    """A package of Debian and its kin, with the unit, its user and its configuration."""
    debian = HERE / "debian"
    installed = [Entry(f"usr/bin/{NAME}", binary, PROGRAM)]
    for entry in shared:
        page = "/man/" in entry.name
        installed.append(Entry(f"usr/{entry.name}{'.gz' if page else ''}", gz(entry.content) if page else entry.content))
    copyright = f"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: {NAME}\n\nFiles: *\nCopyright: the {NAME} authors\nLicense: {LICENCE}\n On Debian systems: /usr/share/common-licenses/{LICENCE}\n"
    installed += [
        Entry(f"usr/share/doc/{NAME}/copyright", copyright.encode("utf-8")),
        Entry(f"usr/lib/systemd/system/{NAME}.service", (debian / f"{NAME}.service").read_bytes()),
        Entry(f"usr/lib/sysusers.d/{NAME}.conf", (debian / f"{NAME}.sysusers").read_bytes()),
        Entry(f"etc/{NAME}/{NAME}.toml", (debian / f"{NAME}.toml").read_bytes()),
    ]
    kibibytes = sum(-(-len(entry.content) // 1024) for entry in installed)
    control = (
        f"Package: {NAME}\nVersion: {version}\nArchitecture: {platform.debian}\nMaintainer: {MAINTAINER}\n"
        f"Installed-Size: {kibibytes}\nDepends: libc6 (>= {GLIBC}), passwd\nSection: net\nPriority: optional\n"
        f"Description: {SUMMARY}\n Tools are WebAssembly components. A manifest grants each the files, hosts and\n secrets that it may reach; limits are always on.\n"
    )
    sums = "".join(f"{hashlib.md5(entry.content, usedforsecurity=False).hexdigest()}  {entry.name}\n" for entry in with_folders(installed) if entry.content is not None and not entry.name.startswith("etc/"))
    scripts = [Entry(name, (debian / name).read_bytes(), PROGRAM) for name in ("postinst", "prerm", "postrm")]
    about = [Entry("control", control.encode("utf-8")), Entry("conffiles", f"/etc/{NAME}/{NAME}.toml\n".encode("ascii")), Entry("md5sums", sums.encode("utf-8")), *scripts]
    members = [("debian-binary", b"2.0\n"), ("control.tar.gz", gz(tar(about, epoch, "./"))), ("data.tar.gz", gz(tar(installed, epoch, "./")))]
    return f"{NAME}_{version}_{platform.debian}.deb", ar(members, epoch)


def wheel(version, platform, binary, placed, licences, sbom):
    """A wheel as maturin makes of a binary: pip puts the program beside python."""
    information, data = f"{NAME}-{version}.dist-info", f"{NAME}-{version}.data"
    readme = f"{SUMMARY}.\n\n<!-- mcp-name: {REGISTRY_NAME} -->\n\n    {NAME} --help\n    {NAME} serve --manifest {NAME}.toml\n"
    metadata = (
        f"Metadata-Version: 2.4\nName: {NAME}\nVersion: {version}\nSummary: {SUMMARY}\nLicense-Expression: {LICENCE}\nLicense-File: LICENSE\n"
        f"License-File: THIRD-PARTY-LICENSES.txt\nRequires-Python: >=3.7\nDescription-Content-Type: text/markdown\n\n{readme}"
    )
    tags = f"Wheel-Version: 1.0\nGenerator: {NAME}\nRoot-Is-Purelib: false\nTag: py3-none-{platform.wheel}\n"
    entries = [
        Entry(f"{data}/scripts/{NAME}", binary, PROGRAM),
        *(Entry(f"{data}/data/{entry.name}", entry.content) for entry in placed),
        Entry(f"{information}/METADATA", metadata.encode("utf-8")),
        Entry(f"{information}/WHEEL", tags.encode("ascii")),
        Entry(f"{information}/licenses/LICENSE", (ROOT / "LICENSE").read_bytes()),
        Entry(f"{information}/licenses/THIRD-PARTY-LICENSES.txt", licences.encode("utf-8")),
        Entry(f"{information}/sboms/{NAME}.cdx.json", sbom),
    ]

    def recorded(entry):
        digest = base64.urlsafe_b64encode(hashlib.sha256(entry.content).digest()).rstrip(b"=").decode("ascii")
        return f"{entry.name},sha256={digest},{len(entry.content)}\n"

    record = "".join(map(recorded, entries)) + f"{information}/RECORD,,\n"
    entries.append(Entry(f"{information}/RECORD", record.encode("ascii")))
    return f"{NAME}-{version}-py3-none-{platform.wheel}.whl", zipped(entries)


def npm_platform(version, platform, binary, components, licences, sbom, epoch):
    """The npm package of one platform: npm installs only the one that fits."""
    name = f"{NAME}-linux-{platform.node}"
    about = {
        "name": name, "version": version, "description": f"{SUMMARY} (the program for Linux on {platform.node})",
        "license": LICENCE, "os": ["linux"], "cpu": [platform.node], "libc": ["glibc"], "files": ["bin"], "preferUnplugged": True,
    }
    beside = [Entry(f"bin/{component.name}", component.content) for component in components]
    entries = [
        Entry("bin/toolcell", binary, PROGRAM), *beside, Entry("LICENSE", (ROOT / "LICENSE").read_bytes()),
        Entry("THIRD-PARTY-LICENSES.txt", licences.encode("utf-8")), Entry(f"{NAME}.cdx.json", sbom), package_json(about),
    ]
    return f"{name}-{version}.tgz", gz(tar(entries, epoch, "package/"))


def npm(version, platforms, epoch):
    """The npm package that people name: it starts the program of the package for their platform."""
    about = {
        "name": NAME, "version": version, "description": SUMMARY, "license": LICENCE, "mcpName": REGISTRY_NAME,
        "bin": {NAME: "bin/toolcell.js"}, "files": ["bin"], "engines": {"node": ">=18"},
        "optionalDependencies": {f"{NAME}-linux-{platform.node}": version for platform in platforms},
    }
    entries = [
        Entry("bin/toolcell.js", (HERE / "node" / "toolcell.js").read_bytes(), PROGRAM),
        Entry("LICENSE", (ROOT / "LICENSE").read_bytes()),
        Entry("README.md", f"# {NAME}\n\n{SUMMARY}.\n\n    npx {NAME} --help\n".encode("utf-8")),
        package_json(about),
    ]
    return f"{NAME}-{version}.tgz", gz(tar(entries, epoch, "package/"))


def package_json(about):
    return Entry("package.json", json.dumps(about, indent=2).encode("utf-8") + b"\n")


def server_json(version):
    """The entry of the MCP registry: `toolcell serve` of a manifest that the person names."""

    def package(kind, identifier, hint):
        manifest = {"type": "named", "name": "--manifest", "description": "The manifest of the tools to serve", "format": "filepath", "isRequired": True}
        return {
            "registryType": kind, "identifier": identifier, "version": version, "runtimeHint": hint, "transport": {"type": "stdio"},
            "packageArguments": [{"type": "positional", "value": "serve"}, manifest],
        }

    about = {
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": REGISTRY_NAME, "title": NAME, "description": SUMMARY, "version": version,
        "packages": [package("pypi", NAME, "uvx"), package("npm", NAME, "npx")],
    }
    return "server.json", json.dumps(about, indent=2).encode("utf-8") + b"\n"
