"""What nodes run on: buffers of connections do not stay behind."""

import ctypes
import platform
import subprocess
import sys

import pytest

# Frees a buffer, after which glibc would keep those of its size, and counts what the next one adds
# to the bytes that are mapped for one buffer alone: to be returned when it is freed.
SCRIPT = """
import ctypes
from planaria.network.loop import BUFFER_BYTES, give_buffers_back

class Info(ctypes.Structure):
    _fields_ = [(f"field{at}", ctypes.c_size_t) for at in range(10)]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Info
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
BEFORE
libc.free(libc.malloc(BUFFER_BYTES))
mapped = libc.mallinfo2().field4
libc.malloc(BUFFER_BYTES)
print(libc.mallinfo2().field4 - mapped >= BUFFER_BYTES)
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or not hasattr(ctypes.CDLL(None), "mallinfo2"),
    reason="other libraries return large buffers anyway",
)
@pytest.mark.parametrize(("before", "returned"), [("", "False"), ("give_buffers_back()", "True")])
def test_a_buffer_is_returned_when_its_connection_is_closed(before: str, returned: str) -> None:
    script = SCRIPT.replace("BEFORE", before)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == (returned, "")
