"""Who my parent and my children are, from a few keysets (paper 3, section 3.4).

The tree of hosts of a binary reference tree is the Cartesian tree of the hosts in the order of
their keys, by depth of topmost key. So each neighbour is the owner of a key that is known in
advance or after one more lookup: at most six lookups at any length of keys, where the printed
depth-first search needs as many as the subtree has keys.
"""

from collections.abc import Iterable

from msgspec import Struct

from planaria.protocols.dht.keys import Keyset
from planaria.protocols.tree.reference_tree import Interval, ReferenceTree, WideTree


class Neighbours(Struct, frozen=True):
    """The keysets of the hosts beside a host in the tree."""

    parent: Keyset | None = None
    children: tuple[Keyset, ...] = ()

    def all(self) -> list[Keyset]:
        """Parent first, then the children in the order of their keys."""
        return [*([] if self.parent is None else [self.parent]), *self.children]


class KnownKeysets:
    """What is known of the DHT during one search; `wanted` is what must be looked up to go on."""

    __slots__ = ("keysets", "tree", "wanted")

    def __init__(self, tree: ReferenceTree, keysets: Iterable[Keyset]) -> None:
        self.tree, self.keysets = tree, list(keysets)
        self.wanted: list[int] = []

    def owner(self, key: int) -> Keyset | None:
        """The keyset that holds `key`, if it is known."""
        for keyset in self.keysets:
            after, last = keyset
            if after < key <= last or (after >= last and (key > after or key <= last)):
                return keyset
        self.wanted.append(key)
        return None


def neighbours(mine: Keyset, known: KnownKeysets) -> Neighbours:
    """The neighbours of the host with keyset `mine`; true if `known.wanted` is empty afterwards."""
    if isinstance(known.tree, WideTree):
        return Neighbours(_wide_parent(mine, known), _wide_children(mine, known))
    low, high = known.tree.subtree(known.tree.topmost(mine))
    children = (_left_child(mine, low, known), _right_child(mine, high, known))
    return Neighbours(
        _parent(mine, low, high, known), tuple(child for child in children if child is not None)
    )


def parent(mine: Keyset, known: KnownKeysets) -> Keyset | None:
    """The neighbour above alone, by the same search."""
    if isinstance(known.tree, WideTree):
        return _wide_parent(mine, known)
    low, high = known.tree.subtree(known.tree.topmost(mine))
    return _parent(mine, low, high, known)


def _parent(mine: Keyset, low: int, high: int, known: KnownKeysets) -> Keyset | None:
    """par(k) of Definition 3: of the hosts around my subtree the one with the deeper topmost key.

    Both lookups are made even if one would do: the answer must not depend on which came first.
    """
    tree = known.tree
    top = tree.topmost(mine)
    before = known.owner(low - 1) if low > tree.first else None
    after = known.owner(high + 1) if high < tree.last else None
    found = []
    # A keyset that goes round may own the key beside my subtree and sit on the other side of me.
    if before is not None and tree.topmost(before) < top:
        found.append(before)
    if after is not None and tree.topmost(after) > top:
        found.append(after)
    return max(found, key=lambda keyset: tree.depth(tree.topmost(keyset)), default=None)


def _left_child(mine: Keyset, low: int, known: KnownKeysets) -> Keyset | None:
    """The owner of the topmost key between the beginning of my subtree and my own keys."""
    tree = known.tree
    high = _own_piece(mine, known)[0] - 1
    if low > high:
        return None
    edge = known.owner(low)
    if edge is None:
        return None
    if not low <= tree.topmost(edge) <= high:  # it only reaches into the region: leave it out
        low = _piece_with(edge, low, known)[1] + 1
    return known.owner(tree.top(low, high)) if low <= high else None


def _right_child(mine: Keyset, high: int, known: KnownKeysets) -> Keyset | None:
    """The mirror image of the left child."""
    tree = known.tree
    low = _own_piece(mine, known)[1] + 1
    if low > high:
        return None
    edge = known.owner(high)
    if edge is None:
        return None
    if not low <= tree.topmost(edge) <= high:
        high = _piece_with(edge, high, known)[0] - 1
    return known.owner(tree.top(low, high)) if low <= high else None


def _own_piece(mine: Keyset, known: KnownKeysets) -> Interval:
    return _piece_with(mine, known.tree.topmost(mine), known)


def _piece_with(keyset: Keyset, key: int, known: KnownKeysets) -> Interval:
    """The interval of `keyset` that holds `key`."""
    pieces = known.tree.pieces(keyset)
    return next((piece for piece in pieces if piece[0] <= key <= piece[1]), pieces[0])


def _wide_parent(mine: Keyset, known: KnownKeysets) -> Keyset | None:
    """Up from my topmost key to the first key that is its owner's topmost (as printed)."""
    tree = known.tree
    assert isinstance(tree, WideTree)
    for key in tree.ancestors(tree.topmost(mine)):
        owner = known.owner(key)
        if owner is None:
            return None
        if tree.topmost(owner) == key:
            return owner
    return None


def _wide_children(mine: Keyset, known: KnownKeysets) -> tuple[Keyset, ...]:
    """Down from my topmost key, leaving out what belongs to hosts that sit elsewhere."""
    tree = known.tree
    found: list[Keyset] = []
    pending = tree.children(tree.topmost(mine))[::-1]
    while pending:
        key = pending.pop()
        if _owners_sit_elsewhere(tree.subtree(key), known):
            continue
        owner = known.owner(key)
        if owner is None:
            continue
        if tree.topmost(owner) == key:
            found.append(owner)
        else:
            pending += tree.children(key)[::-1]
    return tuple(found)


def _owners_sit_elsewhere(region: Interval, known: KnownKeysets) -> bool:
    """Do all keys of `region` belong to known hosts whose topmost key is not in it?"""
    key, high = region
    wanted = len(known.wanted)
    while key <= high:
        owner = known.owner(key)
        if owner is None or region[0] <= known.tree.topmost(owner) <= high:
            del known.wanted[wanted:]
            return False
        key = _piece_with(owner, key, known)[1] + 1
    return True
