"""What we do instead of the paper, on every connected graph of up to five nodes, exhaustively.

Heights under every schedule and every delay; a link that forms between edge bits; parts that merge;
a relay that leaves. Cases that differ by the names of nodes only are tried once.
"""

from collections.abc import Callable, Iterator
from itertools import combinations, permutations, product
from random import Random
from unittest.mock import patch

import pytest

import mobile_states
from mobile_lab import heights
from mobile_states import FormingStates, HeightStates, different_links, different_orders, token
from planaria.core.ids import NodeId
from planaria.core.node import Deliver, Effects, LinkDown, LinkUp, Publish, Send, Subscribe
from planaria.lab.mobile.edge_bits import UP, EdgeBits
from planaria.literal import mobile as paper
from planaria.literal.mobile import Graph, Vals, connected_graphs, graph_of
from planaria.protocols.mobile.heights import Heights
from planaria.protocols.mobile.messages import Word
from planaria.protocols.mobile.node import MobileNode

Seeds = Callable[[int, int], int]
SIZES = (2, 3, 4, 5)


# Heights


@pytest.mark.parametrize(("n", "count"), [(2, 4), (3, 72), (4, 2496), (5, 210_784)])
def test_heights_under_every_schedule_and_every_delay(n: int, count: int, seeds: Seeds) -> None:
    """Level, exclusive, and never stuck: once all is heard somebody has a turn. So everybody has,
    again and again, because turns of neighbours differ by at most one."""
    seeds(int(n < 5), 1)  # five nodes at night
    states = 0
    for graph in connected_graphs(n):
        edges = [(i, j) for i in range(n) for j in graph[i] if i < j]
        for lids in different_orders(graph):
            search = HeightStates(graph, lids)
            for state in search.reachable():
                states += 1
                levels, late = state
                sinks = search.sinks(state)
                assert sinks or late
                for i, j in edges:
                    assert abs(levels[i] - levels[j]) <= 1
                    assert not (i in sinks and j in sinks)
    assert states == count


def test_heights_become_level_from_any_heights(seeds: Seeds) -> None:
    """All heights 0..3 of all graphs, by day 0..2 of those of five; acyclic as any order is."""
    rng = Random(1)
    for n in SIZES:
        for graph in connected_graphs(n):
            lids = tuple(rng.sample(range(100), n))
            for levels in product(range(4 if n < 5 else seeds(3, 4)), repeat=n):
                if min(levels) == 0:
                    assert _rounds_to_level(graph, lids, levels) <= 3 * n


def _rounds_to_level(graph: Graph, lids: tuple[int, ...], levels: tuple[int, ...]) -> int:
    lab = heights(graph, lids, levels)
    for rounds in range(4 * len(graph)):
        now = [node.height for node in lab.nodes if isinstance(node, Heights)]
        level = all(abs(now[i] - now[j]) <= 1 for i, j in lab.channels)
        if level and min(lab.acts) > 0:
            return rounds
        for i in range(len(graph)):
            lab.act(i)
        lab.hear_all()
    return 4 * len(graph)


# Errata 1 and 4: the lift is what Lemmas 1 and 3 lack


def test_every_state_with_a_lift_is_acyclic_and_starves_nobody() -> None:
    lifted = 0
    for n in SIZES:
        for graph in connected_graphs(n):
            for vals in product(range(3), repeat=n):
                if vals[0] == 0 and paper.lift(graph, vals):  # a shift of all vals changes nothing
                    for lids in different_orders(graph):
                        lifted += 1
                        assert paper.acyclic(graph, vals, lids)
                        assert not paper.starved(graph, vals, lids, paper.one_rule)
    assert lifted > 10_000


def test_one_rule_keeps_every_reachable_state_acyclic_and_lifted() -> None:
    for n in SIZES:
        for graph in connected_graphs(n):
            for lids in different_orders(graph):
                for state in paper.reachable(graph, (0,) * n, lids, paper.one_rule):
                    assert paper.acyclic(graph, state, lids)
                    assert paper.lift(graph, state)


# Erratum 9: parts that ran apart


