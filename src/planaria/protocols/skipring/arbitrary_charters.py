"""Arbitrary states of charters, and arbitrary messages about them."""

from collections.abc import Sequence
from random import Random

from planaria.core.chance import any_integer
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.protocols.skipring.charter import HASH_BYTES, VOID, Charter, encode_charter
from planaria.protocols.skipring.charter_messages import (
    AskCharters,
    CharterHints,
    CharterNews,
    ChartersFound,
    SeekCharters,
)
from planaria.protocols.skipring.charters import Charters

NAMES = ("ghost", "", "news/+", "$SYS/x", VOID, f"{VOID}00", f"{VOID}zz", "x" * 2000)


def corrupt_charters(charters: Charters, topics: Sequence[str], rng: Random) -> None:
    """Any bytes under any names, and any turns."""
    names = [*topics, *NAMES]
    charters.kept = {
        name: [any_bytes(topics, rng) for _ in range(rng.randrange(5))]
        for name in rng.sample(names, rng.randrange(len(names)))
    }
    charters.hinted, charters.audited = any_integer(rng, 0, 64), any_integer(rng, 0, 64)


def any_bytes(topics: Sequence[str], rng: Random) -> bytes:
    """A charter that nobody signed, or nothing of the kind."""
    if rng.random() < 0.5:
        return rng.randbytes(rng.randrange(40))
    version = rng.randrange(1, 1 << 40)
    return encode_charter(Charter(rng.choice(topics), version, version - 1, 0))


def any_charter_message(topics: Sequence[str], ids: Sequence[NodeId], rng: Random) -> Message:
    """A message of any kind with any content that a wire takes."""
    names = [*topics, *NAMES]
    sender, name = rng.choice(ids), rng.choice(names)
    hint = (name, rng.randrange(1 << 62), rng.randbytes(rng.randrange(HASH_BYTES + 1)))
    return rng.choice(
        [
            CharterHints(sender, [hint]),
            AskCharters(sender, [name]),
            CharterNews(sender, [any_bytes(topics, rng)]),
            SeekCharters(sender, [name]),
            ChartersFound(sender, [name], [any_bytes(topics, rng)]),
        ]
    )
