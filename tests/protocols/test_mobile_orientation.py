"""The three orientations over ordered channels with old views: acyclic, exclusive, fair."""

from collections.abc import Callable
from random import Random

import pytest

from mobile_lab import Lab, edge_bits, heights, three_states
from planaria.core.errors import UsageError
from planaria.lab.mobile.edge_bits import EdgeBits
from planaria.lab.mobile.three_state import ThreeState
from planaria.lab.mobile.variants import ORIENTATIONS, VariantOverlay, oriented
from planaria.literal.mobile import Graph, connected_graphs, graph_of
from planaria.protocols.mobile.heights import GAP_MAX, HEIGHT_MAX, Heights
from planaria.protocols.mobile.messages import Word
from planaria.protocols.mobile.orientation import LID_MAX, Orientation

Seeds = Callable[[int, int], int]

RING = graph_of(6, [(i, (i + 1) % 6) if i < 5 else (0, 5) for i in range(6)])


def levels(lab: Lab) -> list[int]:
    return [node.height for node in lab.nodes if isinstance(node, Heights)]


def small_graphs() -> list[Graph]:
    return [graph for n in (2, 3, 4, 5) for graph in connected_graphs(n)]


# Heights


def test_heights_stay_exclusive_and_level_with_old_views_in_any_schedule(seeds: Seeds) -> None:
    rng = Random(3)
    for graph in small_graphs():
        for seed in range(seeds(4, 200)):
            lab = heights(graph, [rng.randrange(LID_MAX) for _ in graph])
            lab.rng = Random(seed)
            for _ in range(200):
                lab.step()
                now = levels(lab)
                assert lab.exclusive()
                assert lab.acyclic()
                assert all(abs(now[a] - now[b]) <= 1 for a, b in lab.channels)
                for i, node in enumerate(lab.nodes):
                    assert isinstance(node, Heights)
                    assert all(view <= now[j] for j, (view, _) in node.views.items()), i


def test_heights_are_never_believed_too_high_while_they_level_out(seeds: Seeds) -> None:
    """From any heights that neighbours know of each other, residues mislead nobody."""
    for graph in [graph for graph in small_graphs() if len(graph) > 2]:
        for seed in range(seeds(4, 200)):
            rng = Random(seed)
            lab = heights(
                graph, [rng.randrange(999) for _ in graph], [rng.randrange(12) for _ in graph]
            )
            lab.rng = rng
            for node in lab.nodes:  # no whole heights for a while
                assert isinstance(node, Heights)
                node.loud, node.audit = 0, dict.fromkeys(node.peers(), 5)
            for _ in range(200):
                lab.step()
                now = levels(lab)
                assert lab.exclusive()
                for node in lab.nodes:
                    assert isinstance(node, Heights)
                    assert all(view <= now[j] for j, (view, _) in node.views.items())


def test_heights_of_level_neighbours_travel_modulo_3() -> None:
    lab = heights(RING, [5, 3, 8, 1, 9, 2])
    words: list[Word] = []
    for _ in range(48):
        for i in range(6):
            lab.act(i)
        words += [word for queue in lab.channels.values() for word in queue]
        lab.hear_all()
    short = [word for word in words if len(word) == 1]
    assert len(short) / len(words) >= 5 / 8  # the rest are audits
    assert min(lab.acts) > 10


def test_turns_of_neighbours_differ_by_at_most_one() -> None:
    for graph in small_graphs():
        lab = heights(graph, [7 * i % 11 for i in range(len(graph))])
        for _ in range(300):
            lab.step()
            assert all(abs(lab.acts[a] - lab.acts[b]) <= 1 for a, b in lab.channels)


@pytest.mark.parametrize("absurd", [HEIGHT_MAX, HEIGHT_MAX - 1, 2**62, -7, GAP_MAX + 5])
def test_one_absurd_height_comes_down_and_drags_nobody_up(absurd: int) -> None:
    lab = heights(RING, range(6))
    liar = lab.nodes[3]
    assert isinstance(liar, Heights)
    liar.height = absurd
    for _ in range(12):
        for i, node in enumerate(lab.nodes):
            node.repair()
            lab.act(i)
        lab.hear_all()
    now = levels(lab)
    assert max(now) < 100
    assert all(abs(now[a] - now[b]) <= 1 for a, b in lab.channels)


def test_all_at_the_ceiling_start_again_below() -> None:
    lab = heights(RING, range(6), [HEIGHT_MAX] * 6)
    for _ in range(40):
        for i, node in enumerate(lab.nodes):
            node.repair()
            lab.act(i)
        lab.hear_all()
    now = levels(lab)
    assert max(now) < 1000
    assert all(abs(now[a] - now[b]) <= 1 for a, b in lab.channels)


