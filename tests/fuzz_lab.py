"""Every decoder of bytes that others wrote, with good bytes to begin from and what it may raise.

Hypothesis, plain mutation and atheris (tests/fuzz_atheris.py) all try the same table.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple
from zlib import crc32

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import msgpack

from planaria.core.codec import Codec
from planaria.core.errors import MalformedMessage, UsageError
from planaria.network.admission import Admissions
from planaria.network.charters import judge, seal, seal_locally, seal_void
from planaria.network.client.messages import MESSAGES, Position, Put, Tail
from planaria.network.config import Config, load_config
from planaria.network.connection import CLIENT, VERSIONS, Hello, read_hello
from planaria.network.contacts import Contact, Contacts, from_wire, to_wire
from planaria.network.context import Context, read_context
from planaria.network.frames import Kind, Reader, frame
from planaria.network.identity import AUTHORITY_KEY, Refused, found_cluster, issue, load_key
from planaria.network.link import ACKNOWLEDGED, Link
from planaria.network.overlays.registry import codec
from planaria.network.rights import parse_rights
from planaria.network.store.rows import entry_of, head_of, pack_state, unpack_state
from planaria.network.tls import Credentials
from planaria.protocols.skipring.charter import Charter, voiding
from planaria.protocols.skipring.charter_messages import CharterHints, CharterNews
from planaria.protocols.skipring.deposit_messages import Deposit
from planaria.records.evidence import PUBLISHED, sealer
from planaria.records.lanes import Drops
from planaria.records.lone import lean, whole
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
STREAM = (7, bytes(INCARNATION_BYTES))
PLAIN = sealed(STREAM, 3, [Draft(b"a"), Draft(b"b" * 40)], time=NOW)


class Decoder(NamedTuple):
    """What to try: it gives an answer or raises one of `errors`, in one line, and nothing else.

    What it answers is false for bytes that are no good; all `seeds` are.
    """

    decode: Callable[[bytes], object]
    errors: tuple[type[Exception], ...]
    seeds: Sequence[bytes]


def decoders(home: Path) -> dict[str, Decoder]:
    """All of them; keys and files are made in `home`."""
    found_cluster(home / "keys", "demo")
    return {**of_the_wire(home / "keys"), **of_records(), **of_files(home)}


def of_the_wire(keys: Path) -> dict[str, Decoder]:
    """What comes over links."""
    node = Credentials(issue(keys, "n1", ("node", "supervise")))
    by_admin, by_key, by_authority = signed_charters(keys)
    contact = Contact(node.identity.id, ("127.0.0.1:7400",), 5, True).sign(node)
    contacts = to_wire([contact, Contact(bytes(16), ("a:1", "b"), 3)])
    hello = msgpack.encode(Hello(VERSIONS, node.identity.id, "demo", ("a:1",), CLIENT))
    own, client, malformed = codec(), Codec(MESSAGES), (MalformedMessage,)
    nodes = [
        own.encode(Deposit("news", 1, PLAIN.data, True)),
        own.encode(CharterNews(1, [by_admin])),
        own.encode(CharterHints(1, [("news", 1, bytes(16))])),
    ]
    position = Position(7, bytes(12), 3, ((1, 2),))
    clients = [
        client.encode(Put(1, "news", PLAIN.data)),
        client.encode(Tail(2, "news/#", {"news": [position]}, 0, "a > 3")),
    ]
    frames = [frame(Kind.HELLO, hello) + frame(Kind.BULK, clients[0])]
    owed = [ACKNOWLEDGED.pack(0, 0)]
    known = Contacts()
    known.learn(contact)
    asked = msgpack.encode([1, contact.handle, 3])
    return {
        "frames": Decoder(lambda data: [*Reader().feed(data)], malformed, frames),
        "hello": Decoder(read_hello, (Refused,), [hello]),
        "acknowledgements": Decoder(lambda it: Link().on_acknowledge(it), (), owed),
        "messages of nodes": Decoder(own.decode, malformed, nodes),
        "messages of clients": Decoder(client.decode, malformed, clients),
        "contacts": Decoder(lambda it: _learn(it, node), (), [contacts]),
        "questions for contacts": Decoder(known.answer, (), [asked]),
        "charters": Decoder(judge(node.authority), (), [by_admin, by_authority]),
        "evidence": Decoder(lambda it: _admit(it, node), (MalformedRecord,), [_own(node)]),
        "charters without certificates": Decoder(judge(None), (), [by_key]),
    }


def of_records() -> dict[str, Decoder]:
    """What stands in stores, and travels."""
    rich = Draft(b"{}", b"key", (("unit", b"C"),), NOW * 1_000_000)
    columns = sealed(STREAM, 3, [rich, rich], time=NOW)
    lone = sealed(STREAM, 3, [Draft(b"a")], time=NOW)
    row, delivered = head_of(1, PLAIN), Intervals()
    delivered.add(3, 9)
    state = pack_state(Drops(), 3, delivered)
    sign = sealer(bytes(365), lambda _: bytes(64), PUBLISHED, "news")
    signed = sealed(STREAM, 3, [rich], time=NOW, sign=sign)
    return {
        "records": Decoder(decode, (MalformedRecord,), [PLAIN.data, columns.data, signed.data]),
        "records on their way": Decoder(whole, (MalformedRecord,), [lean(lone.data), PLAIN.data]),
        "rows": Decoder(lambda it: entry_of(1, it), (), [row]),
        "rows with their checksum": Decoder(lambda it: entry_of(1, it + _sum(it)), (), [row[:-4]]),
        "states of streams": Decoder(unpack_state, (), [state]),
        "states with their checksum": Decoder(
            lambda it: unpack_state(_sum(it) + it), (), [state[4:]]
        ),
    }


def of_files(home: Path) -> dict[str, Decoder]:
    """What people write."""
    wrong = (UsageError,)
    return {
        "rights": Decoder(lambda it: parse_rights(_text(it)), wrong, [RIGHTS.encode()]),
        "configurations": Decoder(lambda it: _config(home, it), wrong, [CONFIG.encode()]),
        "contexts": Decoder(lambda it: _context(home, it), wrong, [CONTEXT.encode()]),
    }


def signed_charters(keys: Path) -> list[bytes]:
    """One by an admin, one by a key without a certificate, one by the authority."""
    admin = Credentials(issue(keys, "boss", ("admin", "client")))
    now = int(time.time())  # not before the certificate, however long ago this was imported
    charter = Charter("news", 1, 0, now, allow=(("publish", ("alice",)),))
    return [
        seal(charter, admin),
        seal_locally(charter, Ed25519PrivateKey.generate()),
        seal_void(voiding(admin.identity.id, now), load_key(keys / AUTHORITY_KEY)),
    ]


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


def _sum(data: bytes) -> bytes:
    return crc32(data).to_bytes(4, "little")


def _learn(data: bytes, node: Credentials) -> bool:
    contacts = Contacts(node.authority)
    return sum(contacts.learn(contact) for contact in from_wire(data)) > 0


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _config(home: Path, data: bytes) -> Config:
    path = home / "fuzz.toml"
    path.write_bytes(data)
    return load_config(home / "node", {}, file=path, environment={})


def _context(home: Path, data: bytes) -> Context:
    path = home / "context.toml"
    path.write_bytes(data)
    return read_context(path)


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


def _own(node: Credentials) -> bytes:
    stream = (node.identity.handle, bytes(INCARNATION_BYTES))
    sign = node.sealer(PUBLISHED, "news")
    return sealed(stream, 3, [Draft(b"a"), Draft(b"b")], time=int(time.time()), sign=sign).data


def _admit(data: bytes, node: Credentials) -> bool:
    record, news = decode(data), Admissions(node)("news")
    return news.admits(record) or news.admits_staged(record)
