"""Algorithm 5 and its Patricia trie as printed. For tests and benchmarks only.

Two places can be read in two ways, so both readings are here: `hashes` (the paper's formula hashes
the children's labels, its sentence and figure their hashes; erratum T1) and `dangling` (the layout
puts the `else` of line 18 under the inner `if`, the text under the outer one; erratum T2).
"""

from bisect import bisect_left, insort
from collections.abc import Iterable
from hashlib import blake2b
from os.path import commonprefix
from typing import Literal

from planaria.core.ids import NodeId
from planaria.core.message import Message

Hashes = Literal["labels", "hashes"]
Tuples = list[tuple[bytes, bytes]]  # (label, hash), with labels as `pack` makes them


class CheckTrie(Message, frozen=True, tag="literal.checktrie"):
    """CHECKTRIE(sender, tuples)."""

    sender: NodeId
    tuples: Tuples


class CheckAndPublish(Message, frozen=True, tag="literal.checkandpublish"):
    """CHECKANDPUBLISH(sender, tuples, pf)."""

    sender: NodeId
    tuples: Tuples
    prefix: bytes


class Publish(Message, frozen=True, tag="literal.publish"):
    """PUBLISH(P): the publications are told by their keys."""

    keys: list[bytes]


def pack(label: str) -> bytes:
    """A string of bits as bytes, with a leading one to keep its length."""
    number = int("1" + label, 2)
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def unpack(data: bytes) -> str:
    """The inverse of `pack`."""
    return f"{int.from_bytes(data, 'big'):b}"[1:]


class LiteralTrie:
    """The Patricia trie of section 4.2 over strings of bits of one length."""

    def __init__(self, keys: Iterable[str], hashes: Hashes) -> None:
        self.keys = sorted(keys)
        self.hashes = hashes
        self._known: dict[str, bytes] = {}

    def insert(self, key: str) -> None:
        """INSERT(p, T)."""
        if key not in self.below(key):
            insort(self.keys, key)
            for size in range(len(key) + 1):
                self._known.pop(key[:size], None)

    def below(self, prefix: str) -> list[str]:
        """All keys with a prefix."""
        start = bisect_left(self.keys, prefix)
        return self.keys[start : bisect_left(self.keys, prefix + "2", start)]

    def shortest(self, prefix: str) -> str | None:
        """The node with the shortest label that has a prefix."""
        start = bisect_left(self.keys, prefix)
        end = bisect_left(self.keys, prefix + "2", start)
        if start == end:
            return None
        return commonprefix([self.keys[start], self.keys[end - 1]])  # noqa: RUF071 - of bits

    def search(self, label: str) -> bool:
        """SEARCHNODE(l, T): is there a node with exactly this label?"""
        return self.shortest(label) == label

    def children(self, label: str) -> list[str]:
        """The children's labels; none for a leaf."""
        below = (self.shortest(label + bit) for bit in "01")
        return [child for child in below if child is not None]

    def hash(self, label: str) -> bytes:
        """The node's hash value, in the reading `hashes`."""
        if label not in self._known:
            children = self.children(label)
            if not children:
                value = _h(label.encode())
            elif self.hashes == "labels":
                value = _h(b"".join(_h(child.encode()) for child in children))
            else:
                value = _h(b"".join(self.hash(child) for child in children))
            self._known[label] = value
        return self._known[label]


class LiteralSubscriber:
    """A subscriber that runs Algorithm 5 as printed, with one peer."""

    def __init__(
        self, id: NodeId, keys: Iterable[str], *, hashes: Hashes = "labels", dangling: bool = True
    ) -> None:
        self.id = id
        self.trie = LiteralTrie(keys, hashes)
        self.dangling = dangling

    def publish_timeout(self) -> list[Message]:
        """PUBLISHTIMEOUT; an empty trie has no root to send (erratum T5)."""
        root = self.trie.shortest("")
        return [] if root is None else [CheckTrie(self.id, self._tuples([root]))]

    def on_message(self, message: Message) -> list[Message]:
        """What to send to the peer in answer."""
        if isinstance(message, CheckTrie):
            return self._check_trie(message.tuples)
        if isinstance(message, CheckAndPublish):
            answers = self._check_trie(message.tuples)
            keys = self.trie.below(unpack(message.prefix))
            return [*answers, Publish([pack(key) for key in keys])]
        if isinstance(message, Publish):
            for key in message.keys:
                self.trie.insert(unpack(key))
        return []

    def _check_trie(self, tuples: Tuples) -> list[Message]:
        answers: list[Message] = []
        for packed, hash in tuples:
            label = unpack(packed)
            found = self.trie.search(label)
            children = self.trie.children(label) if found else []
            if found and self.trie.hash(label) != hash and children:
                answers.append(CheckTrie(self.id, self._tuples(children)))
            elif found == self.dangling:
                answers.append(self._ask(label))
        return answers

    def _ask(self, label: str) -> Message:
        """Lines 19 to 23."""
        longer = [c for bit in "01" if (c := self.trie.shortest(label + bit)) is not None]
        if not longer:
            return CheckAndPublish(self.id, [], pack(label))
        nearest = min(longer, key=len)
        other = "0" if nearest[len(label)] == "1" else "1"
        return CheckAndPublish(self.id, self._tuples([nearest]), pack(label + other))

    def _tuples(self, labels: list[str]) -> Tuples:
        return [(pack(label), self.trie.hash(label)) for label in labels]


def _h(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()
