"""Keys of the DHT, who owns them, and which node is responsible for a topic.

Hosts sit on a ring of keys at places that a stable hash of their id gives. A host owns the keys
from its predecessor's place (excluded) to its own (included).
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Annotated

from msgspec import Meta

from planaria.core.errors import UsageError
from planaria.core.ids import HASH_BITS, NodeId, stable_hash

Label = Annotated[bytes, Meta(max_length=HASH_BITS // 8)]  # a key on the wire, big-endian
Keyset = tuple[int, int]  # the keys after the first place, up to and with the second


def hashed_place(id: NodeId) -> int:
    """Where host `id` sits among 2^160 keys."""
    return stable_hash("host", id)


class KeySpace:
    """The ring of 2^bits keys, and the place of every host on it."""

    __slots__ = ("bits", "place", "size")

    def __init__(
        self, bits: int = HASH_BITS, place: Callable[[NodeId], int] = hashed_place
    ) -> None:
        if not 1 <= bits <= HASH_BITS:
            raise UsageError(f"{bits} bits: a key has 1 to {HASH_BITS}")
        self.bits, self.size, self.place = bits, 1 << bits, place

    def key(self, id: NodeId) -> int:
        """The place of host `id`: nobody can be told a false one."""
        return self.place(id) % self.size

    def distance(self, start: int, end: int) -> int:
        """How far `end` is from `start`, going up and round."""
        return (end - start) % self.size

    def label(self, key: int) -> bytes:
        """`key` as it travels and as the sorted ring orders it."""
        return key.to_bytes((self.bits + 7) // 8, "big")

    def ref(self, id: NodeId) -> tuple[bytes, NodeId]:
        """Host `id` as a member of the sorted ring: its label, and itself."""
        return self.label(self.key(id)), id

    def holds(self, keyset: Keyset, key: int) -> bool:
        """Is `key` in `keyset`?"""
        after, last = keyset
        if after == last:
            return True
        return 0 < self.distance(after, key) <= self.distance(after, last)

    def topic_key(self, topic: str) -> int:
        """The key of a topic: its owner is the topic's supervisor."""
        return stable_hash("topic", topic) >> (HASH_BITS - self.bits)


class Members:
    """A list of members as the DHT will see it: consistent hashing as a pure function."""

    __slots__ = ("_ids", "_keys", "space")

    def __init__(self, ids: Iterable[NodeId], space: KeySpace | None = None) -> None:
        self.space = space or KeySpace()
        line = sorted((self.space.key(id), id) for id in dict.fromkeys(ids))
        if not line:
            raise UsageError("nobody owns a key where there are no members")
        self._keys = [key for key, _ in line]
        self._ids = [id for _, id in line]

    def owner(self, key: int) -> NodeId:
        """The member that owns `key`: the first at or after it, going round."""
        return self._ids[bisect_left(self._keys, key % self.space.size) % len(self._ids)]

    def predecessor(self, id: NodeId) -> NodeId:
        """The member before member `id`."""
        return self._ids[bisect_left(self._keys, self.space.key(id)) - 1]

    def responsible(self, topic: str) -> NodeId:
        """The member that supervises `topic`; a change of members moves few topics."""
        return self.owner(self.space.topic_key(topic))
