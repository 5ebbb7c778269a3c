"""Reference trees (paper 3, sections 3.1 to 3.3): every key at its place, never materialised.

The keys are `first` to `last`. Every subtree is an interval of keys around its root, which is more
than the property of 3.2 and is what bounds the degree of hosts. Key 0 has a place as well: a host
that owned no key of the tree would be lost.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from planaria.core.errors import UsageError
from planaria.protocols.dht.keys import Keyset

DEGREE_MAX = 64  # of a reference tree: a host keeps a connection to each neighbour

Interval = tuple[int, int]  # both ends included


class ReferenceTree(ABC):
    """A tree of degree `degree` over the keys `first` to `last`."""

    __slots__ = ("degree", "first", "last")

    def __init__(self, degree: int, first: int, last: int) -> None:
        if not 0 <= first <= last:
            raise UsageError(f"keys {first} to {last}: there are none")
        self.degree, self.first, self.last = degree, first, last

    @abstractmethod
    def depth(self, key: int) -> int:
        """How far `key` is from the root."""

    @abstractmethod
    def subtree(self, key: int) -> Interval:
        """All keys at or below `key`."""

    @abstractmethod
    def parent(self, key: int) -> int | None:
        """The key above `key`; None for the root."""

    @abstractmethod
    def children(self, key: int) -> list[int]:
        """The keys directly below `key`, in their order."""

    @abstractmethod
    def top(self, low: int, high: int) -> int:
        """The topmost key from `low` to `high`: the least deep, and of several the smallest."""

    def pieces(self, keyset: Keyset) -> list[Interval]:
        """The intervals of a keyset, two if it goes round the end of the keys."""
        after, last = keyset
        if after == last:
            return [(self.first, self.last)]
        if after < last:
            return [(after + 1, last)]
        return [(self.first, last), *([(after + 1, self.last)] if after < self.last else [])]

    def topmost(self, keyset: Keyset) -> int:
        """The topmost key of a host (Definition 2); of equal depths the smaller key."""
        tops = [self.top(low, high) for low, high in self.pieces(keyset)]
        return min((self.depth(key), key) for key in tops)[1] if len(tops) > 1 else tops[0]


class BinaryTree(ReferenceTree):
    """The binary search tree of Figure 1(a) on keys of `bits` bits; all by arithmetic.

    Key 0, if `first` is 0, is the left child of key 1.
    """

    __slots__ = ("bits",)

    def __init__(self, bits: int, first: int = 0) -> None:
        super().__init__(3, first, (1 << bits) - 1)
        if first > 1:
            raise UsageError("a binary reference tree begins at key 0 or 1")
        self.bits = bits

    def depth(self, key: int) -> int:
        """The lowest one bit tells."""
        return self.bits - (key & -key).bit_length() if key else self.bits

    def subtree(self, key: int) -> Interval:
        """As many keys to both sides as the lowest one bit says."""
        if not key:
            return 0, 0
        wide = (key & -key) - 1
        low = key - wide
        return (self.first if low == 1 else low), key + wide

    def parent(self, key: int) -> int | None:
        """Clear the lowest one bit, set the next."""
        if not key:
            return 1
        low = key & -key
        return None if low == 1 << (self.bits - 1) else (key & ~low) | low << 1

    def children(self, key: int) -> list[int]:
        """Half as far to both sides."""
        half = (key & -key) >> 1
        if half:
            return [key - half, key + half]
        return [0] if key == 1 and self.first == 0 else []

    def top(self, low: int, high: int) -> int:
        """`high` without the bits below the first one in which it differs from `low - 1`."""
        if high == 0:
            return 0
        differ = (max(low, 1) - 1) ^ high
        return high >> (differ.bit_length() - 1) << (differ.bit_length() - 1)


class WideTree(ReferenceTree):
    """A tree as in Figure 1(b): of the children at most one is on the side away from the parent.

    Left open by the paper: the root has one child less than `degree`, the keys below a node are
    shared out evenly among its children, those left over to the left.
    """

    __slots__ = ()

    def __init__(self, degree: int, last: int, first: int = 0) -> None:
        if not 3 <= degree <= DEGREE_MAX:
            raise UsageError(f"degree {degree}: a reference tree has 3 to {DEGREE_MAX}")
        super().__init__(degree, first, last)

    def depth(self, key: int) -> int:
        """Walk down to `key`."""
        return sum(1 for _ in self._way(key)) - 1

    def subtree(self, key: int) -> Interval:
        """Walk down to `key`."""
        *_, node = self._way(key)
        return node.low, node.high

    def parent(self, key: int) -> int | None:
        """The last key on the way down to `key`."""
        way = [node.root for node in self._way(key)]
        return way[-2] if len(way) > 1 else None

    def ancestors(self, key: int) -> list[int]:
        """All keys above `key`, the nearest first."""
        return [node.root for node in self._way(key)][-2::-1]

    def children(self, key: int) -> list[int]:
        """The roots of the parts below."""
        *_, node = self._way(key)
        return [child.root for child in node.below()]

    def top(self, low: int, high: int) -> int:
        """Level by level; of the subtrees on one level at most two lie only partly inside."""
        level = [self._root()]
        while True:
            inside = [node.root for node in level if low <= node.root <= high]
            if inside:
                return inside[0]
            level = [
                child
                for node in level
                for child in node.below()
                if child.low <= high and low <= child.high
            ]

    def _root(self) -> "_Subtree":
        return _Subtree(self.degree, self.first, self.last, self.degree // 2)

    def _way(self, key: int) -> Iterator["_Subtree"]:
        """The subtrees that hold `key`, from the whole tree to the one with root `key`."""
        node = self._root()
        yield node
        while node.root != key:
            node = next(child for child in node.below() if child.low <= key <= child.high)
            yield node


class _Subtree:
    """The keys `low` to `high`, with `left` of the children to the left of the root."""

    __slots__ = ("degree", "high", "left", "low", "root", "sizes")

    def __init__(self, degree: int, low: int, high: int, left: int) -> None:
        self.degree, self.low, self.high, self.left = degree, low, high, left
        each, over = divmod(high - low, degree - 1)
        self.sizes = [each + (place < over) for place in range(degree - 1)]
        self.root = low + sum(self.sizes[:left])

    def below(self) -> list["_Subtree"]:
        """The subtrees of the children: towards the root all but one, away from it one."""
        found, low = [], self.low
        for place, size in enumerate(self.sizes):
            if place == self.left:
                low += 1
            if size:
                inner = self.degree - 2 if place >= self.left else 1
                found.append(_Subtree(self.degree, low, low + size - 1, inner))
            low += size
        return found


def reference_tree(degree: int, bits: int, first: int = 0) -> ReferenceTree:
    """The tree of this degree over keys of `bits` bits."""
    return BinaryTree(bits, first) if degree == 3 else WideTree(degree, (1 << bits) - 1, first)
