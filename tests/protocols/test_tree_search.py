"""The search for neighbours against the literal one: all sets of 15 and 16 keys, and far beyond."""

from bisect import bisect_left
from collections.abc import Callable
from functools import cache
from math import ceil, log2
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planaria.core.errors import UsageError
from planaria.core.ids import stable_hash
from planaria.lab.tree import Directory, degrees, edges, host_tree
from planaria.literal.tree import LiteralTree, binary_parents, wide_parents
from planaria.protocols.dht.keys import Keyset, KeySpace
from planaria.protocols.tree.legitimacy import RightTree
from planaria.protocols.tree.reference_tree import BinaryTree, ReferenceTree, WideTree
from planaria.protocols.tree.search import KnownKeysets, Neighbours, neighbours

LOOKUPS = 6


class Remembering(BinaryTree):
    """The same tree, with what was computed once remembered: there are few different keysets."""

    def __init__(self, bits: int, first: int) -> None:
        super().__init__(bits, first)
        self._known: dict[Keyset, int] = {}

    def topmost(self, keyset: Keyset) -> int:
        if keyset not in self._known:
            self._known[keyset] = super().topmost(keyset)
        return self._known[keyset]


class Counting(KnownKeysets):
    """Answers from a list of owners, and counts."""

    def __init__(self, tree: ReferenceTree, keysets: list[Keyset]) -> None:
        super().__init__(tree, ())
        self.by_key, self.asked = keysets, 0

    def owner(self, key: int) -> Keyset | None:
        self.asked += 1
        return self.by_key[key]


class LiteralLinks:
    """Definitions 2 and 3 on a set of hosts, with as few Python objects as possible."""

    def __init__(
        self, first: int, last: int, order: dict[int, int], above: dict[int, int | None]
    ) -> None:
        self.first, self.last, self.order, self.above = first, last, order, above
        self.topmost = cache(self._topmost)

    def _topmost(self, keyset: Keyset) -> int:
        after, last = keyset
        keys = [
            key
            for key in range(self.first, self.last + 1)
            if after < key <= last or (after >= last and (key > after or key <= last))
        ]
        return min(keys, key=self.order.__getitem__)

    def owners(self, hosts: list[int]) -> list[Keyset]:
        """The keyset of the owner of each key; the key is the place in the list."""
        found: list[Keyset] = [(0, 0)] * (self.last + 1)
        for place, host in enumerate(hosts):
            keyset = (hosts[place - 1], host)
            key = host
            while True:
                found[key] = keyset
                key = self.last if key == self.first else key - 1
                if key == keyset[0] or key == host:
                    break
        return found

    def parents(self, owners: list[Keyset], hosts: list[int]) -> dict[int, int | None]:
        """Up from each topmost key to the next."""
        found: dict[int, int | None] = {}
        for host in hosts:
            key = self.above[self.topmost(owners[host])]
            while key is not None and self.topmost(owners[key]) != key:
                key = self.above[key]
            found[host] = None if key is None else owners[key][1]
        return found


def literal(first: int, last: int) -> LiteralLinks:
    above = binary_parents(first, last)
    return LiteralLinks(first, last, LiteralTree(above, [last]).order, above)


@pytest.mark.parametrize("first", [1, 0])
def test_search_equals_the_definitions_on_every_host_set_of(
    first: int, seeds: Callable[[int, int], int]
) -> None:
    """All 32,767 sets of 15 keys and all 65,535 of 16: parents, children, degree, lookups.

    By day a third of the latter.
    """
    tree, reference = Remembering(4, first), literal(first, 15)
    size, most = 16 - first, 0
    for bits in range(1, 1 << size, 1 if first else seeds(3, 1)):
        hosts = [first + place for place in range(size) if bits >> place & 1]
        owners = reference.owners(hosts)
        parents = reference.parents(owners, hosts)
        children: dict[int, list[int]] = {host: [] for host in hosts}
        for host in hosts:
            above = parents[host]
            if above is not None:
                children[above].append(host)
        for host in hosts:
            view = Counting(tree, owners)
            found = neighbours(owners[host], view)
            assert (found.parent[1] if found.parent else None) == parents[host], (hosts, host)
            below = [last for _, last in found.children]
            assert sorted(below) == children[host], (hosts, host)
            assert len(below) + (found.parent is not None) <= 3
            most = max(most, view.asked)
        assert list(parents.values()).count(None) == 1
    assert most == LOOKUPS


