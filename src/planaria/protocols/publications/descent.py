"""Region-covering descent: Algorithm 5 with erratum T6, without state on either side.

A region says all that its sender holds under a label. The receiver pushes what it holds outside
the listed subtrees, and answers each subtree that differs with a region of its own, whose label
is longer. So one start finds the losses of both sides, and every descent ends.
"""

from collections.abc import Iterator
from typing import NamedTuple

from planaria.protocols.publications.trie import Trie, extends

LEVELS = 2  # levels per message: half the messages of one, a third more bytes
ROOT_LEVELS = 4  # at once below a root, where nearly all subtrees differ anyway


class Listing(NamedTuple):
    """What one side holds under `label`: inner nodes (label, short hash) and leaves (keys)."""

    label: int
    inner: list[tuple[int, int]]
    leaves: list[int]


def short_hash(full: bytes) -> int:
    """The first 64 bits of a hash: what travels."""
    return int.from_bytes(full[:8], "big")


def listing(trie: Trie, label: int, leaves_max: int, levels: int = LEVELS) -> Listing:
    """All that `trie` holds under `label`, key by key if these are at most `leaves_max`."""
    inner, leaves = trie.cover(label, levels, leaves_max)
    return Listing(label, [(node, short_hash(full)) for node, full in inner], leaves)


def lacking(trie: Trie, theirs: Listing) -> Iterator[int]:
    """Our keys that their listing leaves out."""
    top = 1 << trie.width
    listed = [node for node, _ in theirs.inner] + [top | key for key in theirs.leaves]
    return trie.keys(theirs.label, listed)


def answer(trie: Trie, theirs: Listing, leaves_max: int) -> list[Listing]:
    """Our own listings for what differs in theirs; an empty one asks for all that they hold.

    A listed label that is not longer than the listing's own is false and gets no answer.
    """
    top = 1 << trie.width
    different = [
        label
        for label, hash in theirs.inner
        if theirs.label < label < top
        and extends(label, theirs.label)
        and short_hash(trie.hash_of(label)) != hash
    ]
    different += [
        top | key
        for key in theirs.leaves
        if 0 <= key < top and extends(top | key, theirs.label) and key not in trie
    ]
    return [listing(trie, label, leaves_max) for label in different]