def parts(n: int) -> Iterator[tuple[Graph, int]]:
    """Every two connected graphs with `n` nodes together, and where the second begins."""
    for first in range(1, n // 2 + 1):
        for left in connected_graphs(first):
            for right in connected_graphs(n - first):
                shifted = tuple(tuple(j + first for j in peers) for peers in right)
                yield (*left, *shifted), first


def bridged(graph: Graph, first: int) -> Iterator[tuple[Graph, int]]:
    """With one link between the two parts, or two."""
    pairs = [(a, b) for a in range(first) for b in range(first, len(graph))]
    edges = [(i, j) for i, peers in enumerate(graph) for j in peers if i < j]
    for count in (1, 2):
        for bridges in combinations(pairs, count):
            yield graph_of(len(graph), [*edges, *bridges]), count


def test_9_one_bridge_keeps_the_lift_whatever_ran_before_and_two_may_lose_it() -> None:
    torn = {1: 0, 2: 0}
    for n in SIZES:
        for graph, first in parts(n):
            lids = tuple(range(1, n + 1))
            for vals in paper.reachable(graph, (0,) * n, lids, paper.one_rule):
                for joined, count in bridged(graph, first):
                    torn[count] += paper.lift(joined, vals) is None
    assert torn[1] == 0
    assert torn[2] == 786


def test_9_heights_become_level_whatever_ran_before_and_however_many_bridges() -> None:
    for n in SIZES:
        for graph, first in parts(n):
            lids = tuple(range(1, n + 1))
            sides = [
                {tuple(level - min(side) for level in side) for side in split}
                for split in zip(*_level_states(graph, first), strict=True)
            ]
            for left, right in product(*(sorted(side) for side in sides)):
                for apart, (joined, _) in product((0, 2, 5), bridged(graph, first)):
                    levels = (*left, *(level + apart for level in right))
                    assert _rounds_to_level(joined, lids, levels) < 4 * n


def _level_states(graph: Graph, first: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Heights of both parts in every state that a schedule reaches."""
    lids = tuple(range(1, len(graph) + 1))
    found = []
    for vals in paper.reachable(graph, (0,) * len(graph), lids, paper.one_rule):
        halves = []
        for low, high in ((0, first), (first, len(graph))):
            part = tuple(tuple(j - low for j in peers) for peers in graph[low:high])
            lifted = paper.lift(part, vals[low:high])
            assert lifted is not None
            halves.append(lifted)
        found.append((halves[0], halves[1]))
    return found


# Erratum 10: links that wait for a sink


def test_10_note_2_loses_the_lift_for_most_lids_whoever_acts_when() -> None:
    """A newcomer joins both ends of a path of four, each edge only when that end is a sink: every
    order of lids, every schedule."""
    path = graph_of(4, [(0, 1), (1, 2), (2, 3)])
    torn = 0
    orders = list(permutations(range(1, 6)))
    for lids in orders:
        found: dict[tuple[Vals, tuple[int, ...]], None] = {}
        queue: list[tuple[Vals, tuple[int, ...]]] = [((0,) * 4, ())]
        while queue:
            vals, points = queue.pop()
            if (vals, points) in found:
                continue
            found[vals, points] = None
            graph = paper.joined(path, points) if points else path
            for sink in paper.sinks(graph, vals, lids):
                queue.append((paper.fire(graph, vals, [sink], paper.one_rule), points))
                if sink in (0, 3) and sink not in points:
                    grown = vals if points else (*vals, (vals[sink] + 1) % 3)
                    queue.append((grown, tuple(sorted((*points, sink)))))
        ring = paper.joined(path, (0, 3))
        torn += any(points == (0, 3) and not paper.lift(ring, it) for it, points in found)
    assert (torn, len(orders)) == (120, 120)


@pytest.mark.parametrize(("n", "acts", "slots"), [(3, 3, 2), (4, 2, 2), (5, 2, 1)])
def test_10_forming_link_of_edge_bits_never_closes_a_cycle(
    n: int, acts: int, slots: int, seeds: Seeds
) -> None:
    """Every link of every graph forms, from every acyclic orientation of the others."""
    seeds(int(n < 5), 1)  # five nodes at night
    for graph in connected_graphs(n):
        for link in different_links(graph):
            assert FormingStates(graph, link, acts, slots).cyclic() == []


def test_10_forming_link_of_edge_bits_gets_either_direction() -> None:
    states = FormingStates(graph_of(3, [(0, 1), (0, 2), (1, 2)]), (0, 1), 2, 1).reachable()
    formed = {mobile_states.direction(shake[:2]) for _, shake in states}
    assert formed == {None, 0, 1}


def _up_to_date(self: EdgeBits, peer: NodeId) -> Word:
    """An offer as one would first write it: it repeats what is known now."""
    edge = self.edges[peer]
    edge.offer = None if edge.offer is None else edge.heard
    return WORD(self, peer)


def _unnamed(self: EdgeBits, peer: NodeId, word: Word) -> None:
    """An acceptance counts whatever act it answers."""
    edge = self.edges.get(peer)
    if edge is not None and not edge.up and edge.offer is not None and word[0] == UP:
        word = (word[0], word[1], self.acts + 1)
    HEAR(self, peer, word)


WORD, HEAR = EdgeBits.word, EdgeBits.hear


@pytest.mark.parametrize(("part", "broken"), [("word", _up_to_date), ("hear", _unnamed)])
def test_10_search_finds_the_cycles_of_half_a_handshake(
    part: str, broken: Callable[..., object]
) -> None:
    steps = (mobile_states.acted, mobile_states.word_of, mobile_states.hears, token)
    try:
        with patch.object(EdgeBits, part, broken):
            for step in steps:
                step.cache_clear()
            triangle = graph_of(3, [(0, 1), (0, 2), (1, 2)])
            assert FormingStates(triangle, (0, 1), 3, 2).cyclic()
    finally:
        for step in steps:
            step.cache_clear()


def test_10_steps_of_settled_edge_bits_are_those_that_the_search_supposes() -> None:
    """A node is a sink if all tokens are with it, and then gives all of them away."""
    for degree in range(1, 5):
        for tokens in product((False, True), repeat=degree):
            for id in (0, 9):  # below its neighbours, and above them
                node = EdgeBits(id, Random(0))
                peers = [EdgeBits(peer, Random(0)) for peer in range(1, degree + 1)]
                for peer, mine in zip(peers, tokens, strict=True):
                    node.agree(peer.id, mine=mine)
                    peer.agree(id, mine=not mine)
                assert node.sink() == all(tokens)
                assert [peer.sink() for peer in peers] == [not mine for mine in tokens]
                if node.sink():
                    node.reverse()
                    for peer in peers:
                        peer.hear(id, node.word(peer.id))
                    assert not node.sink()
                    assert all(peer.sink() for peer in peers)


# Erratum 14: a relay that leaves


class Net:
    """Nodes whose words are heard at once; timeouts in the order of ids."""

    def __init__(self, graph: Graph, seed: int) -> None:
        self.nodes = {id: MobileNode(id, Random(100 * seed + id)) for id in range(len(graph))}
        self.got: list[NodeId] = []
        for id, node in self.nodes.items():
            node.on_command(Subscribe("t"))
            for peer in graph[id]:
                node.on_command(LinkUp(peer))

    def perform(self, id: NodeId, effects: Effects) -> None:
        for effect in effects:
            if isinstance(effect, Deliver):
                self.got.append(id)
            elif isinstance(effect, Send) and effect.target in self.nodes:
                self.perform(effect.target, self.nodes[effect.target].on_message(effect.message))

    def timeout(self, id: NodeId) -> None:
        self.perform(id, self.nodes[id].on_timeout())


def test_14_everybody_gets_it_when_any_relay_leaves_with_it() -> None:
    """Every graph, publisher and neighbour of it that goes with what it has just heard; those that
    it was beside then come into reach of the publisher."""
    relays = 0
    for n in (3, 4, 5):
        for number, graph in enumerate(connected_graphs(n)):
            for publisher in range(n):
                for relay in graph[publisher]:
                    relays += 1
                    net = Net(graph, number)
                    got = _relay_leaves(net, graph, publisher, relay)
                    assert sorted(got) == sorted(net.nodes)
    assert relays == 320


def _relay_leaves(net: Net, graph: Graph, publisher: int, relay: int) -> list[NodeId]:
    for _ in range(4):
        for id in net.nodes:
            net.timeout(id)
    net.perform(publisher, net.nodes[publisher].on_command(Publish("t", b"m")))
    while relay not in net.got:
        for id in net.nodes:
            if id != relay:
                net.timeout(id)
        if relay not in net.got:
            net.timeout(relay)
    del net.nodes[relay]
    for id, node in net.nodes.items():
        node.on_command(LinkDown(relay))
        if id in graph[relay] and id != publisher:
            node.on_command(LinkUp(publisher))
            net.nodes[publisher].on_command(LinkUp(id))
    for _ in range(8 * len(graph)):
        for id in net.nodes:
            net.timeout(id)
    return [id for id in net.got if id != relay]


def test_14_table_4_loses_it_whenever_the_relay_was_all_that_the_publisher_had() -> None:
    """Elsewhere what it sends for ever comes back to it, and goes on."""
    lost = kept = 0
    for n in (3, 4, 5):
        for graph in connected_graphs(n):
            for publisher in range(n):
                for relay in graph[publisher]:
                    buffers: dict[int, list[str]] = {id: [] for id in range(n)}
                    buffers[publisher] = ["m"]
                    paper.send(graph, buffers, publisher)
                    del buffers[relay]
                    left = any(buffers.values())
                    assert left == (graph[publisher] != (relay,))
                    lost, kept = lost + (not left), kept + left
    assert lost > 20
    assert kept > lost
