"""Identifiers of nodes, and stable hashes of them.

An id names a node and gives no right to anything: whoever knows it may send to it, no more.
"""

from hashlib import blake2b
from operator import mul
from typing import Annotated

from msgspec import Meta

NODE_ID_MAX = 2**63 - 1  # fits a signed 64-bit column of a trace and of SQLite

NodeId = Annotated[int, Meta(ge=0, le=NODE_ID_MAX)]


def is_node_id(id: int) -> bool:
    """Can `id` name a node? What a fault left in a variable may not, and must not travel."""
    return 0 <= id <= NODE_ID_MAX


ODD = 0x9E3779B97F4A7C15  # of checks
# Not near a power of two: numbers whose high bits alone are wrong must differ here too.
MODULUS = 0x1D2F6E85C3A947B1
# Of so many numbers, what `mixed` multiplies each by; a topic's upkeep asks for it all the time.
_LEADS = tuple(pow(ODD, size, MODULUS) for size in range(8))
_WEIGHTS = tuple(_LEADS[:size][::-1] for size in range(8))
HASH_BITS = 160  # the key space of the DHT; wide enough that hosts never collide


def stable_hash(*parts: int | str | bytes, bits: int = HASH_BITS) -> int:
    """Hash `parts` to an integer of `bits` bits, the same in every process and on every machine."""
    digest = blake2b(digest_size=(bits + 7) // 8)
    for part in parts:
        raw = part if isinstance(part, bytes) else str(part).encode()
        # The length keeps ("ab", "c") and ("a", "bc") apart; the type keeps 1 and "1" apart.
        digest.update(f"{type(part).__name__}:{len(raw)}:".encode())
        digest.update(raw)
    return int.from_bytes(digest.digest(), "big") >> (-bits % 8)


def mixed(*numbers: int) -> int:
    """One number of 61 bits for many: cheap, the same everywhere, no secret.

    It shows that a fault changed one of them, as a check beside them in memory.
    """
    size = len(numbers)
    if size < len(_WEIGHTS):
        weighed: int = sum(map(mul, numbers, _WEIGHTS[size]))
        return (_LEADS[size] + weighed) % MODULUS
    found = 1
    for number in numbers:
        found = found * ODD + number
    return found % MODULUS
