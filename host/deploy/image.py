"""The container image, as a folder layout of OCI in one tar: the program, the C library it needs, and nobody's folder.

No daemon and no base image: the layers are written here. The C library is that of Debian's package, as the machine's
apt has it; its version and digest stand in the image's labels. Must not hold: how an image is run.
"""

import gzip
import hashlib
import json
import subprocess
import tempfile
from datetime import datetime, timezone
from pathlib import Path

from archive import PROGRAM, Entry, gz, tar
from debian_archive import debian_package
from project import LICENCE, NAME, SUMMARY

NOBODY = 65534
# What the program is linked with: see `needed` in check.py.
LIBRARIES = ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1")
HOME = f"var/lib/{NAME}"
PASSWD = f"root:x:0:0:root:/root:/usr/sbin/nologin\nnobody:x:{NOBODY}:{NOBODY}:nobody:/{HOME}:/usr/sbin/nologin\n"


def library(platform):
    """The files of the C library, as entries; and the package they are from, as (name, digest)."""
    name, content = debian_package("libc6", platform.debian)
    with tempfile.TemporaryDirectory() as folder:
        package, root = Path(folder, name), Path(folder, "root")
        package.write_bytes(content)
        subprocess.run(["dpkg-deb", "-x", package, root], check=True)
        loader = next(path for path in root.rglob(Path(platform.loader).name) if path.is_file())
        entries = [Entry(platform.loader, loader.read_bytes(), PROGRAM)]
        for wanted in LIBRARIES:
            found = [path for path in root.rglob(wanted) if path.is_file()]
            entries += [Entry(f"lib/{platform.multiarch}/{wanted}", path.read_bytes(), PROGRAM) for path in found[:1]]
        copyright = next(root.rglob("doc/libc6/copyright"))
        entries.append(Entry("usr/share/doc/libc6/copyright", copyright.read_bytes()))
    return entries, (name.removesuffix(".deb"), hashlib.sha256(content).hexdigest())


def image(version, platform, binary, documents, epoch, libc=None):
    """The image's tar."""
    entries, (package, digest) = libc or library(platform)
    base = gz(tar([*entries, Entry("etc/passwd", PASSWD.encode("ascii")), Entry("etc/group", f"nobody:x:{NOBODY}:\n".encode("ascii"))], epoch))
    own = [Entry(f"usr/{entry.name}", entry.content) for entry in documents]
    folders = [Entry(HOME, None, 0o700, NOBODY), Entry("tools", None, PROGRAM), Entry("tmp", None, 0o1777)]
    program = gz(tar([Entry(f"usr/bin/{NAME}", binary, PROGRAM), *own, *folders], epoch))
    when = datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {
        "org.opencontainers.image.title": NAME, "org.opencontainers.image.description": SUMMARY, "org.opencontainers.image.version": version,
        "org.opencontainers.image.licenses": LICENCE, "org.opencontainers.image.created": when,
        f"{NAME}.libc6": package, f"{NAME}.libc6.sha256": digest,
    }
    layers = [base, program]
    config = {
        "created": when, "architecture": platform.oci, "os": "linux",
        "config": {
            "User": f"{NOBODY}:{NOBODY}", "WorkingDir": "/tools", "Entrypoint": [f"/usr/bin/{NAME}"], "Cmd": ["serve"], "Labels": labels,
            "Env": ["PATH=/usr/bin", f"HOME=/{HOME}"], "StopSignal": "SIGTERM",
        },
        "rootfs": {"type": "layers", "diff_ids": [sha256(gzip.decompress(layer)) for layer in layers]},
        "history": [{"created": when, "created_by": f"Debian's {package}"}, {"created": when, "created_by": f"{NAME} {version}"}],
    }
    blobs = {}

    def blob(content, kind):
        content = content if isinstance(content, bytes) else json.dumps(content, sort_keys=True).encode("utf-8")
        blobs[sha256(content)] = content
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": sha256(content), "size": len(content)}

    manifest = {
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": blob(config, "config.v1+json"),
        "layers": [blob(layer, "layer.v1.tar+gzip") for layer in layers], "annotations": labels,
    }
    listed = blob(manifest, "manifest.v1+json") | {
        "annotations": {"org.opencontainers.image.ref.name": version, "io.containerd.image.name": f"{NAME}:{version}"},
        "platform": {"architecture": platform.oci, "os": "linux"},
    }
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [listed]}
    files = [Entry("oci-layout", b'{"imageLayoutVersion": "1.0.0"}'), Entry("index.json", json.dumps(index, sort_keys=True).encode("utf-8"))]
    files += [Entry(f"blobs/{digest.replace(':', '/')}", content) for digest, content in blobs.items()]
    return f"{NAME}-{version}-{platform.oci}.oci.tar", tar(files, epoch)


def sha256(content):
    return f"sha256:{hashlib.sha256(content).hexdigest()}"

