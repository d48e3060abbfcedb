"""The crates that the binary is made of, and what else is embedded: their licences as one text, and an SBOM in the form of CycloneDX.

Holds what is read of cargo. Must not hold: packages.
"""

import hashlib
import json
import re
import subprocess
import uuid
from pathlib import Path
from urllib.parse import quote

import tools

HERE = Path(__file__).resolve().parent
NAMES = re.compile(r"^(licen[cs]e|copying|notice|copyright|unlicense|authors)", re.IGNORECASE)
# Texts of the licences that crates name without holding them.
TEXTS = {"Apache-2.0": HERE.parent.parent / "LICENSE", "MIT": HERE / "licences" / "MIT.txt", "LLVM-exception": HERE / "licences" / "LLVM-exception.txt"}
LICENCE_BYTES_MAX = 1 << 20
# Files of other projects that are not crates: name, version, licence, purl, the text of the licence, the files.
ASSETS = HERE.parent / "console" / "src" / "assets"
EMBEDDED = [("uPlot", "1.6.32", "MIT", "pkg:npm/uplot@1.6.32", ASSETS / "uplot.LICENSE", [ASSETS / "uplot.js", ASSETS / "uplot.css"])]
# What the engine of scripts is made of besides crates.
QUICKJS = HERE / "licences" / "QuickJS-ng.txt"
EMBEDDED.append(("quickjs-ng", "0.11.0", "MIT", "pkg:github/quickjs-ng/quickjs@v0.11.0", QUICKJS, []))
# The flags of the kinds of dependencies in cargo's metadata; those of tests are left out.
RUN, BUILD = None, "build"


class Crate:
    """One crate: what cargo says of it, and whether it runs or only builds."""

    def __init__(self, about):
        self.name, self.version, self.source = about["name"], about["version"], about["source"]
        self.licence = re.sub(r"\s*/\s*", " OR ", about["license"] or "") or None
        self.folder = Path(about["manifest_path"]).parent
        self.licence_file = about["license_file"]
        # A macro runs in the compiler, whichever crate uses it.
        self.is_macro = any("proc-macro" in target["kind"] for target in about["targets"])
        self.runs = False
        self.uses = set()
        self.digest = None

    @property
    def purl(self):
        return f"pkg:cargo/{quote(self.name)}@{quote(self.version)}"

    def licence_files(self):
        """Its texts of licences, as (name, text)."""
        named = [self.folder / self.licence_file] if self.licence_file else []
        found = named + sorted(file for file in self.folder.iterdir() if file.is_file() and NAMES.match(file.name))
        for file in dict.fromkeys(file.resolve() for file in found):
            if file.stat().st_size <= LICENCE_BYTES_MAX:
                yield file.name, file.read_text("utf-8", "replace").strip() + "\n"


def metadata(root, target):
    """All that cargo knows of the workspace, for one target."""
    said = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target],
        cwd=root, env=tools.plain_environment(), capture_output=True, text=True, check=True,
    )
    return json.loads(said.stdout)


def checksums(root):
    """The digests of Cargo.lock, by name and version."""
    found = {}
    for block in (root / "Cargo.lock").read_text("utf-8").split("[[package]]")[1:]:
        keys = dict(re.findall(r'^(name|version|checksum) = "([^"]+)"$', block, re.MULTILINE))
        found[keys["name"], keys["version"]] = keys.get("checksum")
    return found


def used(root, target, top="toolcell"):
    """The crates of the binary, by cargo's ids, and the id of the binary's own."""
    about = metadata(root, target)
    crates = {package["id"]: Crate(package) for package in about["packages"]}
    # The features of the tests' own crate are not those of the binary; `cargo tree` has these, and no ids.
    wanted = built(root, target, top)
    nodes = {node["id"]: node["deps"] for node in about["resolve"]["nodes"]}
    own = next(id for id, crate in crates.items() if crate.name == top and crate.source is None)
    found, digests = {}, checksums(root)

    def visit(id, runs):
        crate = crates[id]
        if id in found and (crate.runs or not runs):
            return
        found[id], crate.runs = crate, crate.runs or runs
        crate.digest = digests.get((crate.name, crate.version))
        for dependency in nodes[id]:
            inner = crates[dependency["pkg"]]
            kinds = {kind["kind"] for kind in dependency["dep_kinds"]}
            if (inner.name, inner.version) in wanted and kinds & {RUN, BUILD}:
                crate.uses.add(dependency["pkg"])
                visit(dependency["pkg"], runs and RUN in kinds and not inner.is_macro)

    visit(own, True)
    return found, own


