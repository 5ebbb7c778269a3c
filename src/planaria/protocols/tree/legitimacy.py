"""Which invariants of the tree fail, and where: judged by Definition 3, read word by word.

The reference walks down from the root of the reference tree to each host's topmost key; the last
topmost key met on the way is its parent. It shares no code with the search by lookups.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from planaria.core.ids import NodeId
from planaria.core.overlay import Channel, Violation
from planaria.protocols.dht.keys import KeySpace
from planaria.protocols.dht.legitimacy import right_ring
from planaria.protocols.dht.legitimacy import violations as dht_violations
from planaria.protocols.tree.node import TreeHostState
from planaria.protocols.tree.place import TreePlaceState, neighbours_in
from planaria.protocols.tree.reference_tree import BinaryTree, ReferenceTree, WideTree

Walk = Iterator[tuple[int, int, int]]  # root of a subtree, and its first and last key


class RightTree:
    """The one legitimate tree of a list of members."""

    def __init__(self, ids: Sequence[NodeId], space: KeySpace, tree: ReferenceTree) -> None:
        self.tree = tree
        line = sorted((space.place(id) % space.size, id) for id in ids)
        self.topmost: dict[NodeId, int] = {}
        for position, (last, id) in enumerate(line):
            after = line[position - 1][0]
            if len(line) == 1:
                pieces = [(tree.first, tree.last)]
            elif after < last:
                pieces = [(after + 1, last)]
            else:
                pieces = [(tree.first, last), (after + 1, tree.last)]
            self.topmost[id] = self._highest([it for it in pieces if it[0] <= it[1]])
        hosts = {key: id for id, key in self.topmost.items()}
        self.parent: dict[NodeId, NodeId | None] = {}
        for id, key in self.topmost.items():
            above = [hosts[it] for it in self._down_to(key) if it != key and it in hosts]
            self.parent[id] = above[-1] if above else None
        self.children: dict[NodeId, list[NodeId]] = {id: [] for id in ids}
        for id, parent in self.parent.items():
            if parent is not None:
                self.children[parent].append(id)

    def depth(self, id: NodeId) -> int:
        """How many hosts are above."""
        above, depth = self.parent[id], 0
        while above is not None:
            above, depth = self.parent[above], depth + 1
        return depth

    def _down_to(self, key: int) -> list[int]:
        """The keys from the root to `key`."""
        if isinstance(self.tree, WideTree):
            return [*reversed(self.tree.ancestors(key)), key]
        found, low, high = [], self.tree.first, self.tree.last
        while True:
            middle = (low + high + 1) // 2
            found.append(middle)
            if middle == key:
                return found
            low, high = (low, middle - 1) if key < middle else (middle + 1, high)

    def _highest(self, pieces: list[tuple[int, int]]) -> int:
        """The key of `pieces` that a breadth-first walk meets first."""
        tops = []
        for first, last in pieces:
            if isinstance(self.tree, WideTree):
                key = self.tree.top(first, last)
                tops.append((len(self._down_to(key)), key))
                continue
            low, high, depth = self.tree.first, self.tree.last, 1
            while not first <= (middle := (low + high + 1) // 2) <= last:
                low, high = (low, middle - 1) if last < middle else (middle + 1, high)
                depth += 1
            tops.append((depth, middle))
        return min(tops)[1]


@lru_cache(maxsize=4)  # members change rarely, and are judged at every interval's end
def right_tree(ids: tuple[NodeId, ...], space: KeySpace, tree: ReferenceTree) -> RightTree:
    """The legitimate tree of these members."""
    return RightTree(ids, space, tree)


def violations(
    hosts: Mapping[NodeId, TreeHostState], channel: Channel, space: KeySpace, tree: ReferenceTree
) -> list[Violation]:
    """Every invariant of the DHT and of the tree that fails."""
    found = dht_violations({id: host.dht for id, host in hosts.items()}, channel, space)
    present = tuple(id for id in sorted(hosts) if not hosts[id].dht.leaving)
    if not present:
        return found
    right, ring = right_tree(present, space, tree), right_ring(present, space)
    for id, host in sorted(hosts.items()):
        if host.dht.leaving:
            if beside := neighbours_in(host.place):
                found.append(Violation("departure", id, f"still linked to {beside}"))
            continue
        found += _place(id, host.place, right)
        for it in host.place.answers if host.place.searching is not None else ():
            if it.owner not in ring.position or ring.ahead(it.owner, -1) != it.predecessor:
                found.append(Violation("search", id, f"{it} is no keyset"))
    return found


def _place(id: NodeId, place: TreePlaceState, right: RightTree) -> list[Violation]:
    found = []
    if place.parent != right.parent[id]:
        found.append(Violation("parent", id, f"{place.parent}, should be {right.parent[id]}"))
    if sorted(place.children) != sorted(right.children[id]):
        detail = f"{sorted(place.children)}, should be {sorted(right.children[id])}"
        found.append(Violation("children", id, detail))
    degree = len(neighbours_in(place))
    if isinstance(right.tree, BinaryTree) and degree > right.tree.degree:
        found.append(Violation("degree", id, f"{degree} neighbours"))
    return found


def is_tree(links: Mapping[NodeId, list[NodeId]]) -> bool:
    """Do these links, each named at both ends, connect all hosts without a cycle?"""
    edges = {tuple(sorted((id, it))) for id, near in links.items() for it in near}
    agreed = all(id in links.get(it, []) for id, near in links.items() for it in near)
    if not links or not agreed or len(edges) != len(links) - 1:
        return False
    seen, pending = {min(links)}, [min(links)]
    while pending:
        fresh = [it for it in links[pending.pop()] if it not in seen]
        seen.update(fresh)
        pending.extend(fresh)
    return len(seen) == len(links)
