"""No set of false beliefs sustains itself: of every overlay the greatest such set is empty.

A false fact is sustained by others if what they make their holders say lets it be believed again,
by the real handlers. Take away what nothing sustains, again and again: what is left could live for
ever under some schedule. The ring's shortcuts are in `test_ring_counterexamples.py`.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from random import Random
from typing import TypeVar

import pytest

from planaria.filters.filters import filter_id
from planaria.filters.sql import parse
from planaria.protocols.dht.fingers import Fingers
from planaria.protocols.dht.host_keys import HostKeys
from planaria.protocols.dht.messages import Finger
from planaria.protocols.dht.overlay import DhtOverlay
from planaria.protocols.gossip.hierarchy import Hierarchy
from planaria.protocols.gossip.links import LINK_AGE_MAX, Links
from planaria.protocols.gossip.membership import Membership
from planaria.protocols.gossip.messages import AGE_MAX
from planaria.protocols.gossip.parameters import Parameters
from planaria.protocols.mobile.heights import Heights
from planaria.protocols.routing.announcer import Announcer
from planaria.protocols.routing.leases import LeaseTable

Fact = TypeVar("Fact", bound=Hashable)
DEAD = 99


def greatest(support: Mapping[Fact, Sequence[Iterable[Fact]]]) -> set[Fact]:
    """The greatest set of facts each of which is sustained by some of the set together."""
    left = set(support)
    while True:
        kept = {fact for fact in left if any(left.issuperset(it) for it in support[fact])}
        if kept == left:
            return left
        left = kept


def test_the_greatest_set_is_what_confirms_one_another() -> None:
    support = {1: [[2]], 2: [[1]], 3: [[4]], 4: [[5]], 5: [], 6: [[1, 5], [2, 3]], 7: [[1, 2]]}
    assert greatest(support) == {1, 2, 7}


# Fingers of the DHT: level i + 1 is what level i says


def finger_facts(n: int) -> dict[tuple[int, int, int], list[list[tuple[int, int, int]]]]:
    """Every false finger above the successor, and which false ones a host could have it from."""
    space = DhtOverlay().space
    keys = HostKeys(space)
    ring = sorted(range(n), key=keys.key)
    levels = range(n.bit_length() + 1)

    def right(host: int, level: int) -> int | None:
        ahead = 1 << level
        return ring[(ring.index(host) + ahead) % n] if ahead < n else None

    def is_false(fact: tuple[int, int, int]) -> bool:
        return right(fact[0], fact[1]) != fact[2]

    known = [*range(n), DEAD]
    everything = [(x, level, t) for x in range(n) for level in levels for t in known if t != x]
    false = [it for it in everything if it[1] > 0 and is_false(it)]
    support: dict[tuple[int, int, int], list[list[tuple[int, int, int]]]] = {it: [] for it in false}
    for x, level, y in everything:
        if y == DEAD or (level == 0 and is_false((x, 0, y))):
            continue  # the dead say nothing; level 0 is the successor
        for t in known:
            if t == y or (level == 0 and right(y, 0) != t):
                continue
            fingers = Fingers(x, HostKeys(space))
            fingers.known = {level: y}
            fingers.on_finger(Finger(y, level, t))
            if fingers.known.get(level + 1) == t and (x, level + 1, t) in support:
                needed = [it for it in ((x, level, y), (y, level, t)) if is_false(it)]
                support[x, level + 1, t].append(needed)
    return support


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9])
def test_no_false_fingers_confirm_one_another(n: int) -> None:
    support = finger_facts(n)
    assert n < 3 or any(support.values())  # false ones do lead to false ones, a level higher
    assert greatest(support) == set()


# News of a dead process: an age in a view, or in a table of superprocesses


def test_no_news_of_the_dead_in_views_confirms_itself() -> None:
    """By age: what is sustained by news of the same age or younger would never die."""
    support: dict[int, list[list[int]]] = {age: [] for age in range(AGE_MAX + 1)}
    for age in support:
        teller = Membership(1, "a", view={2: 0, DEAD: age}, size=3)
        for asked in (True, False):
            hearer = Membership(2, "a", view={1: 0}, size=3)
            word = teller._request(2, Random(1), ()) if asked else hearer._request(1, Random(1), ())
            if asked:
                hearer.on_shuffle(word, Parameters(), Random(1), ())
            else:
                [answer] = teller.on_shuffle(word, Parameters(), Random(1), ())
                hearer.on_shuffle(answer.message, Parameters(), Random(1), ())  # type: ignore[arg-type]
            if (heard := hearer.view.get(DEAD)) is not None:
                for older in range(heard, AGE_MAX + 1):  # it may wait there before it is told on
                    support[older].append([age])
    assert any(support.values())
    assert greatest(support) == set()


def test_no_news_of_a_dead_superprocess_confirms_itself() -> None:
    support: dict[int, list[list[int]]] = {age: [] for age in range(LINK_AGE_MAX + 1)}
    for age in support:
        teller, hearer = Links(1, "a/b", {DEAD: ("a", age)}), Links(2, "a/b")
        hearer.merge(teller.table(), Hierarchy(), 3, Random(1))
        if DEAD in hearer.contacts:
            for older in range(hearer.contacts[DEAD][1], LINK_AGE_MAX + 1):
                support[older].append([age])
    assert any(support.values())
    assert greatest(support) == set()


# Heights: a beat tells of its sender alone


def test_no_view_of_a_height_confirms_another() -> None:
    """Who hears of a neighbour believes nothing new of others: a view comes from its owner."""
    node = Heights(1, Random(1))
    node.views = {2: (7, 5), 3: (4, 6)}
    for height in range(9):
        other = Heights(2, Random(2))
        other.height, other.views = height, {1: (3, 1), 3: (100, 9)}
        for whole in (True, False):
            node.hear(2, other.word(1, whole=whole))
            assert node.views[3] == (4, 6)


# Leases: a broker tells a neighbour what it has from the others


def lease_facts(
    links: Mapping[int, Sequence[int]],
) -> dict[tuple[int, int], list[list[tuple[int, int]]]]:
    """An entry at x from y that no client wants, and the entry at y by which y tells it to x."""
    (filter,) = parse("a = 1")
    support: dict[tuple[int, int], list[list[tuple[int, int]]]] = {
        (x, y): [] for x, near in links.items() for y in near
    }
    for y, near in links.items():
        for z in near:
            leases = LeaseTable(pi=9)
            leases.insert(z, filter_id(filter), filter)
            announcer = Announcer(y, "simple", 0.0, list)
            for x in near:
                if announcer._wanted_by(x, leases.entries):
                    support[x, y].append([(y, z)])
    return support


def test_no_false_leases_confirm_one_another_on_a_tree() -> None:
    tree = {0: [1], 1: [0, 2, 5], 2: [1, 3, 4], 3: [2], 4: [2], 5: [1]}
    support = lease_facts(tree)
    assert any(support.values())
    assert greatest(support) == set()


def test_false_leases_would_confirm_one_another_on_a_cycle() -> None:
    """Why routing needs the tree to be right first: the composition of layers."""
    assert greatest(lease_facts({0: [1, 2], 1: [0, 2], 2: [0, 1]})) != set()
