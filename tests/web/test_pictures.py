"""How overlays are drawn: right states as they should look, and arbitrary ones all the same."""

import ast
import inspect
from collections.abc import Mapping
from types import ModuleType

import pytest

from planaria.core.ids import NodeId
from planaria.core.state import State
from planaria.network.overlays.registry import PARTS
from planaria.protocols.dht import legitimacy as dht
from planaria.protocols.gossip import legitimacy as gossip
from planaria.protocols.mobile import legitimacy as mobile
from planaria.protocols.routing import legitimacy as routing
from planaria.protocols.tree import legitimacy as tree
from planaria.simulator.trial import Spec, Trial
from planaria.simulator.worlds.registry import find_kind
from planaria.web.pictures.mobile import LAID_OUT_MAX, laid_out
from planaria.web.pictures.overlays import picture_of
from planaria.web.pictures.picture import DOWN, LINK, RING, ROOT, SINK, SUPER, TREE, VIEW, Picture

OVERLAYS = ("ring", "gossip", "content", "mobile", "tree", "dht")
N = 9


def states(overlay: str, start: str, seed: int = 1) -> Mapping[NodeId, State]:
    return Trial(find_kind(overlay).make(), Spec(N, seed, start)).simulator.states()


def drawn(overlay: str, start: str, seed: int = 1) -> Picture:
    found = states(overlay, start, seed)
    return picture_of(sorted(found), found)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_whatever_memory_holds_every_node_is_drawn_where_it_can_be_seen(overlay: str) -> None:
    for seed in range(7):
        found = states(overlay, "corrupt", seed)
        ids = sorted([*found, 10**9])  # and one that says nothing
        picture = picture_of(ids, found)
        assert sorted(picture.places) == ids
        assert all(-1 <= x <= 1 and -1 <= y <= 1 for x, y in picture.places.values())


def test_a_ring_and_the_ring_of_the_dht_are_round_and_closed() -> None:
    for overlay in ("ring", "dht"):
        picture = drawn(overlay, "legitimate")
        sides = [pair for pair, kind in picture.lines.items() if kind == RING]
        assert len(sides) == N
        ends = {id for pair in sides for id in pair}
        for x, y in (picture.places[id] for id in ends):
            assert x * x + y * y == pytest.approx(1, abs=1e-3)


def test_brokers_are_a_tree_from_the_top_and_say_what_is_wanted_behind_each_link() -> None:
    picture = drawn("content", "legitimate")
    assert [*picture.lines.values()] == [TREE] * (N - 1)
    (root,) = [id for id, role in picture.roles.items() if role == ROOT]
    top = picture.places[root][1]
    assert all(y > top for id, (_, y) in picture.places.items() if id != root)
    assert len(set(picture.places.values())) == N
    for a, b in picture.lines:
        assert int(picture.ends[a, b]) > 0
        assert picture.figures[a][f"wanted behind {b}"] not in ("", "nobody")


def test_a_link_of_a_tree_that_one_end_denies_is_no_link_of_the_tree() -> None:
    picture = drawn("tree", "corrupt", 3)
    assert LINK in picture.lines.values()


def test_groups_are_below_those_they_belong_to_and_contacts_lead_up() -> None:
    picture = drawn("gossip", "legitimate")
    at = {region.name: region for region in picture.regions}
    assert "#" in at
    for region in picture.regions:
        for above in region.above:
            assert picture.regions[above].y < region.y
            assert region.name.startswith(picture.regions[above].name.removesuffix("#"))
    up = [pair for pair, kind in picture.lines.items() if kind == SUPER]
    assert up
    assert all(picture.places[high][1] < picture.places[low][1] for low, high in up)
    assert VIEW in picture.lines.values()


def test_one_group_is_drawn_with_its_own_lines_alone() -> None:
    found = states("gossip", "legitimate")
    ids = sorted(found)
    all, one = picture_of(ids, found), picture_of(ids, found, topic="#")
    assert {*one.lines} < {*all.lines}
    assert SUPER not in one.lines.values(), "nothing is above everything"


def test_arrows_among_mobile_nodes_have_no_cycle_and_end_at_who_may_speak() -> None:
    picture = drawn("mobile", "legitimate")
    arrows = [pair for pair, kind in picture.lines.items() if kind == DOWN]
    lower = {id: [b for a, b in arrows if a == id] for id in picture.places}
    sinks = [id for id, role in picture.roles.items() if role == SINK]
    assert sinks == [id for id in picture.places if not lower[id]]
    left = {*picture.places}
    while ends := {id for id in left if not left.intersection(lower[id])}:
        left -= ends
    assert not left, "a cycle"
    assert all(int(picture.marks[a][1:]) >= int(picture.marks[b][1:]) for a, b in arrows)


def test_a_layout_keeps_linked_nodes_together_and_stays_where_it_was() -> None:
    pairs = [(a, a + 1) for a in range(11)]  # a chain
    first = laid_out(range(12), pairs, {})

    def far(a: int, b: int) -> float:
        (x, y), (z, w) = first[a], first[b]
        return float((x - z) ** 2 + (y - w) ** 2)

    assert max(far(a, b) for a, b in pairs) < far(0, 11)
    again = laid_out(range(12), pairs, first)
    assert all(abs(again[k][0] - first[k][0]) + abs(again[k][1] - first[k][1]) < 0.4 for k in first)
    assert laid_out([5], [], {}) == {5: (0.0, 0.0)}
    assert len(set(laid_out(range(LAID_OUT_MAX + 1), [], {}).values())) == LAID_OUT_MAX + 1


JUDGES: dict[str, tuple[ModuleType, ...]] = {
    "gossip": (gossip,), "mobile": (mobile,), "content": (dht, tree, routing)
}  # fmt: skip
# What needs messages in flight, publications, or a way of routing that live nodes do not have.
UNSEEN = {"channel", "events", "spreading", "entries"}


@pytest.mark.parametrize("overlay", PARTS)
def test_there_is_a_lamp_for_each_invariant_that_a_judge_may_name(overlay: str) -> None:
    named = {
        node.args[0].value
        for module in JUDGES[overlay]
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") == "Violation"
        and isinstance(node.args[0], ast.Constant)
    }
    assert named - UNSEEN == set(PARTS[overlay].invariants)
