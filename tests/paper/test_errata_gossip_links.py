"""Errata 2.15-2.17 of the second paper: Figures 4 and 6 as printed, amended one by one."""

from collections.abc import Sequence
from random import Random

import pytest

from planaria.literal.gossip_links import AnsContact, LiteralLinkProcess, above
from planaria.simulator.engine import Simulator

GROUP, SUPER = 10, 5  # T1 searches, T0 is to be found
ALL = ("start", "stop", "root", "narrow", "again", "empty")


def searched(
    amended: Sequence[str], seed: int, topics: Sequence[str] | None = None, intervals: int = 20
) -> list[LiteralLinkProcess]:
    """The searching processes after a while, in a connected random neighbourhood."""
    rng = Random(seed)
    named = list(topics or [".a"] * SUPER + [".a.b"] * GROUP)
    simulator = Simulator(seed)
    ids = range(len(named))
    nodes = []
    for id in ids:
        around = rng.sample([other for other in ids if other != id], 4)
        nodes.append(LiteralLinkProcess(id, named[id], around, amended))
        simulator.add(nodes[-1])
    for node in nodes:
        if node.topic != named[-1]:
            node.searching = False
            node.stable = {-1: "."}
    for _ in range(intervals):
        simulator.run_interval()
    return [node for node in nodes if node.topic == named[-1]]


@pytest.mark.parametrize("seed", range(3))
def test_erratum_15_literally_the_own_group_is_found_and_filed_as_superprocesses(seed: int) -> None:
    nodes = searched((), seed)
    held = [topic for node in nodes for topic in node.stable.values()]
    assert held
    assert set(held) == {".a.b"}
    assert not any(node.searching for node in nodes)  # and there the search stops


@pytest.mark.parametrize("seed", range(3))
def test_erratum_15_with_only_the_start_mended_the_search_never_stops(seed: int) -> None:
    nodes = searched(("start", "root"), seed, intervals=60)
    assert all(node.searching for node in nodes)


@pytest.mark.parametrize("seed", range(3))
def test_erratum_15_with_super_in_both_places_it_finds_and_stops(seed: int) -> None:
    nodes = searched(("start", "stop", "root", "narrow", "again"), seed)
    assert not any(node.searching for node in nodes)
    assert {topic for node in nodes for topic in node.stable.values()} == {".a"}


def test_erratum_16_there_is_nothing_above_the_root() -> None:
    with pytest.raises(ValueError, match="super"):
        above(".")
    lonely = LiteralLinkProcess(1, ".a", [], ("start", "stop"))
    lonely.on_timeout()
    with pytest.raises(ValueError, match="super"):
        lonely.on_timeout()
    guarded = LiteralLinkProcess(1, ".a", [], ("start", "stop", "root"))
    for _ in range(5):
        guarded.on_timeout()
    assert guarded.init == (".",)


def test_erratum_16_after_narrowing_the_search_widens_again_at_once() -> None:
    topics = ["."] * 5 + [".a.b.c"] * GROUP  # nobody wants .a or .a.b: the nearest is the root
    literal = searched(("start", "stop", "root", "again"), 1, topics)
    assert all("." in node.init for node in literal)
    amended = searched(("start", "stop", "root", "again", "narrow"), 1, topics)
    assert all(node.init == (".a.b", ".a") for node in amended)
    assert {topic for node in amended for topic in node.stable.values()} == {"."}


def test_erratum_16_an_enlarged_message_is_taken_for_the_same() -> None:
    topics = ["."] * 2 + [".x"] * 6 + [".a.b.c"] * GROUP
    dropped = searched(("start", "stop", "root", "narrow"), 2, topics)
    assert sum(not node.stable for node in dropped) > GROUP // 2
    amended = searched(("start", "stop", "root", "narrow", "again"), 2, topics)
    assert all(node.stable for node in amended)


def test_erratum_16_merge_keeps_the_farther_contacts() -> None:
    for amended, kept in (((), {7: ".", 8: ".a"}), (("narrow",), {8: ".a"})):
        node = LiteralLinkProcess(1, ".a.b", [], ("start", "stop", *amended))
        node.on_message(AnsContact((7,), ".", "."))
        node.on_message(AnsContact((8,), ".a", ".a"))
        assert node.stable == kept


def test_erratum_17_a_table_of_dead_processes_is_never_searched_for_again() -> None:
    for amended, searching in (((), False), (("empty",), True)):
        node = LiteralLinkProcess(1, ".a.b", [2], ("start", "stop", "root", *amended))
        node.searching, node.stable, node.dead = False, {7: ".a", 8: ".a", 9: ".a"}, [7, 8, 9]
        for _ in range(2):
            node.on_timeout()
        assert node.searching == searching
        assert node.asked == []  # and nobody is asked for new ones: nobody is up
