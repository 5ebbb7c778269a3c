"""The tree over a DHT as printed (paper 3, section 3), for small key spaces.

For tests and reports only. A reference tree is a materialised map from key to parent key, a DHT a
function from key to owner, a keyset a set. Every lookup is counted.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

Parents = Mapping[int, int | None]
Edges = set[frozenset[int]]


def binary_parents(low: int, high: int, above: int | None = None) -> dict[int, int | None]:
    """The balanced binary search tree of Figure 1(a) over the keys `low` to `high`."""
    if low > high:
        return {}
    root = (low + high + 1) // 2
    return {
        root: above,
        **binary_parents(low, root - 1, root),
        **binary_parents(root + 1, high, root),
    }


def wide_parents(degree: int, keys: Sequence[int]) -> dict[int, int | None]:
    """A tree as in Figure 1(b), read as: the root has degree - 1 children, what is left over goes
    to the left, and one child of every other node is on the side away from its parent."""
    found: dict[int, int | None] = {}

    def plant(keys: Sequence[int], above: int | None, left: int) -> None:
        shares = [(len(keys) - 1 + place) // (degree - 1) for place in range(degree - 1)][::-1]
        root = keys[sum(shares[:left])]
        found[root] = above
        start = 0
        for place, share in enumerate(shares):
            start += place == left
            if share:
                inward = 1 if place < left else degree - 2
                plant(keys[start : start + share], root, inward)
            start += share

    plant(sorted(keys), None, degree // 2)
    return found


class LiteralTree:
    """One reference tree and one set of hosts, each at the key that is its name."""

    def __init__(self, parents: Parents, hosts: Iterable[int], keys: Sequence[int] = ()) -> None:
        self.parents = parents
        self.keys = sorted(keys or parents)
        self.below: dict[int | None, list[int]] = {}
        for key in sorted(parents):
            self.below.setdefault(parents[key], []).append(key)
        self.order = self._breadth_first()
        self.hosts = sorted(hosts)
        self.lookups = 0
        self.keysets: dict[int, set[int]] = {host: set() for host in self.hosts}
        self._owner = {key: self._successor(key) for key in self.keys}
        for key, host in self._owner.items():
            self.keysets[host].add(key)
        self._topmost = {host: self._first(keyset) for host, keyset in self.keysets.items()}

    def _breadth_first(self) -> dict[int, int]:
        found: list[int] = []
        pending = deque(self.below[None])
        while pending:
            key = pending.popleft()
            found.append(key)
            pending.extend(self.below.get(key, []))
        return {key: place for place, key in enumerate(found)}

    def _successor(self, key: int) -> int:
        return min((host for host in self.hosts if host >= key), default=self.hosts[0])

    def _first(self, keyset: Iterable[int]) -> int | None:
        planted = [key for key in keyset if key in self.order]
        return min(planted, key=lambda key: self.order[key], default=None)

    def owner(self, key: int) -> int:
        """Query the DHT."""
        self.lookups += 1
        return self._owner[key]

    def topmost(self, host: int) -> int | None:
        """Definition 2; None for a host that owns no key of the tree."""
        return self._topmost[host]

    def parent(self, host: int) -> int | None:
        """'It first determines the parent key k_p of k ...' (3.4)."""
        top = self.topmost(host)
        key = None if top is None else self.parents[top]
        while key is not None:
            owner = self.owner(key)
            if self.topmost(owner) == key:
                return owner
            key = self.parents[key]
        return None

    def children(self, host: int) -> list[int]:
        """'The host carries out a depth first traversal of the subtree rooted at h' (3.4)."""
        found: list[int] = []
        top = self.topmost(host)
        pending = [] if top is None else list(reversed(self.below.get(top, [])))
        while pending:
            key = pending.pop()
            owner = self.owner(key)
            if self.topmost(owner) == key:
                found.append(owner)
            else:
                pending.extend(reversed(self.below.get(key, [])))
        return found

    def neighbours(self, host: int) -> set[int]:
        """Parent and children."""
        above = self.parent(host)
        return {*self.children(host), *([] if above is None else [above])}

    def edges(self) -> Edges:
        """All links, as the children's ends see them."""
        return {
            frozenset((host, above))
            for host in self.hosts
            if (above := self.parent(host)) is not None
        }


class LiteralMaintenance:
    """Hosts that keep neighbour sets and recompute them when notified (3.4, 'Managing ...')."""

    def __init__(
        self, parents: Parents, hosts: Iterable[int], *, on_keyset_change: bool = False
    ) -> None:
        self.parents = parents
        self.on_keyset_change = on_keyset_change
        self.tree = LiteralTree(parents, hosts)
        self.views = {host: self.tree.neighbours(host) for host in self.tree.hosts}

    def change(self, joining: Iterable[int] = (), leaving: Iterable[int] = ()) -> None:
        """Several hosts join and leave at once; the DHT stabilizes, then notifications run out."""
        before, joined, left = self.tree, list(joining), list(leaving)
        hosts = [host for host in [*before.hosts, *joined] if host not in left]
        self.tree = LiteralTree(self.parents, hosts)
        pending = deque(joined)
        for host in left:  # 'host h9 detects a disconnection'
            pending.extend(sorted(self.views.pop(host)))
        if self.on_keyset_change:
            pending.extend(
                host
                for host in hosts
                if host not in joined and self.tree.keysets[host] != before.keysets[host]
            )
        while pending:
            host = pending.popleft()
            if host not in self.tree.keysets:
                continue
            old, new = self.views.get(host, set()), self.tree.neighbours(host)
            self.views[host] = new
            pending.extend(sorted(old ^ new))

    def edges(self) -> Edges:
        """Every link that at least one end believes in."""
        return {frozenset((host, it)) for host, view in self.views.items() for it in view}


def degrees(edges: Edges) -> dict[int, int]:
    """How many neighbours each host has."""
    found: dict[int, int] = {}
    for edge in sorted(sorted(edge) for edge in edges):
        for host in edge:
            found[host] = found.get(host, 0) + 1
    return found


def is_tree(hosts: Sequence[int], edges: Edges) -> bool:
    """Connected, and one edge less than hosts."""
    near: dict[int, list[int]] = {host: [] for host in hosts}
    for one, other in (sorted(edge) for edge in sorted(edges, key=sorted)):
        near.setdefault(one, []).append(other)
        near.setdefault(other, []).append(one)
    if set(near) != set(hosts) or len(edges) != len(hosts) - 1:
        return False
    seen = {hosts[0]}
    pending = [hosts[0]]
    while pending:
        fresh = [it for it in near[pending.pop()] if it not in seen]
        seen.update(fresh)
        pending.extend(fresh)
    return len(seen) == len(hosts)


def lookup_counts(tree: LiteralTree, count: Callable[[int], object]) -> list[int]:
    """How many lookups `count` makes at each host."""
    found = []
    for host in tree.hosts:
        before = tree.lookups
        count(host)
        found.append(tree.lookups - before)
    return found