@pytest.mark.parametrize("first", [1, 0])
def test_quick_reference_equals_the_literal_text(first: int) -> None:
    """On all sets of 7 and 8 keys the reference above is the algorithm as printed."""
    reference, above = literal(first, 7), binary_parents(first, 7)
    size = 8 - first
    for bits in range(1, 1 << size):
        hosts = [first + place for place in range(size) if bits >> place & 1]
        printed = LiteralTree(above, hosts)
        owners = reference.owners(hosts)
        parents = reference.parents(owners, hosts)
        for host in hosts:
            assert printed.parent(host) == parents[host]
            assert printed.children(host) == sorted(
                printed.children(host), key=lambda it: reference.topmost(owners[it])
            )
            assert sorted(printed.children(host)) == [it for it in hosts if parents[it] == host]


def test_search_asks_in_at_most_two_rounds() -> None:
    """What a host does with a real DHT: ask all that is known to be needed, then once more."""
    tree = BinaryTree(160)
    places = sorted(stable_hash("host", id) for id in range(500))
    directory = Directory(tree, places)
    for position in range(500):
        mine = directory.keyset(position)
        known, rounds = [mine], 0
        while True:
            view = KnownKeysets(tree, known)
            found = neighbours(mine, view)
            if not view.wanted:
                break
            rounds += 1
            for key in view.wanted:
                owner = directory.owner(key)
                assert owner is not None
                known.append(owner)
        assert rounds <= 2
        assert len(known) <= 1 + LOOKUPS
        assert found == neighbours(mine, directory)


def test_hundred_thousand_hosts_with_keys_of_160_bits_form_a_tree() -> None:
    tree = BinaryTree(160)
    places = sorted(stable_hash("host", id) for id in range(100_000))
    directory = Directory(tree, places)
    parents: dict[int, int | None] = {}
    for position, place in enumerate(places):
        found = neighbours(directory.keyset(position), directory)
        parents[place] = None if found.parent is None else found.parent[1]
    assert directory.lookups <= LOOKUPS * len(places)
    assert max(degrees(parents).values()) == 3
    assert list(parents.values()).count(None) == 1
    depth: dict[int, int] = {}
    for place in sorted(places, key=lambda it: tree.depth(tree.topmost(_keyset(places, it)))):
        above = parents[place]
        depth[place] = 0 if above is None else depth[above] + 1  # above is less deep: no cycle
    assert ceil(log2(100_000)) <= max(depth.values()) <= 40


def _keyset(places: list[int], place: int) -> Keyset:
    position = bisect_left(places, place)
    return places[position - 1], place


@pytest.mark.parametrize("n", [1, 2, 3, 40, 2000])
def test_both_ends_agree_and_equal_definition_3_on_160_bits(n: int) -> None:
    tree, space = BinaryTree(160), KeySpace()
    right = RightTree(list(range(n)), space, tree)
    directory = Directory(tree, [space.key(id) for id in range(n)])
    ids = {space.key(id): id for id in range(n)}
    for position, place in enumerate(directory.places):
        found = neighbours(directory.keyset(position), directory)
        id = ids[place]
        assert (ids[found.parent[1]] if found.parent else None) == right.parent[id]
        assert sorted(ids[last] for _, last in found.children) == sorted(right.children[id])


