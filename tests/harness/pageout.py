"""Has the kernel page a process out repeatedly until stdin ends: PAGEOUT.py PID. Needs permission to trace the process.

Prints a line when the first round is done. One round pages out every private, writable mapping.
"""

import ctypes
import os
import select
import sys

PIDFD_OPEN, PROCESS_MADVISE, MADV_PAGEOUT = 434, 440, 21


class Range(ctypes.Structure):
    _fields_ = [("start", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def ranges(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            place, rights = line.split()[:2]
            if rights == "rw-p":
                start, end = (int(side, 16) for side in place.split("-"))
                yield Range(start, end - start)


def main():
    libc = ctypes.CDLL(None, use_errno=True)
    pid = int(sys.argv[1])
    process = libc.syscall(PIDFD_OPEN, pid, 0)
    if process < 0:
        sys.exit(f"pidfd_open: {os.strerror(ctypes.get_errno())}")
    told = False
    while not select.select([sys.stdin], [], [], 0)[0]:
        for one in ranges(pid):
            if libc.syscall(PROCESS_MADVISE, process, ctypes.byref(one), ctypes.c_size_t(1), MADV_PAGEOUT, 0) < 0:
                error = ctypes.get_errno()
                # A mapping may be gone by now, or have no page that can be paged out.
                if error not in (12, 14, 22):
                    sys.exit(f"process_madvise: {os.strerror(error)}")
        if not told:
            print("paged out", flush=True)
            told = True


if __name__ == "__main__":
    main()
