#!/usr/bin/env python3
"""Installs a .deb in a copy of this machine's root that is gone afterwards, uses it, upgrades it and removes it.

    unshare --mount --pid --fork --kill-child host/deploy/check_debian.py FILE.deb EXAMPLES

Needs root, in mounts and processes of its own: `check.py` calls it so. Writes go to memory, over the machine's files.
"""

import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from session import served

CONFIGURATION = Path("/etc/toolcell/toolcell.toml")
UNIT = Path("/usr/lib/systemd/system/toolcell.service")
EXAMPLES = Path("/usr/local/lib/toolcell-examples")


def run(*words):
    said = subprocess.run(words, capture_output=True, text=True, check=False)
    assert said.returncode == 0, f"{words}: {said.returncode}: {said.stdout}{said.stderr}"
    return said.stdout


def into_a_copy(deb, examples):
    """Makes the root of this process a copy of the machine's, with the package and the examples in it."""
    run("mount", "--make-rprivate", "/")
    folder = Path(tempfile.mkdtemp())
    run("mount", "-t", "tmpfs", "none", str(folder))
    upper, work, root = (folder / name for name in ("upper", "work", "root"))
    for one in (upper, work, root):
        one.mkdir()
    run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir=/,upperdir={upper},workdir={work}", str(root))
    shutil.copy(deb, root / "toolcell.deb")
    shutil.copytree(examples, root / EXAMPLES.relative_to("/"), dirs_exist_ok=True)
    for name in ("dev", "sys"):
        run("mount", "--rbind", f"/{name}", str(root / name))
    run("mount", "-t", "proc", "proc", str(root / "proc"))
    for name in ("run", "tmp"):
        run("mount", "-t", "tmpfs", "none", str(root / name))
    os.chroot(root)
    os.chdir("/")


def setting(name):
    """All values of a key of the unit."""
    return re.findall(rf"^{name}=(.*)$", UNIT.read_text("utf-8"), re.MULTILINE)


def start_as_the_unit():
    """The unit's folders, variables and user. Its other restrictions need systemd itself."""
    user = pwd.getpwnam("toolcell")
    for base, name in (("/var/lib", "StateDirectory"), ("/var/cache", "CacheDirectory"), ("/run", "RuntimeDirectory")):
        folder = Path(base, setting(name)[0])
        folder.mkdir(exist_ok=True)
        os.chown(folder, user.pw_uid, user.pw_gid)
    variables = dict(word.split("=", 1) for line in setting("Environment") for word in line.split())
    command = ["setpriv", "--reuid=toolcell", "--regid=toolcell", "--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
    return command, {"PATH": "/usr/bin:/bin"} | variables


def main():
    into_a_copy(Path(sys.argv[1]), Path(sys.argv[2]))
    run("dpkg", "--install", "/toolcell.deb")
    assert pwd.getpwnam("toolcell").pw_shell.endswith("nologin")
    run("toolcell", "check", str(CONFIGURATION))
    run("systemd-analyze", "verify", "--man=no", str(UNIT))
    # The unit's own command, but for the transport: this conversation goes over pipes.
    run("chown", "-R", "toolcell:", str(EXAMPLES))
    command, variables = start_as_the_unit()
    program, *words = setting("ExecStart")[0].split()
    assert words == ["serve", "--http", "--manifest", str(CONFIGURATION)], words
    names = served([*command, program, "serve", "--manifest", EXAMPLES / "toolcell.toml"], env=variables, cwd="/var/lib/toolcell")
    print(f"serves {len(names)} tools: the .deb, as the user toolcell")
    edited = CONFIGURATION.read_text("utf-8") + "# edited\n"
    CONFIGURATION.write_text(edited, "utf-8")
    run("dpkg", "--install", "/toolcell.deb")
    assert CONFIGURATION.read_text("utf-8") == edited, "an upgrade changed the configuration"
    run("dpkg", "--remove", "toolcell")
    assert not Path(program).exists() and CONFIGURATION.exists() and Path("/var/lib/toolcell").exists()
    run("dpkg", "--purge", "toolcell")
    left = [path for path in ("/etc/toolcell", "/var/lib/toolcell", "/var/cache/toolcell", str(UNIT)) if Path(path).exists()]
    assert not left, left
    print("kept its configuration in an upgrade; purged, nothing is left but the user")


if __name__ == "__main__":
    main()
