"""Every decoder of bytes that others wrote, with good bytes to begin from and what it may raise.

Hypothesis, plain mutation and atheris (tests/fuzz_atheris.py) all try the same table.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import msgpack

from planaria.core.codec import Codec
from planaria.core.errors import MalformedMessage, UsageError
from planaria.network.charters import judge, seal, seal_locally, seal_void
from planaria.network.client.messages import MESSAGES, Position, Put, Tail
from planaria.network.config import load_config
from planaria.network.connection import CLIENT, VERSIONS, Hello, read_hello
from planaria.network.contacts import Contact, Contacts, from_wire, to_wire
from planaria.network.context import read_context
from planaria.network.frames import Kind, Reader, frame
from planaria.network.identity import AUTHORITY_KEY, Refused, found_cluster, issue
from planaria.network.link import ACKNOWLEDGED, Link
from planaria.network.overlays.registry import codec
from planaria.network.rights import parse_rights
from planaria.network.store.rows import entry_of, head_of, pack_state, unpack_state
from planaria.network.tls import Credentials
from planaria.protocols.skipring.charter import Charter, voiding
from planaria.protocols.skipring.charter_messages import CharterHints, CharterNews
from planaria.protocols.skipring.deposit_messages import Deposit
from planaria.records.lanes import Drops
from planaria.records.positions import Intervals
from planaria.records.record import (
    INCARNATION_BYTES,
    Draft,
    MalformedRecord,
    decode,
)
from planaria.records.record import (
    seal as sealed,
)

NOW = int(time.time())


class Decoder(NamedTuple):
    """What to try: it gives an answer or raises one of `errors`, in one line, and nothing else."""

    decode: Callable[[bytes], object]
    errors: tuple[type[Exception], ...]
    seeds: Sequence[bytes]


def decoders(directory: Path | None = None) -> dict[str, Decoder]:
    """All of them; keys and files are made in `directory`."""
    home = Path(mkdtemp(prefix="planaria-fuzz-")) if directory is None else directory
    keys = home / "keys"
    found_cluster(keys, "demo")
    node = Credentials(issue(keys, "n1", ("node", "supervise")))
    admin = Credentials(issue(keys, "boss", ("admin", "client")))
    record = sealed((7, bytes(INCARNATION_BYTES)), 3, [Draft(b"a"), Draft(b"b" * 40)], time=NOW)
    rich = Draft(b"{}", b"key", (("unit", b"C"),), NOW * 1_000_000)
    columns = sealed((7, bytes(INCARNATION_BYTES)), 3, [rich, rich], time=NOW)
    contact = Contact(node.identity.id, ("127.0.0.1:7400",), 5, True).sign(node)
    contacts = to_wire([contact, Contact(bytes(16), ("a:1", "b"), 3)])
    charter = Charter("news", 1, 0, NOW, allow=(("publish", ("alice",)),))
    void = voiding(admin.identity.id, NOW)
    charters = [
        seal(charter, admin),
        seal_locally(charter, Ed25519PrivateKey.generate()),
        seal_void(void, (keys / AUTHORITY_KEY).read_bytes()),
    ]
    position = Position(7, bytes(12), 3, ((1, 2),))
    own = codec()
    client = Codec(MESSAGES)
    nodes = [
        own.encode(Deposit("news", 1, record.data, True)),
        own.encode(CharterNews(1, charters[:1])),
        own.encode(CharterHints(1, [("news", 1, bytes(16))])),
    ]
    clients = [
        client.encode(Put(1, "news", record.data)),
        client.encode(Tail(2, "news/#", {"news": [position]}, 0, "a > 3")),
    ]
    hello = msgpack.encode(Hello(VERSIONS, node.identity.id, "demo", ("a:1",), CLIENT))
    state = pack_state(Drops(), 3, Intervals())
    malformed = (MalformedMessage,)
    return {
        "frames": Decoder(
            lambda data: [*Reader().feed(data)],
            malformed,
            [frame(Kind.HELLO, hello) + frame(Kind.BULK, clients[0])],
        ),
        "hello": Decoder(read_hello, (Refused,), [hello]),
        "acknowledgements": Decoder(
            lambda it: Link().on_acknowledge(it), (), [ACKNOWLEDGED.pack(0, 0)]
        ),
        "messages of nodes": Decoder(own.decode, malformed, nodes),
        "messages of clients": Decoder(client.decode, malformed, clients),
        "records": Decoder(decode, (MalformedRecord,), [record.data, columns.data]),
        "rows": Decoder(lambda it: entry_of(1, it), (), [head_of(1, record)]),
        "states of streams": Decoder(unpack_state, (), [state]),
        "contacts": Decoder(lambda it: _learn(it, node), (), [contacts]),
        "questions for contacts": Decoder(Contacts().answer, (), [msgpack.encode([1, 2, 3])]),
        "charters": Decoder(judge(node.authority), (), charters),
        "charters without certificates": Decoder(judge(None), (), charters),
        "rights": Decoder(lambda it: parse_rights(_text(it)), (UsageError,), [RIGHTS.encode()]),
        "configurations": Decoder(lambda it: _config(home, it), (UsageError,), [CONFIG.encode()]),
        "contexts": Decoder(lambda it: _context(home, it), (UsageError,), [CONTEXT.encode()]),
    }


def mutate(seeds: Sequence[bytes], rng: Random) -> bytes:
    """Good bytes with a few faults, or any bytes at all."""
    if not rng.randrange(10):
        return rng.randbytes(rng.randrange(64))
    data = bytearray(rng.choice(seeds))
    for _ in range(1 + rng.randrange(4)):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(5)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at:at] = rng.randbytes(1 + rng.randrange(4))
        elif kind == 2:
            del data[at : at + 1 + rng.randrange(8)]
        elif kind == 3:
            data[at:at] = rng.choice(
                (b"\xff" * 4, b"\x00" * 8, b"\xdf\xff\xff\xff\xff", b"\x91" * 40)
            )
        else:
            other = rng.choice(seeds)
            data[at:] = other[rng.randrange(len(other) + 1) :]
    return bytes(data)


def attempt(name: str, one: Decoder, data: bytes) -> None:
    """Decode; whatever is raised must be one of its errors, in one line."""
    try:
        one.decode(data)
    except one.errors as error:
        if "\n" in str(error):
            raise AssertionError(f"{name}: {error!r} at {data.hex()} is no line") from error
    except Exception as error:
        raise AssertionError(f"{name} raised {error!r} at {data.hex()}") from error


def _learn(data: bytes, node: Credentials) -> None:
    contacts = Contacts(node.authority)
    for contact in from_wire(data):
        contacts.learn(contact)


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _config(home: Path, data: bytes) -> None:
    path = home / "fuzz.toml"
    path.write_bytes(data)
    load_config(home / "node", {}, file=path, environment={})


def _context(home: Path, data: bytes) -> None:
    path = home / "context.toml"
    path.write_bytes(data)
    read_context(path)


RIGHTS = """
[groups]
desk = ["alice"]

[[allow]]
who = ["@desk", "*"]
rights = ["publish"]
topics = ["a/#", "b/+"]

[[deny]]
who = ["bob"]
rights = ["publish"]
topics = ["a/b"]
"""
CONFIG = """
listen = "127.0.0.1:0"
join = ["a:1", "[::1]:2"]
insecure = true
interval = 0.5
supervise = true
log = "debug"
"""
CONTEXT = """
servers = ["127.0.0.1:7400", "b"]
credentials = "keys/alice"
insecure = false
cluster = "demo"
"""
