"""States and delays that the tree, as it was, did not recover from or raised at."""

from collections.abc import Callable
from random import Random

import pytest

from planaria.core.chance import stream
from planaria.core.ids import NODE_ID_MAX
from planaria.protocols.dht.keys import Keyset
from planaria.protocols.tree.messages import Link
from planaria.protocols.tree.node import TreeHost
from planaria.protocols.tree.overlay import TreeOverlay
from planaria.protocols.tree.place import SEARCHES_MAX, Answer
from planaria.simulator.trial import Spec, must_heal
from raw_memory import live_through


def host(degree: int = 3, n: int = 5) -> TreeHost:
    overlay = TreeOverlay(degree)
    found = overlay.legitimate(n, Random(0))[0]
    assert isinstance(found, TreeHost)
    return found


def test_a_lookup_outlives_hops_of_eight_intervals() -> None:
    """Five hosts: four hops of eight intervals there and back are more than thirty."""
    must_heal(TreeOverlay(), Spec(5, 1, delay="fixed:800"))


@pytest.mark.parametrize("degree", [3, 4])
@pytest.mark.parametrize("searching", [(-1, 5), (7, 1 << 160), (5, -(1 << 100))])
def test_a_search_about_keys_that_there_are_not_ends(degree: int, searching: Keyset) -> None:
    it = host(degree)
    place = it.place
    it.dht.lookup(3)
    place.searching, place.asked = searching, [3]
    it.on_message(Link(1), 1)
    assert place.searching in (None, it.dht.keyset)


@pytest.mark.parametrize("absurd", [-1, NODE_ID_MAX + 1, 1 << 100])
def test_what_names_no_host_is_no_neighbour_and_no_answer(absurd: int) -> None:
    """-1 is how a broker names its first client: it must never be a link."""
    it = host()
    place = it.place
    place.parent, place.children, place.claims = absurd, (absurd, 3), [absurd]
    place.searching, place.answers = it.dht.keyset, [Answer(absurd, 1)]
    it.on_timeout()
    assert absurd not in it.neighbours
    assert all(answer.owner != absurd for answer in place.answers)


@pytest.mark.parametrize("searches", [-(1 << 70), -1, SEARCHES_MAX, 1 << 70])
def test_searches_are_bounded_whatever_the_counter_says(searches: int) -> None:
    place = host().place
    place.searches, place.dirty = searches, True
    assert place.review() == []
    place.on_timeout()
    assert place.searches == 1


@pytest.mark.parametrize("degree", [3, 4])
def test_whatever_memory_holds_no_handler_raises_and_all_it_says_can_be_sent(
    degree: int, seeds: Callable[[int, int], int]
) -> None:
    for seed in range(seeds(60, 3_000) if degree == 3 else seeds(4, 100)):
        live_through(TreeOverlay(degree), stream(seed, "raw"))
