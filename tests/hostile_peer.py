"""A peer that means harm, as a process of its own.

`hostile_peer.py KIND HOST PORT HELLO REQUEST COUNT`: HELLO and REQUEST are frames in hex, COUNT is
of connections. It says `ready` when it is in full swing, and goes on until it is killed; the
standard library is all it needs.
"""

import os
import resource
import socket
import sys
import time
from collections.abc import Callable

Dial = Callable[[], socket.socket]
CONNECTIONS = int(sys.argv[6])
ANNOUNCED = (1 << 20).to_bytes(4, "big") + b"\x04"  # a frame of a mebibyte that never comes


def garbage(dial: Dial, hello: bytes, request: bytes) -> None:
    """Random bytes, again and again, before and after a good hello."""
    for turn in range(1 << 62):
        with dial() as one:
            one.sendall((hello if turn % 2 else b"") + os.urandom(4096))
        if turn == 20:
            ready()


def flood(dial: Dial, hello: bytes, request: bytes) -> None:
    """As many requests as the socket takes; answers are read and thrown away."""
    with dial() as one:
        one.sendall(hello)
        one.setblocking(False)
        ready()
        rest = b""
        while True:
            rest = rest or request * 200
            try:
                rest = rest[one.send(rest) :]
            except BlockingIOError:
                time.sleep(0.001)
            try:
                if one.recv(1 << 16) == b"":
                    time.sleep(0.05)
                    return flood(dial, hello, request)
            except BlockingIOError:
                pass
            except OSError:
                return flood(dial, hello, request)


def connections(dial: Dial, hello: bytes, request: bytes) -> None:
    """More connections than the node takes, without a word; those that it closes again anew."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    held: list[socket.socket] = []
    while True:
        held.append(dial())
        if len(held) == CONNECTIONS:
            ready()
        if len(held) > CONNECTIONS:
            held.pop(0).close()
            time.sleep(0.002)


def reads_nothing(dial: Dial, hello: bytes, request: bytes) -> None:
    """Ask for all that there is, and take nothing of it."""
    held = []
    for _ in range(40):
        one = dial()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.sendall(hello + request)
        held.append(one)
    ready()
    time.sleep(1 << 20)


def lies(dial: Dial, hello: bytes, request: bytes) -> None:
    """Announce frames that never come, some larger than any; keep them open."""
    held = []
    for turn in range(100):
        one = dial()
        one.sendall(hello + (b"\xff\xff\xff\xff\x04" if turn % 2 else ANNOUNCED) + bytes(1000))
        held.append(one)
    ready()
    while True:  # a byte at a time
        for one in held:
            try:
                one.sendall(b"x")
            except OSError:
                continue
        time.sleep(0.01)


def ready() -> None:
    """Say that it has begun."""
    print("ready", flush=True)


def main() -> None:
    """Do one kind of harm until killed; a node that hangs up is dialled again."""
    kind, host, port, hello, request = sys.argv[1:6]
    harm = {it.__name__: it for it in (garbage, flood, connections, reads_nothing, lies)}[kind]
    while True:
        try:
            harm(
                lambda: socket.create_connection((host, int(port)), 10),
                bytes.fromhex(hello),
                bytes.fromhex(request),
            )
        except OSError:
            time.sleep(0.01)


main()
