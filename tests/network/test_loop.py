"""What nodes run on: buffers of connections do not stay behind."""

import ctypes
import platform
import subprocess
import sys

import pytest

# Frees every other buffer of a heap, as clients leave: what of it stays in memory, by and by?
SCRIPT = """
import ctypes
from pathlib import Path
from planaria.network.loop import give_memory_back

SIZE = 1 << 18
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

def buffer():
    one = libc.malloc(SIZE)
    ctypes.memset(one, 1, SIZE)
    return one

libc.free(buffer())  # from now on glibc keeps what has this size
held = [buffer() for _ in range(100)]
full = resident()
for one in held[::2]:
    libc.free(one)
kept = full - resident() < 10 * SIZE
give_memory_back()
print(kept, full - resident() > 40 * SIZE)
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or not hasattr(ctypes.CDLL(None), "malloc_trim"),
    reason="other libraries return large buffers anyway",
)
def test_what_lies_free_between_buffers_is_returned() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("True True", "")
