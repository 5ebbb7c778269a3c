"""Errata of the link reversal paper, one test each: the printed text fails, what we do holds.

Exhaustive over all connected graphs of up to five nodes wherever a claim is about all graphs; what
we do instead is tried on the same graphs in `test_exhaustive_mobile.py`.
"""

from collections.abc import Iterator
from functools import cache
from itertools import product

import pytest

from mobile_lab import three_states
from planaria.literal import mobile as paper
from planaria.literal.mobile import Graph, Lids, Vals, graph_of

TRIANGLE = graph_of(3, [(0, 1), (0, 2), (1, 2)])
STAR = graph_of(3, [(0, 1), (0, 2)])


@cache
def cases(n: int) -> list[tuple[Graph, Lids]]:
    """Every connected graph of `n` nodes with every acyclic orientation by lids."""
    return [(graph, lids) for graph in paper.connected_graphs(n) for lids in paper.orders(graph)]


def all_cases() -> Iterator[tuple[Graph, Lids]]:
    for n in (2, 3, 4, 5):
        yield from cases(n)


def test_1_lemma_1_is_false_on_a_triangle() -> None:
    vals, lids = (0, 1, 2), (1, 2, 3)
    assert not paper.acyclic(TRIANGLE, vals, lids)
    assert paper.sinks(TRIANGLE, vals, lids) == []  # deadlock at once


@pytest.mark.parametrize(("n", "starving", "total"), [(3, 8, 10), (4, 78, 84), (5, 946, 956)])
def test_2_numeric_max_starves_from_equal_values(n: int, starving: int, total: int) -> None:
    found = [bool(paper.starved(graph, (0,) * n, lids, paper.llro)) for graph, lids in cases(n)]
    assert (sum(found), len(found)) == (starving, total)


def test_2_a_sink_with_val_2_beside_2_and_0_stays_a_sink() -> None:
    vals, lids = (2, 2, 0), (1, 2, 3)
    assert paper.sinks(STAR, vals, lids) == [0]
    assert paper.fire(STAR, vals, [0], paper.llro) == vals


def test_2_one_rule_starves_nobody_from_equal_values() -> None:
    for graph, lids in all_cases():
        assert not paper.starved(graph, (0,) * len(graph), lids, paper.one_rule)


def test_3_the_order_of_numbers_lets_one_run_for_ever() -> None:
    pair = graph_of(2, [(0, 1)])
    assert paper.starved(pair, (2, 2), (1, 2), paper.one_rule, paper.lower_plain) == [1]
    assert paper.starved(pair, (2, 2), (1, 2), paper.one_rule) == []


def test_4_lemma_3_a_sink_does_not_turn_all_its_edges() -> None:
    pair = graph_of(2, [(0, 1)])
    after = paper.fire(pair, (0, 1), [0], paper.llro)
    assert paper.sinks(pair, after, (1, 2)) == [0]


def test_4_lemma_3_an_acyclic_square_becomes_cyclic() -> None:
    square = graph_of(4, [(0, 2), (0, 3), (1, 2), (1, 3)])
    vals, lids = (0, 1, 1, 2), (1, 2, 3, 4)
    assert paper.acyclic(square, vals, lids)
    reached = paper.reachable(square, vals, lids, paper.llro)
    assert not all(paper.acyclic(square, state, lids) for state in reached)


def test_5_lemma_2_r1_leads_to_a_deadlocked_ring() -> None:
    path, lids = graph_of(4, [(0, 1), (1, 2), (2, 3)]), (1, 2, 3, 4)
    vals: Vals = (0, 0, 0, 0)
    for sink in (0, 1, 0, 2, 1, 0):
        assert sink in paper.sinks(path, vals, lids)
        vals = paper.fire(path, vals, [sink], paper.one_rule)
    assert vals == (0, 2, 1, 0)
    val, lid = paper.llo([(vals[0], lids[0]), (vals[3], lids[3])])
    ring = paper.joined(path, (0, 3))
    state: Vals = (*vals, val)
    names = (*lids, lid)
    assert paper.acyclic(ring, state, names)
    assert paper.lift(ring, state) is None
    for _ in range(4):
        state = paper.fire(ring, state, paper.sinks(ring, state, names), paper.one_rule)
    assert paper.sinks(ring, state, names) == []


def test_5_lemma_2_r2_closes_a_cycle_at_once() -> None:
    path, vals, lids = graph_of(3, [(0, 1), (0, 2)]), (2, 0, 1), (2, 1, 3)
    assert paper.acyclic(path, vals, lids)
    val, lid = paper.llo([(vals[1], lids[1]), (vals[2], lids[2])])
    assert (val, lid) == (0, 2)
    assert not paper.acyclic(paper.joined(path, (1, 2)), (*vals, val), (*lids, lid))