def test_height_out_of_range_or_with_a_wrong_residue_is_not_believed() -> None:
    node = Heights(0, Random(0))
    for word in [(0, HEIGHT_MAX + 3, 1, 1), (1, 3, 1, 1), (0, 3, LID_MAX + 1, 1), (0,), ()]:
        assert not node.link_up(1, word)
    assert node.link_up(1, (0, 3, 1, 1))
    node.hear(1, (2, 3, 1, 1))
    assert node.views == {1: (3, 1)}


def test_newcomer_takes_its_place_once_and_does_not_climb_with_every_link() -> None:
    lab = heights(RING, range(6), [3, 4, 4, 5, 4, 4])
    new = Heights(6, Random(1))
    lab.nodes.append(new)
    lab.acts.append(0)
    lab.link(6, 0)
    lab.link(6, 3)
    assert new.height == 4  # above the first, not above both: it could climb for ever
    assert not new.sink()


# Three states


def test_three_states_stay_exclusive_with_old_views_from_equal_values() -> None:
    rng = Random(5)
    for graph in small_graphs():
        lab = three_states(graph, [rng.randrange(LID_MAX) for _ in graph])
        lab.rng = Random(7)
        for _ in range(400):
            lab.step()
            assert lab.acyclic()
            assert lab.exclusive()
        for _ in range(20):
            for i in range(len(graph)):
                lab.act(i)
            lab.hear_all()
        assert min(lab.acts) > 2


def test_three_states_deadlock_when_a_link_closes_a_ring_and_heights_do_not() -> None:
    path = graph_of(4, [(0, 1), (1, 2), (2, 3)])
    for lab in (three_states(path, [1, 2, 3, 4]), heights(path, [1, 2, 3, 4])):
        for sink in (0, 1, 0, 2, 1, 0):
            assert lab.act(sink)
            lab.hear_all()
        lab.link(0, 3)
        before = list(lab.acts)
        for _ in range(12):
            for i in range(4):
                lab.act(i)
            lab.hear_all()
        assert (lab.acts == before) == isinstance(lab.nodes[0], ThreeState)


# Edge bits


def run_edge_bits(graph: Graph, seed: int, steps: int = 250) -> tuple[Lab, bool]:
    """Links form, break and form again while everybody acts; was there ever a cycle?"""
    lab = edge_bits(graph, seed)
    links = [(a, b) for a, b in lab.channels if a < b]
    cyclic = False
    for _ in range(steps):
        lab.step()
        if lab.rng.random() < 0.04:
            a, b = lab.rng.choice(links)
            if (a, b) in lab.channels:
                lab.unlink(a, b)
            else:
                lab.link(a, b)
        cyclic |= not lab.acyclic()
    for a, b in links:
        if (a, b) not in lab.channels:
            lab.link(a, b)
    return lab, cyclic


def test_edge_bits_stay_acyclic_while_links_come_and_go(seeds: Seeds) -> None:
    for graph in [g for g in small_graphs() if len(g) > 2]:
        for seed in range(seeds(6, 300)):
            lab, cyclic = run_edge_bits(graph, seed)
            assert not cyclic
            for _ in range(60):
                for i in range(len(graph)):
                    lab.act(i)
                lab.hear_all()
            assert lab.acyclic()
            assert all(lab.nodes[a].oriented(b) for a, b in lab.channels)
            assert min(lab.acts) > 0


def test_edge_bits_that_always_act_together_still_agree() -> None:
    """Words take exactly as long as a turn, so each offer meets an act: chance breaks the tie."""
    lab = edge_bits(graph_of(2, [(0, 1)]))
    for _ in range(60):
        sent = {pair: list(queue) for pair, queue in lab.channels.items()}
        for i in (0, 1):
            lab.act(i)
        for (i, j), old in sent.items():
            for _ in old:
                lab.hear(i, j)
    assert lab.nodes[0].oriented(1)
    assert lab.nodes[1].oriented(0)


def test_orientations_that_do_not_heal_say_where_they_are_safe() -> None:
    for name, kind in ORIENTATIONS.items():
        if issubclass(kind, VariantOverlay):
            assert kind.orientation == name
            assert kind.safe_on
    with pytest.raises(UsageError, match="orientation 'sideways'"):
        oriented("sideways")


@pytest.mark.parametrize("kind", [Heights, ThreeState, EdgeBits])
def test_every_orientation_refuses_nonsense(kind: type[Orientation]) -> None:
    node = kind(0, Random(0))
    assert not node.link_up(1, (9, 9, 9, 9, 9, 9, 9))
    assert node.link_up(1, kind(1, Random(1)).greet())
    assert node.peers() == [1]
    node.hear(2, (0,))
    node.link_down(1)
    assert node.peers() == []
