"""The lemmas of the link reversal paper on all small graphs: as printed, and with our heights.

A question counts cases and those that fail. `literal` answers it with the text as printed, `ours`
with the classes of the product, every word heard at once, as the paper's proofs suppose.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from random import Random

from planaria.literal import mobile as paper
from planaria.literal.mobile import Graph, Lids, Vals, graph_of
from planaria.protocols.mobile.heights import Heights

ROUNDS = 6  # times n: long enough for every node that ever acts to act

Count = tuple[int, int]  # cases that fail, cases
Answer = Callable[[int, int], Count]  # of a number of nodes and a seed


class Field:
    """Heights on a graph; every word is heard at once."""

    def __init__(self, graph: Graph, lids: Sequence[int], levels: Sequence[int]) -> None:
        self.nodes: list[Heights] = []
        self.edges: list[tuple[int, int]] = []
        for lid, level in zip(lids, levels, strict=True):
            self.add(lid, level, settled=True)
        for a, peers in enumerate(graph):
            for b in peers:
                if a < b:
                    self.link(a, b)

    def add(self, lid: int, level: int = 0, *, settled: bool = False) -> None:
        """One more node, without links."""
        node = Heights(len(self.nodes), Random(lid))
        node.lid, node.height, node.settled = lid, level, settled
        self.nodes.append(node)

    def link(self, a: int, b: int) -> None:
        """Both ends greet each other, then everybody hears where they are now."""
        self.edges.append((a, b))
        self.nodes[a].link_up(b, self.nodes[b].greet())
        self.nodes[b].link_up(a, self.nodes[a].greet())
        self.tell(a)
        self.tell(b)

    def tell(self, i: int) -> None:
        """Everybody beside `i` hears its word."""
        for peer in self.nodes[i].peers():
            self.nodes[peer].hear(i, self.nodes[i].word(peer))

    def sinks(self) -> list[int]:
        """Whose turn it is."""
        return [node.id for node in self.nodes if node.peers() and node.sink()]

    def fire(self, chosen: Sequence[int]) -> None:
        """The chosen sinks act at once."""
        for i in chosen:
            self.nodes[i].reverse()
        for i in chosen:
            self.tell(i)

    def graph(self) -> Graph:
        """The links as adjacency."""
        return graph_of(len(self.nodes), self.edges)

    def levels(self) -> Vals:
        """All heights."""
        return tuple(node.height for node in self.nodes)

    def acyclic(self) -> bool:
        """By the definition: the order of (height, lid)."""
        lids = tuple(node.lid for node in self.nodes)
        return paper.acyclic(self.graph(), self.levels(), lids, paper.lower_plain)

    def starved(self) -> list[int]:
        """Who does not act while all sinks act for many rounds."""
        acted: dict[int, None] = {}
        for _ in range(ROUNDS * len(self.nodes)):
            now = self.sinks()
            acted |= dict.fromkeys(now)
            self.fire(now)
        return [node.id for node in self.nodes if node.id not in acted]


def cases(n: int) -> Iterator[tuple[Graph, Lids]]:
    """Every connected graph of `n` nodes with every acyclic orientation by lids."""
    for graph in paper.connected_graphs(n):
        for lids in paper.orders(graph):
            yield graph, lids


def states(n: int) -> Iterator[tuple[Graph, Lids, Vals]]:
    """Every case with all vals, or all heights, in 0..2."""
    for graph, lids in cases(n):
        for vals in product(range(3), repeat=n):
            yield graph, lids, vals


def count(fails: Iterator[bool]) -> Count:
    """How many of how many."""
    found = list(fails)
    return sum(found), len(found)


# Lemma 1 and Definition 5: cycles, and states without a sink


def cyclic_printed(n: int, _: int) -> Count:
    """States of Definition 4 with a directed cycle."""
    return count(not paper.acyclic(graph, vals, lids) for graph, lids, vals in states(n))


def cyclic_ours(n: int, _: int) -> Count:
    """The same with heights."""
    return count(not Field(graph, lids, vals).acyclic() for graph, lids, vals in states(n))


def sinkless_printed(n: int, _: int) -> Count:
    """States in which nobody may ever act."""
    return count(not paper.sinks(graph, vals, lids) for graph, lids, vals in states(n))


def sinkless_ours(n: int, _: int) -> Count:
    """The same with heights."""
    return count(not Field(graph, lids, vals).sinks() for graph, lids, vals in states(n))


# Lemma 3: one step of a sink


def steps_printed(n: int) -> Iterator[tuple[Graph, Lids, Vals, int]]:
    """Each sink of each acyclic state, with the state after its step."""
    for graph, lids, vals in states(n):
        if paper.acyclic(graph, vals, lids):
            for i in paper.sinks(graph, vals, lids):
                yield graph, lids, paper.fire(graph, vals, [i], paper.llro), i


def steps_ours(n: int) -> Iterator[tuple[Field, int]]:
    """The same with heights."""
    for graph, lids, vals in states(n):
        for i in Field(graph, lids, vals).sinks():
            yield _fired(Field(graph, lids, vals), i), i


def step_cyclic_printed(n: int, _: int) -> Count:
    """Steps of LLRO that close a cycle."""
    return count(not paper.acyclic(graph, vals, lids) for graph, lids, vals, _ in steps_printed(n))


def step_cyclic_ours(n: int, _: int) -> Count:
    """The same with heights."""
    return count(not field.acyclic() for field, _ in steps_ours(n))


def step_idle_printed(n: int, _: int) -> Count:
    """Steps of LLRO, from what it reaches from equal vals, after which the sink is still a sink."""
    return count(
        i in paper.sinks(graph, paper.fire(graph, vals, [i], paper.llro), lids)
        for graph, lids in cases(n)
        for vals in paper.reachable(graph, (0,) * n, lids, paper.llro)
        for i in paper.sinks(graph, vals, lids)
    )


def step_idle_ours(n: int, _: int) -> Count:
    """The same with heights, lifted from the states that one rule reaches."""
    return count(
        i in field.sinks()
        for graph, lids in cases(n)
        for vals in paper.reachable(graph, (0,) * n, lids, paper.one_rule)
        for i in paper.sinks(graph, vals, lids)
        for field in [_fired(Field(graph, lids, lifted(graph, vals)), i)]
    )


def step_again_printed(n: int, _: int) -> Count:
    """The same from every acyclic state."""
    return count(i in paper.sinks(graph, vals, lids) for graph, lids, vals, i in steps_printed(n))


def step_again_ours(n: int, _: int) -> Count:
    """The same from all heights."""
    return count(i in field.sinks() for field, i in steps_ours(n))


def lifted(graph: Graph, vals: Vals) -> list[int]:
    """The heights, from 0 on, that are `vals` modulo 3."""
    levels = paper.lift(graph, vals)
    assert levels is not None  # the amended rule keeps it
    return [level - min(levels) for level in levels]


def _fired(field: Field, i: int) -> Field:
    field.fire([i])
    return field


# Lemma 4: starvation


def starving_printed(n: int, _: int) -> Count:
    """Cases, from equal vals, in which LLRO starves somebody."""
    return count(bool(paper.starved(g, (0,) * n, lids, paper.llro)) for g, lids in cases(n))


def starving_ours(n: int, _: int) -> Count:
    """The same with heights."""
    return count(bool(Field(graph, lids, (0,) * n).starved()) for graph, lids in cases(n))


def unfair_printed(n: int, _: int) -> Count:
    """Cases in which LLRO lets a node act two times more often than a neighbour."""
    return count(_apart_printed(graph, lids) > 1 for graph, lids in cases(n))


def _apart_printed(graph: Graph, lids: Lids) -> int:
    vals: Vals = (0,) * len(graph)
    acts = [0] * len(graph)
    for _ in range(ROUNDS * len(graph)):
        now = paper.sinks(graph, vals, lids)
        for i in now:
            acts[i] += 1
        vals = paper.fire(graph, vals, now, paper.llro)
    return max(abs(acts[i] - acts[j]) for i, peers in enumerate(graph) for j in peers)


def unfair_ours(n: int, _: int) -> Count:
    """The same with heights."""
    return count(_apart_ours(graph, lids) > 1 for graph, lids in cases(n))


def _apart_ours(graph: Graph, lids: Lids) -> int:
    field = Field(graph, lids, (0,) * len(graph))
    acts, most = [0] * len(graph), 0
    for _ in range(ROUNDS * len(graph)):
        now = field.sinks()
        for i in now:
            acts[i] += 1
        field.fire(now)
        most = max(most, *(abs(acts[a] - acts[b]) for a, b in field.edges))
    return most
