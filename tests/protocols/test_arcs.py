"""Arcs against SR(n) read from its definition (paper, 2.1), which shares no code with them."""

from collections import deque
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planaria.protocols.skipring.arcs import (
    FROM_HI,
    FROM_LO,
    INSIDE,
    Neighbour,
    Share,
    approach,
    inside,
    reroute,
    split_arc,
)
from planaria.protocols.skipring.labels import CIRCLE, LABEL_MAX, position

Graph = dict[int, list[int]]


def reference_place(x: int) -> Fraction:
    """r(l(x)) from the strings of the paper."""
    digits = f"{x:b}"
    bits = digits[1:] + digits[0]
    return sum((Fraction(int(b), 2**i) for i, b in enumerate(bits, 1)), Fraction(0))


def reference_graph(n: int) -> Graph:
    """Definition 2: the sorted rings over the labels of at most k bits, for all k."""
    by_place = sorted(range(n), key=reference_place)
    graph: dict[int, set[int]] = {x: set() for x in range(n)}
    for k in range(1, max(1, (n - 1).bit_length()) + 1):
        ring = [x for x in by_place if len(f"{x:b}") <= k]
        for a, b in zip(ring, ring[1:] + ring[:1], strict=True):
            if a != b:
                graph[a].add(b)
                graph[b].add(a)
    return {x: sorted(graph[x]) for x in graph}


def distances(graph: Graph, origin: int) -> dict[int, int]:
    """Graph distance from the origin, breadth first."""
    found, queue = {origin: 0}, deque([origin])
    while queue:
        x = queue.popleft()
        for y in graph[x]:
            if y not in found:
                found[y] = found[x] + 1
                queue.append(y)
    return found


def spread(graph: Graph, origin: int) -> tuple[dict[int, int], int]:
    """Hops per node and messages of one arc broadcast; a second receipt fails the test."""
    tables = {x: [(y, y + 1000) for y in graph[x]] for x in graph}
    here = position(origin)
    hops, messages = {origin: 0}, 0
    queue = deque([(origin, here, here)])
    while queue:
        x, lo, hi = queue.popleft()
        for share in split_arc(x, tables[x], lo, hi):
            assert share.side == INSIDE
            assert share.id == share.label + 1000
            assert share.label not in hops, "received twice"
            hops[share.label] = hops[x] + 1
            messages += 1
            queue.append((share.label, share.lo, share.hi))
    return hops, messages


def check_broadcast(graph: Graph, origin: int) -> None:
    hops, messages = spread(graph, origin)
    assert messages == len(graph) - 1
    assert hops == distances(graph, origin)
    assert max(hops.values()) <= (len(graph) - 1).bit_length()


@pytest.mark.parametrize("part", range(4))
def test_every_origin_reaches_every_node_once_at_its_graph_distance(part: int) -> None:
    for n in range(1 + part, 66, 4):
        graph = reference_graph(n)
        for origin in range(n):
            check_broadcast(graph, origin)


@pytest.mark.parametrize("n", [97, 127, 128, 129, 300, 1000, 4096])
def test_sampled_origins_of_larger_rings_reach_every_node_at_its_graph_distance(n: int) -> None:
    graph = reference_graph(n)
    for origin in [0, 1, 2, n - 1, *Random(n).sample(range(n), 4)]:
        check_broadcast(graph, origin)


def ring_edges(n: int) -> set[frozenset[int]]:
    by_place = sorted(range(n), key=reference_place)
    return {frozenset(pair) for pair in zip(by_place, by_place[1:] + by_place[:1], strict=True)}


@pytest.mark.parametrize("seed", range(60))
def test_missing_shortcuts_cost_hops_but_no_node_and_no_message(seed: int) -> None:
    random = Random(seed)
    n = random.randrange(3, 200)
    keep, ring = random.random(), ring_edges(n)
    graph = {
        x: [y for y in beside if frozenset((x, y)) in ring or random.random() < keep]
        for x, beside in reference_graph(n).items()
    }
    hops, messages = spread(graph, random.randrange(n))
    assert messages == n - 1
    assert len(hops) == n