@given(
    bits=st.integers(1, 12),
    chosen=st.lists(st.integers(0, 4095), min_size=1, max_size=40),
    ends=st.booleans(),
)
def test_any_hosts_form_one_tree_of_degree_three(bits: int, chosen: list[int], ends: bool) -> None:
    """Hosts at both ends of the key space, wrapped keysets and ties of depth included."""
    tree = BinaryTree(bits)
    places = sorted({place % (1 << bits) for place in chosen} | ({0, tree.last} if ends else set()))
    parents = host_tree(tree, places)
    assert len(edges(parents)) == len(places) - 1
    assert max(degrees(parents).values()) <= 3
    for place in places:
        seen, above = 0, parents[place]
        while above is not None:
            seen, above = seen + 1, parents[above]
        assert seen < len(places)


@pytest.mark.parametrize("degree", [3, 4, 5, 8])
def test_wide_search_equals_the_literal_text(degree: int) -> None:
    rng = Random(degree)
    for last in (1, 4, 11, 63):
        tree, above = WideTree(degree, last), wide_parents(degree, range(last + 1))
        for _ in range(40):
            hosts = sorted(rng.sample(range(last + 1), rng.randint(1, min(20, last + 1))))
            printed = LiteralTree(above, hosts)
            view = Directory(tree, hosts)
            for position, host in enumerate(hosts):
                found = neighbours(view.keyset(position), view)
                assert (found.parent[1] if found.parent else None) == printed.parent(host)
                assert [it for _, it in found.children] == printed.children(host)


@pytest.mark.parametrize("degree", [3, 4, 7])
def test_wide_reference_tree_equals_the_literal_one(degree: int) -> None:
    for last in (0, 1, 6, 40):
        tree, above = WideTree(degree, last), wide_parents(degree, range(last + 1))
        literal_order = LiteralTree(above, [0]).order
        for key in range(last + 1):
            assert tree.parent(key) == above[key]
            assert tree.children(key) == sorted(it for it in above if above[it] == key)
            low, high = tree.subtree(key)
            assert all(_is_below(it, key, above) for it in range(low, high + 1))
        for low in range(last + 1):
            for high in range(low, last + 1):
                first = min(range(low, high + 1), key=literal_order.__getitem__)
                assert tree.top(low, high) == first


def _is_below(key: int, root: int, above: dict[int, int | None]) -> bool:
    here: int | None = key
    while here is not None and here != root:
        here = above[here]
    return here == root


def test_wide_tree_of_degree_three_is_the_binary_tree() -> None:
    wide, binary = WideTree(3, 255), BinaryTree(8)
    for key in range(256):
        assert wide.parent(key) == binary.parent(key)
        assert wide.children(key) == binary.children(key)
        assert wide.subtree(key) == binary.subtree(key)
        assert wide.depth(key) == binary.depth(key)
    rng = Random(1)
    for _ in range(500):
        low, high = sorted(rng.choices(range(256), k=2))
        assert wide.top(low, high) == binary.top(low, high)


def test_wide_search_of_long_keys_needs_few_lookups() -> None:
    tree = WideTree(4, 2**160 - 1)
    view = Directory(tree, [stable_hash("host", id) for id in range(200)])
    asked = []
    for position in range(0, 200, 10):
        mine = view.keyset(position)
        known = [mine]
        for _ in range(200):
            partial = KnownKeysets(tree, known)
            neighbours(mine, partial)
            if not partial.wanted:
                break
            for key in dict.fromkeys(partial.wanted):
                owner = view.owner(key)
                assert owner is not None
                known.append(owner)
        asked.append(len(known) - 1)
    assert max(asked) < 60


def test_reference_tree_refuses_what_cannot_be() -> None:
    for wrong in (lambda: WideTree(2, 10), lambda: BinaryTree(4, 2), lambda: WideTree(3, 1, 5)):
        with pytest.raises(UsageError):
            wrong()


def test_lonely_host_owns_all_keys_and_has_no_neighbours() -> None:
    for tree in (BinaryTree(160), WideTree(5, 2**160 - 1)):
        view = KnownKeysets(tree, [(7, 7)])
        assert neighbours((7, 7), view) == Neighbours()
        assert view.wanted == []