def with_components(root, target):
    """The crates of the binary and of the components that come with it: the engine of scripts, and that of bridges."""
    found, own = used(root, target)
    for workspace, crate in (("host/code", "toolcell-code"), ("guest-examples", "bridge")):
        inner, top = used(root / workspace, "wasm32-wasip2", crate)
        found[own].uses.add(top)
        found = inner | found
    return found, own


def built(root, target, top):
    """Names and versions that `cargo build -p top` builds, as a set."""
    said = subprocess.run(
        ["cargo", "tree", "--locked", "-p", top, "--target", target, "-e", "normal,build", "--prefix", "none", "--no-dedupe"],
        cwd=root, env=tools.plain_environment(), capture_output=True, text=True, check=True,
    )
    return set(re.findall(r"^(\S+) v(\S+)", said.stdout, re.MULTILINE))


def choice(expression):
    """Licences that together fulfil an expression of SPDX and whose texts we have, or None. One in parentheses has none."""
    if "(" in expression:
        return None
    for one in re.split(r"\s+OR\s+", expression):
        parts = re.split(r"\s+(?:AND|WITH)\s+", one)
        if all(part in TEXTS for part in parts):
            return parts
    return None


def licences(crates):
    """One text with the licences of all crates and of what else is embedded, each text once. A crate without one is an error."""
    texts, problems = {}, []
    for crate in sorted(crates.values(), key=lambda crate: (crate.name, crate.version)):
        if crate.source is None:
            continue
        found = [text for _, text in crate.licence_files()]
        if not found and crate.licence and choice(crate.licence):
            found = [TEXTS[name].read_text("utf-8").strip() + "\n" for name in choice(crate.licence)]
        if not found or not crate.licence and not crate.licence_file:
            problems.append(f"{crate.name} {crate.version} has no text of a licence ({crate.licence})")
        for text in found:
            texts.setdefault(text, []).append(f"{crate.name} {crate.version} ({crate.licence or 'see below'})")
    for name, version, licence, _, text, _ in EMBEDDED:
        texts.setdefault(text.read_text("utf-8").strip() + "\n", []).append(f"{name} {version} ({licence})")
    if problems:
        raise SystemExit("dist: " + "\n".join(problems))
    head = "toolcell is made of these besides its own crates, and of Rust's standard library (MIT OR Apache-2.0).\n"
    rule = "\n" + "=" * 100 + "\n"
    return head + "".join(rule + "\n".join(users) + "\n\n" + text for text, users in sorted(texts.items(), key=lambda pair: pair[1]))


def sbom(crates, own, epoch):
    """The SBOM, in the form of CycloneDX 1.5, as JSON."""
    from datetime import datetime, timezone

    def component(crate):
        about = {"type": "application" if crates[own] is crate else "library", "bom-ref": crate.purl, "name": crate.name, "version": crate.version}
        about["scope"] = "required" if crate.runs else "excluded"
        if crate.digest:
            about["hashes"] = [{"alg": "SHA-256", "content": crate.digest}]
        if crate.licence:
            about["licenses"] = [{"expression": crate.licence}]
        return about | {"purl": crate.purl}

    def embedded(name, version, licence, purl, _, files):
        about = {"type": "library", "bom-ref": purl, "name": name, "version": version, "scope": "required"}
        digests = [{"type": "file", "name": file.name, "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(file.read_bytes()).hexdigest()}]} for file in files]
        return about | {"licenses": [{"expression": licence}], "purl": purl, "components": digests}

    ordered = sorted(crates.values(), key=lambda crate: (crate.name, crate.version))
    listed = [component(crate) for crate in ordered if crate is not crates[own]] + [embedded(*entry) for entry in EMBEDDED]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {key: value for key, value in component(crates[own]).items() if key != "scope"},
        },
        "components": listed,
        "dependencies": [{"ref": crate.purl, "dependsOn": sorted(crates[id].purl for id in crate.uses)} for crate in ordered],
    }
    content = json.dumps(document, sort_keys=True).encode("utf-8")
    serial = uuid.UUID(bytes=hashlib.sha256(content).digest()[:16], version=4)
    return json.dumps({"serialNumber": f"urn:uuid:{serial}"} | document, indent=2).encode("utf-8") + b"\n"