def test_5_the_smallest_of_0_and_2_is_2_in_the_order_of_the_paper() -> None:
    assert paper.llo([(0, 1), (2, 5)])[0] == 0
    assert paper.precedes(2, 0)


def test_6_condition_2_of_r3_is_not_enough() -> None:
    star, vals, lids = graph_of(4, [(0, 1), (0, 2), (0, 3)]), (2, 0, 1, 2), (2, 1, 3, 4)
    points = (1, 2, 3)
    around = [(vals[i], lids[i]) for i in points]
    # Condition (2): no neighbours of the newcomer with vals 1 and 2 are neighbours of each other.
    assert not any(j in star[i] for i in points for j in points if (vals[i], vals[j]) == (1, 2))
    val, lid = paper.llo(around)
    assert paper.acyclic(star, vals, lids)
    assert not paper.acyclic(paper.joined(star, points), (*vals, val), (*lids, lid))


def test_7_r3_gives_a_lid_that_a_neighbour_has() -> None:
    assert paper.llo([(0, 1), (1, 2), (2, 3)]) == (0, 2)


def test_8_two_joiners_that_are_neighbours_pick_one_lid() -> None:
    """One old node, two new ones: the tie has no direction and both ends wait for ever."""
    first, second = paper.llo([(0, 1)]), paper.llo([(0, 1)])
    assert first == second
    vals, lids = (0, first[0], second[0]), (1, first[1], second[1])
    assert paper.starved(TRIANGLE, vals, lids, paper.one_rule) != []


def test_8_choose_id_is_undefined_without_neighbours() -> None:
    with pytest.raises(ValueError, match="empty"):
        paper.choose_id([])


def test_11_lemma_5_is_false_one_bit_is_enough() -> None:
    """An edge follows lids if the bits agree, else opposes them; a sink flips its bit."""
    states = 0
    for graph, lids in all_cases():
        start = (0,) * len(graph)
        assert not paper.starved(graph, start, lids, paper.one_bit, paper.lower_one_bit)
        for state in paper.reachable(graph, start, lids, paper.one_bit, paper.lower_one_bit):
            assert paper.acyclic(graph, state, lids, paper.lower_one_bit)
            states += 1
    assert states == 15_500


def test_12_one_lid_for_all_layers_lets_layers_break_each_other() -> None:
    """a - b - c in layer 1; b joins layer 2 beside lids 2 and 4 and takes lid 3, which c has."""
    path, lids = graph_of(3, [(0, 1), (1, 2)]), [1, 2, 3]
    _, lids[1] = paper.llo([(0, 2), (0, 4)])
    assert lids[1] == 3
    assert sorted(paper.starved(path, (0, 0, 0), tuple(lids), paper.one_rule)) == [0, 1, 2]


def test_13_table_4_never_stops() -> None:
    pair = graph_of(2, [(0, 1)])
    assert paper.table_4(pair, (1, 2), 0, 50, lists=False)[-10:] == [1] * 10
    grid = graph_of(
        9,
        [(i, i + 1) for i in range(9) if (i + 1) % 3] + [(i, i + 3) for i in range(6)],
    )
    lids = (1, 6, 3, 8, 5, 2, 7, 4, 9)
    copies = paper.table_4(grid, lids, 4, 14, lists=True)
    assert sum(copies) > 10_000
    assert copies[-1] > 2 * copies[-6] > 0
    assert sum(paper.table_4(grid, lids, 4, 60, lists=False)[30:]) > 24


def test_14_a_relay_that_leaves_takes_the_message_with_it() -> None:
    """p - q - r: p sends, q leaves before its turn, r links to p: nobody will send m again."""
    buffers = {0: ["m"], 1: [], 2: []}
    paper.send(graph_of(3, [(0, 1), (1, 2)]), buffers, 0)
    del buffers[1]
    for sink in (2, 0, 2, 0):
        assert paper.send(graph_of(3, [(0, 2)]), buffers, sink) == 0
    assert buffers == {0: [], 2: []}


def test_three_states_are_safe_on_every_tree_from_any_values() -> None:
    for n in (2, 3, 4, 5):
        trees = [g for g in paper.connected_graphs(n) if sum(map(len, g)) == 2 * (n - 1)]
        for graph in trees:
            for vals in product(range(3), repeat=n):
                lab = three_states(graph, tuple(range(n)), vals)
                for _ in range(3 * n):
                    assert lab.acyclic()
                    for i in range(n):
                        lab.act(i)
                        lab.hear_all()
                assert min(lab.acts) > 0