def test_without_bit_zero_a_border_falls_on_a_label_and_the_node_is_lost() -> None:
    """Two thirds of a gap of 3 * 2^-i end exactly on a label; the bit keeps the border off it."""
    # Node 0 lost its references to '001' and '01': the gap from '0001' (1/16) to '011' (3/8 ... )
    # is divided where a node may be; 1/16 + 2/3 * 3/16 = 3/16 = r('0011').
    neighbours = [(8, 8), (2, 2)]
    shares = {share.label: share for share in split_arc(0, neighbours, 0, 0)}
    assert reference_place(9) == Fraction(1, 16) + Fraction(2, 3) * (
        Fraction(1, 4) - Fraction(1, 16)
    )
    assert inside(position(9), shares[8].lo, shares[8].hi) != inside(
        position(9), shares[2].lo, shares[2].hi
    )


labels = st.one_of(st.integers(0, 40), st.integers(0, LABEL_MAX))
tables = st.lists(st.tuples(labels, st.integers(0, 30)), max_size=12)
places = st.one_of(labels.map(position), st.integers(0, CIRCLE - 1))


def members(share: Share, candidates: list[int]) -> set[int]:
    return {label for label in candidates if inside(position(label), share.lo, share.hi)}


@given(labels, tables, places, places, st.lists(labels, max_size=20))
def test_shares_of_any_table_are_disjoint_inside_the_arc_and_hold_their_receiver(
    own: int, table: list[Neighbour], lo: int, hi: int, others: list[int]
) -> None:
    """Any table and arc; the table's labels and more are looked up in the shares."""
    shares = approach(own, table, lo, hi, FROM_LO)
    candidates = sorted({own, *others, *(label for label, _ in table)})
    if shares and shares[0].side != INSIDE:
        assert len(shares) == 1
        return
    owned: dict[int, int] = {}
    for share in shares:
        assert inside(position(share.label), share.lo, share.hi)
        assert (share.label, share.id) in table
        for label in members(share, candidates):
            twin = (share.hi - share.lo) % CIRCLE == 2
            assert inside(position(label), lo, hi) or twin
            assert label not in owned or twin
            owned[label] = share.id


@given(labels, tables)
def test_the_origin_leaves_no_label_out_if_it_knows_anyone(
    own: int, table: list[Neighbour]
) -> None:
    here = position(own)
    shares = split_arc(own, table, here, here)
    if any(label != own for label, _ in table):
        for label in [0, 1, 2, 3, 12345, LABEL_MAX, *(label for label, _ in table)]:
            assert label == own or any(members(share, [label]) for share in shares)


@given(labels, tables, places, places)
def test_no_computed_border_is_a_label(own: int, table: list[Neighbour], lo: int, hi: int) -> None:
    for share in split_arc(own, table, lo, hi) + approach(own, table, lo, hi, FROM_LO):
        for border in (share.lo, share.hi):
            assert border % 2 == 1 or border in (lo, hi, position(own))


@given(labels, tables, places, places, st.sampled_from([FROM_LO, FROM_HI]))
def test_a_carried_arc_comes_strictly_nearer_with_every_hand_over(
    own: int, table: list[Neighbour], lo: int, hi: int, side: int
) -> None:
    for share in approach(own, table, lo, hi, side):
        if share.side != INSIDE:
            assert not any(inside(position(label), lo, hi) for label, _ in table)
            here, there = position(own), position(share.label)
            if side == FROM_LO:
                assert (lo - there) % CIRCLE < (lo - here) % CIRCLE
            else:
                assert (there - hi) % CIRCLE < (here - hi) % CIRCLE


@given(labels, tables, labels, places, places, st.integers(0, 2))
def test_a_rerouted_share_of_any_table_goes_to_known_neighbours_only(
    own: int, table: list[Neighbour], lost: int, lo: int, hi: int, side: int
) -> None:
    for share in reroute(own, table, Share(lost, 99, lo, hi, side)):
        assert (share.label, share.id) in table


def test_the_farthest_neighbour_is_served_first() -> None:
    here = position(0)
    shares = split_arc(0, [(x, x) for x in reference_graph(64)[0]], here, here)
    away = [min(position(s.label), CIRCLE - position(s.label)) for s in shares]
    assert away == sorted(away, reverse=True)


def test_a_second_claimant_of_a_label_is_served_its_own_place_only() -> None:
    here = position(0)
    shares = split_arc(0, [(1, 10), (1, 11), (0, 12)], here, here)
    assert [(s.id, (s.hi - s.lo) % CIRCLE) for s in shares] == [(10, 0), (11, 2), (12, 2)]
