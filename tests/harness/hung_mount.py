#!/usr/bin/env python3
"""A mount that hangs, like a network mount whose server is gone: `hung_mount.py FOLDER FILE`.

It mounts a filesystem in FOLDER with one file, `file`, a copy of FILE as it was at the start. Then it prints `mounted`. Each
line on stdin is an order: `hang` (no request is answered from now on), `hang reads` (only reads of files are not answered),
`go` (all waiting requests are answered). When stdin ends, it ends and waiting requests fail. If it may not mount, it prints
the reason and ends with 77.
"""

import ctypes
import os
import select
import struct
import sys

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT = 1, 2, 3, 14, 15, 17, 18, 25, 26
OPENDIR, READDIR, RELEASEDIR, INTERRUPT, BATCH_FORGET = 27, 28, 29, 36, 42
ENOENT, ENOSYS, DIRECT_IO, DETACH = -2, -38, 1, 2
ROOT, FILE = 1, 2
HEAD = struct.Struct("<IIQQIIII")

folder, name = os.fsencode(sys.argv[1]), b"file"
content = open(sys.argv[2], "rb").read()
libc = ctypes.CDLL(None, use_errno=True)


def mounted():
    """The kernel's end of the mount."""
    try:
        device = os.open("/dev/fuse", os.O_RDWR)
    except OSError as error:
        sys.exit(refused(error))
    options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}".encode()
    if libc.mount(b"hung", folder, b"fuse.hung", 0, options) != 0:
        sys.exit(refused(os.strerror(ctypes.get_errno())))
    print("mounted", flush=True)
    return device


def refused(why):
    print(f"this user may not mount: {why}", flush=True)
    return 77


def attributes(node):
    mode, size = (0o40755, 0) if node == ROOT else (0o100644, len(content))
    return struct.pack("<6Q10I", node, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, os.getuid(), os.getgid(), 0, 4096, 0)


def answer(opcode, node, body):
    """The answer to the request, or an error."""
    if opcode == INIT:
        return struct.pack("<IIIIHHIIHHI7I", 7, 31, 0, 0, 16, 8, 4096, 1, 1, 0, 0, *[0] * 7)
    if opcode == LOOKUP:
        known = node == ROOT and body.rstrip(b"\0") == name
        return struct.pack("<QQQQII", FILE, 0, 0, 0, 0, 0) + attributes(FILE) if known else ENOENT
    if opcode == GETATTR:
        return struct.pack("<QII", 0, 0, 0) + attributes(node)
    if opcode in (OPEN, OPENDIR):
        return struct.pack("<QII", 0, DIRECT_IO if opcode == OPEN else 0, 0)
    if opcode == READ:
        _, offset, size = struct.unpack_from("<QQI", body)
        return content[offset : offset + size]
    if opcode == STATFS:
        return struct.pack("<5Q10I", 0, 0, 0, 0, 0, 4096, 255, 4096, *[0] * 7)
    return b"" if opcode in (RELEASE, RELEASEDIR, FLUSH, READDIR) else ENOSYS


def reply(device, unique, said):
    error, data = (said, b"") if isinstance(said, int) else (0, said)
    try:
        os.write(device, struct.pack("<IiQ", 16 + len(data), error, unique) + data)
    except OSError:
        pass  # The asking process is gone.


def serve(device):
    """Answers requests until stdin ends."""
    hangs, waiting = "go", []
    orders = b""
    while True:
        ready, _, _ = select.select([device, 0], [], [])
        if 0 in ready:
            read = os.read(0, 4096)
            if not read:
                return
            *lines, orders = (orders + read).split(b"\n")
            hangs = lines[-1].decode() if lines else hangs
            if hangs == "go":
                for unique, opcode, node, body in waiting:
                    reply(device, unique, answer(opcode, node, body))
                waiting = []
        if device in ready:
            frame = os.read(device, 1 << 20)
            _, opcode, unique, node, *_ = HEAD.unpack_from(frame)
            if opcode in (FORGET, BATCH_FORGET, INTERRUPT):
                continue
            body = frame[HEAD.size :]
            if opcode != INIT and (hangs == "hang" or (hangs == "hang reads" and opcode == READ)):
                waiting.append((unique, opcode, node, body))
            else:
                reply(device, unique, answer(opcode, node, body))


kernel = mounted()
try:
    serve(kernel)
finally:
    libc.umount2(folder, DETACH)
    os.close(kernel)
