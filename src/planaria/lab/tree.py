"""The tree of a list of hosts as a pure function, and the tables behind Figures 3 and 4.

The setting of section 4.1: hosts at random keys of a small key space join until there are N, then
one joins and one leaves in turn. Measured: how many neighbours hosts have, and how large the
reconfiguration area of a join or a leave is, the least subtree that holds both ends of every link
that came or went.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from random import Random

from msgspec import Struct

from planaria.core.errors import UsageError
from planaria.protocols.dht.keys import Keyset
from planaria.protocols.tree.reference_tree import ReferenceTree
from planaria.protocols.tree.search import KnownKeysets, parent

Parents = Mapping[int, int | None]  # hosts named by their keys
Edge = tuple[int, int]

T_95 = 1.96  # for means of hundreds of samples the normal distribution will do


class Mean(Struct, frozen=True):
    """A mean with its 95 % interval, half of it to each side."""

    mean: float
    interval: float


class Degrees(Struct, frozen=True):
    """Figure 3 for one N: the share of hosts with each number of neighbours, over networks."""

    hosts: int
    shares: dict[int, Mean]
    degree_max: int


class Area(Struct, frozen=True):
    """Figure 4 for one N: hosts in the reconfiguration area, with and without the one that came
    or went."""

    hosts: int
    join: Mean
    join_others: Mean
    leave: Mean
    leave_others: Mean


class Change(Struct, frozen=True):
    """One host joined or left: the trees before and after."""

    kind: str
    host: int
    before: Parents
    after: Parents

    @property
    def area(self) -> int:
        """Hosts in the reconfiguration area, without the one that came or went."""
        return len(reconfiguration_area(self.before, self.after)) - (self.kind == "join")

    @property
    def neighbours(self) -> int:
        """How many links the host has while it is there: the ideal area, by section 4.2.2."""
        return degrees(self.after if self.kind == "join" else self.before)[self.host]


class Directory(KnownKeysets):
    """A view that knows all hosts; counts the lookups it answers."""

    __slots__ = ("lookups", "places")

    def __init__(self, tree: ReferenceTree, places: Sequence[int]) -> None:
        super().__init__(tree, ())
        self.places = sorted(places)
        self.lookups = 0

    def keyset(self, position: int) -> Keyset:
        """The keyset of the host at this position in the order of keys."""
        return self.places[position - 1], self.places[position]

    def owner(self, key: int) -> Keyset | None:
        """The first host at or after the key."""
        self.lookups += 1
        return self.keyset(bisect_left(self.places, key) % len(self.places))


def host_tree(tree: ReferenceTree, places: Sequence[int]) -> dict[int, int | None]:
    """The parent of every host, each by the search that a host makes."""
    view = Directory(tree, places)
    found: dict[int, int | None] = {}
    for position, place in enumerate(view.places):
        above = parent(view.keyset(position), view)
        found[place] = None if above is None else above[1]
    return found


def edges(parents: Parents) -> list[Edge]:
    """The links of a tree, each with its smaller end first."""
    return [(min(a, b), max(a, b)) for a, b in parents.items() if b is not None]


def degrees(parents: Parents) -> dict[int, int]:
    """How many neighbours each host has."""
    found = dict.fromkeys(parents, 0)
    for one, other in edges(parents):
        found[one] += 1
        found[other] += 1
    return found


def reconfiguration_area(before: Parents, after: Parents) -> list[int]:
    """The hosts of the least subtree of `after` with all ends of links that came or went."""
    old, new = edges(before), edges(after)
    kept = frozenset(old) & frozenset(new)
    ends = [end for edge in (*old, *new) if edge not in kept for end in edge if end in after]
    if not ends:
        return []
    paths = [_to_root(end, after) for end in dict.fromkeys(ends)]
    common = frozenset(paths[0]).intersection(*paths[1:])
    lowest = next(host for host in paths[0] if host in common)
    found: dict[int, None] = {lowest: None}
    for path in paths:
        found.update(dict.fromkeys(path[: path.index(lowest)]))
    return list(found)


def churn(tree: ReferenceTree, hosts: int, changes: int, rng: Random) -> Iterator[Change]:
    """`hosts` hosts at random keys; then one joins and one leaves, `changes` times (4.1)."""
    size = tree.last - tree.first + 1
    if not 2 <= hosts < size:
        raise UsageError(f"{hosts} hosts on {size} keys: at least 2, and a key must be free")
    places: list[int] = []
    while len(places) < hosts:
        places.append(_free_key(tree, places, rng))
    now = host_tree(tree, places)
    for _ in range(changes):
        joining = _free_key(tree, places, rng)
        places.append(joining)
        now, before = host_tree(tree, places), now
        yield Change("join", joining, before, now)
        leaving = places.pop(rng.randrange(len(places)))
        now, before = host_tree(tree, places), now
        yield Change("leave", leaving, before, now)


def measure(
    tree: ReferenceTree, hosts: int, networks: int, changes: int, rng: Random
) -> tuple[Degrees, Area]:
    """Both figures for `hosts` hosts: `networks` networks with `changes` joins and leaves each."""
    shares: dict[int, list[float]] = {}
    areas: dict[str, list[int]] = {"join": [], "leave": []}
    highest = 0
    for _ in range(networks):
        for change in churn(tree, hosts, changes, rng):
            areas[change.kind].append(change.area)
        counts = list(degrees(change.after).values())
        highest = max(highest, *counts)
        for degree in range(1, max(tree.degree, highest) + 1):
            shares.setdefault(degree, []).append(counts.count(degree) / hosts)
    means = {degree: mean(values) for degree, values in shares.items()}
    return Degrees(hosts, means, highest), Area(
        hosts,
        join=mean([size + 1 for size in areas["join"]]),
        join_others=mean(areas["join"]),
        leave=mean([size + 1 for size in areas["leave"]]),
        leave_others=mean(areas["leave"]),
    )


def mean(values: Sequence[float]) -> Mean:
    """The mean of independent samples, and how far off it may be."""
    n = len(values)
    middle = sum(values) / n
    variance = sum((value - middle) ** 2 for value in values) / max(1, n - 1)
    return Mean(middle, T_95 * sqrt(variance / n))


def _free_key(tree: ReferenceTree, taken: Sequence[int], rng: Random) -> int:
    """Any key at which no host is; there may be too many keys for a list of them."""
    while (key := rng.randint(tree.first, tree.last)) in taken:
        pass
    return key


def _to_root(host: int, parents: Parents) -> list[int]:
    path = [host]
    while (above := parents[path[-1]]) is not None:
        path.append(above)
    return path
