"""A small Debian of one suite whose first process is its own systemd, in namespaces of this machine.

Its root is made of Debian's packages, got by the machine's apt and not installed; it is gone with the process. Needs root,
and a kernel with control groups of version 2. Must not hold: what runs in it.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from debian_archive import debian_packages
from tools import kept

# What `dpkg --install` of a package with a unit needs. Each pulls in what it depends on.
PACKAGES = ("systemd", "bash", "coreutils", "dash", "base-files", "base-passwd", "libc-bin", "mount", "util-linux", "login", "passwd", "grep", "sed", "tar", "dpkg", "debianutils", "diffutils", "findutils", "gzip")
# Another number where `root_of` makes another root.
RECIPE = 1
SECONDS_MAX = 60

# Its own part of the tree of control groups, then namespaces of its own, in which it becomes the first process.
OUTSIDE = """
set -e
mount --make-rprivate /
mount -t cgroup2 none "$1"
mkdir "$1/$2"
echo $$ > "$1/$2/cgroup.procs"
exec unshare --mount --pid --fork --kill-child --cgroup --ipc --uts --net sh -c "$3" boot "$1" "$4"
"""

# Its groups stay in the tree of control groups until they are removed.
AFTERWARDS = """
mount --make-rprivate /
mount -t cgroup2 none "$1"
find "$1/$2" -depth -type d -exec rmdir {} +
"""

# A root that was changed with chroot lets nobody make namespaces of users, so the old one is taken away.
INSIDE = """
set -e
scratch=$1
mount --make-rprivate /
mount -t tmpfs none "$scratch"
mkdir "$scratch/upper" "$scratch/work" "$scratch/root"
root=$scratch/root
mount -t overlay overlay -o "lowerdir=$2,upperdir=$scratch/upper,workdir=$scratch/work" "$root"
mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/run" "$root/tmp" "$root/old"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 none "$root/dev"
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
ln -s /proc/self/fd "$root/dev/fd"
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs none "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 none "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount -t tmpfs none "$root/run"
mount -t tmpfs none "$root/tmp"
cd "$root"
pivot_root . old
umount -l /old
exec /usr/bin/env -i container=toolcell PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=basic.target --log-level=warning --log-target=journal
"""


def root_of(suite):
    """A folder with the packages of a suite, unpacked. Made once."""

    def make(folder):
        for name in ("bin", "sbin", "lib", "lib64"):
            (folder / "usr" / name).mkdir(parents=True)
            (folder / name).symlink_to(f"usr/{name}")
        for package in debian_packages(PACKAGES, suite, folder / "packages"):
            files = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE, check=True).stdout
            subprocess.run(["tar", "-x", "--keep-directory-symlink", "-C", folder], input=files, check=True)
        shutil.rmtree(folder / "packages")
        for name in ("passwd", "group"):
            shutil.copyfile(folder / f"usr/share/base-passwd/{name}.master", folder / "etc" / name)
        (folder / "etc/shadow").touch(0o640)
        (folder / "etc/machine-id").touch()
        # dpkg's own, which its package makes when it is configured.
        (folder / "var/lib/dpkg/status").touch()
        (folder / "var/lib/dpkg/info").mkdir(parents=True, exist_ok=True)
        (folder / "var/lib/dpkg/updates").mkdir(parents=True, exist_ok=True)

    return kept(f"systemd-{suite}-{RECIPE}", make)


class SystemdMachine:
    """Runs while this is entered."""

    def __init__(self, suite):
        self.suite, self.root = suite, root_of(suite)

    def __enter__(self):
        self.scratch = Path(tempfile.mkdtemp())
        self.group = f"toolcell-check-{os.getpid()}-{self.suite}"
        words = ["unshare", "--mount", "sh", "-c", OUTSIDE, "machine", self.scratch, self.group, INSIDE, self.root]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.first = None
        try:
            self.first = self.until("systemd starts", self.first_process)
            self.until("systemd answers", lambda: self.tried("systemctl", "is-active", "basic.target").returncode == 0)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        # The first process ends with the one that waits for it, and all others with the first.
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.until("its processes end", lambda: self.first is None or not Path(f"/proc/{self.first}").exists())
        subprocess.run(["unshare", "--mount", "sh", "-c", AFTERWARDS, "afterwards", self.scratch, self.group], check=False)
        shutil.rmtree(self.scratch, ignore_errors=True)

    def first_process(self):
        """The number of the machine's first process out here, once it is systemd."""
        if self.process.poll() is not None:
            raise SystemExit(f"{self.suite} does not start: {self.process.stderr.read()}")
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text("ascii").split()
        return next((int(child) for child in children if Path(f"/proc/{child}/comm").read_text("ascii") == "systemd\n"), None)

    def until(self, what, look):
        """Looks until it is there."""
        end = time.monotonic() + SECONDS_MAX
        while time.monotonic() < end:
            found = look()
            if found:
                return found
            time.sleep(0.05)
        raise AssertionError(f"{self.suite}: {what}: not within {SECONDS_MAX} s")

    def tried(self, *words, **options):
        """What came of a command in the machine."""
        inside = ["nsenter", "--target", str(self.first), "--mount", "--pid", "--net", "--ipc", "--uts", "--cgroup", "--root", "--wd=/"]
        options = {"env": {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, "stdin": subprocess.DEVNULL} | options
        if "input" in options:
            del options["stdin"]
        return subprocess.run([*inside, *map(str, words)], capture_output=True, text=True, check=False, **options)

    def run(self, *words, **options):
        """What a command in the machine prints, which must succeed."""
        said = self.tried(*words, **options)
        assert said.returncode == 0, f"{self.suite}: {words}: {said.returncode}: {said.stdout}{said.stderr}"
        return said.stdout

    def path(self, inside):
        """A path of the machine, as it is out here."""
        return Path(f"/proc/{self.first}/root") / str(inside).lstrip("/")
