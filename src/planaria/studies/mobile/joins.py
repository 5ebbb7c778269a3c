"""Newcomers, leavers, and parts that meet again: Table 1, Lemma 2, Notes 1, 2 and 4."""

from collections.abc import Iterator
from itertools import chain, combinations
from random import Random

from planaria.core.chance import stream
from planaria.literal import mobile as paper
from planaria.literal.mobile import Graph, Lids, Vals, graph_of
from planaria.protocols.mobile.heights import Heights
from planaria.studies.mobile.small import Count, Field, cases, count, lifted, states

RUNS = 100  # of a question that draws its cases


def joins(n: int) -> Iterator[tuple[Graph, Lids, Vals, tuple[int, ...]]]:
    """Every state that the amended rule reaches from equal vals, and every choice of points."""
    for graph, lids in cases(n):
        for vals in paper.reachable(graph, (0,) * n, lids, paper.one_rule):
            sizes = range(1, n + 1)
            for points in chain.from_iterable(combinations(range(n), size) for size in sizes):
                yield graph, lids, vals, points


def outward_printed(n: int, _: int) -> Count:
    """Links of a newcomer beside equal vals that do not point away from it (Figure 3.2 a)."""
    return count(
        not paper.lower((*vals, val), (*lids, lid), i, n)
        for _, lids, vals, points in joins(n)
        if len({vals[i] for i in points}) == 1
        for val, lid in [paper.llo([(vals[i], lids[i]) for i in points])]
        for i in points
    )


def outward_ours(n: int, seed: int) -> Count:
    """The same with heights."""
    return count(
        field.nodes[i].height >= field.nodes[n].height
        for field, points in _joined(n, seed)
        if len({field.nodes[i].height for i in points}) == 1
        for i in points
    )


def join_cyclic_printed(n: int, _: int) -> Count:
    """Joins by LLO that close a cycle at once."""
    return count(not paper.acyclic(*_join(*join)) for join in joins(n))


def join_cyclic_ours(n: int, seed: int) -> Count:
    """The same with heights."""
    return count(not field.acyclic() for field, _ in _joined(n, seed))


def join_starving_printed(n: int, _: int) -> Count:
    """Joins by LLO after which somebody starves, although LLRO is amended."""
    return count(bool(paper.starved(*_join(*join), paper.one_rule)) for join in joins(n))


def join_starving_ours(n: int, seed: int) -> Count:
    """The same with heights."""
    return count(bool(field.starved()) for field, _ in _joined(n, seed))


def same_lid_printed(n: int, _: int) -> Count:
    """Joins by rule R3 of LLO, beside all three vals, with the lid of a neighbour."""
    return count(
        paper.llo([(vals[i], lids[i]) for i in points])[1] in [lids[i] for i in points]
        for _, lids, vals, points in joins(n)
        if len({vals[i] for i in points}) == 3
    )


def same_lid_ours(n: int, seed: int) -> Count:
    """Lids drawn as the product draws them, beside as many neighbours."""
    rng = stream(seed, "lids")
    drawn = [[Heights(i, rng).lid for i in range(n + 1)] for _ in range(RUNS)]
    return count(lids[-1] in lids[:-1] for lids in drawn)


def two_joiners_printed(_n: int, _seed: int) -> Count:
    """Two newcomers beside one node and each other: pairs that take one lid."""
    return count(paper.llo([(val, 1)]) == paper.llo([(val, 1)]) for val in range(3))


def two_joiners_ours(_: int, seed: int) -> Count:
    """The same with lids drawn."""
    rng = stream(seed, "joiners")
    return count(Heights(0, rng).lid == Heights(1, rng).lid for _ in range(RUNS))


def _join(
    graph: Graph, lids: Lids, vals: Vals, points: tuple[int, ...]
) -> tuple[Graph, Vals, Lids]:
    val, lid = paper.llo([(vals[i], lids[i]) for i in points])
    return paper.joined(graph, points), (*vals, val), (*lids, lid)


def _joined(n: int, seed: int) -> Iterator[tuple[Field, tuple[int, ...]]]:
    """Heights lifted from each state of `joins`, with a newcomer at its points."""
    rng = stream(seed, "newcomers")
    for graph, lids, vals, points in joins(n):
        field = Field(graph, lids, lifted(graph, vals))
        field.add(rng.randrange(n + 1, 1 << 32))
        for point in points:
            field.link(n, point)
        yield field, points


def leave_printed(n: int, _: int) -> Count:
    """Acyclic states that are cyclic when some node has left (Note 1)."""
    return count(
        not paper.acyclic(
            tuple(tuple(j for j in peers if j != gone) for peers in graph), vals, lids
        )
        for graph, lids, vals in states(n)
        if paper.acyclic(graph, vals, lids)
        for gone in range(n)
    )


def leave_ours(n: int, _: int) -> Count:
    """The same with heights."""
    return count(
        not _left(Field(*state), gone).acyclic() for state in states(n) for gone in range(n)
    )


def _left(field: Field, gone: int) -> Field:
    for a, b in [edge for edge in field.edges if gone in edge]:
        field.edges.remove((a, b))
        field.nodes[a].link_down(b)
        field.nodes[b].link_down(a)
    return field


def waiting_printed(n: int, seed: int) -> Count:
    """Note 2: a newcomer joins both ends of a path, each link only when that end is a sink."""
    rng = stream(seed, "note 2")
    return count(_waits(n, rng) for _ in range(RUNS))


def _waits(n: int, rng: Random) -> bool:
    path = graph_of(n, [(i, i + 1) for i in range(n - 1)])
    lids = tuple(rng.sample(range(1, 100), n + 1))
    vals: Vals = (0,) * n
    graph, forming = path, [0, n - 1]
    for _ in range(15 * n):
        ready = [i for i in forming if i in paper.sinks(graph, vals, lids)]
        if ready:
            forming.remove(ready[0])
            if len(vals) == n:
                vals = (*vals, (vals[ready[0]] + 1) % 3)  # the newcomer is the upper end
            graph = paper.joined(path, tuple(i for i in (0, n - 1) if i not in forming))
        acting = paper.sinks(graph, vals, lids)
        if acting:
            vals = paper.fire(graph, vals, [rng.choice(acting)], paper.one_rule)
    return bool(paper.starved(graph, vals, lids, paper.one_rule))


def running_printed(n: int, seed: int) -> Count:
    """The same where the path has been running for a while, and all sinks act in each round."""
    rng = stream(seed, "note 2, running")
    return count(_waits_in_rounds(n, rng) for _ in range(RUNS))


def _waits_in_rounds(n: int, rng: Random) -> bool:
    """A link forms when its end becomes a sink, which then acts if it still is one."""
    path = graph_of(n, [(i, i + 1) for i in range(n - 1)])
    lids = tuple(rng.sample(range(1, 100), n + 1))
    vals: Vals = (0,) * n
    for _ in range(rng.randrange(15 * n)):
        acting = paper.sinks(path, vals, lids)
        vals = paper.fire(path, vals, [rng.choice(acting)], paper.one_rule)
    graph, forming = path, [0, n - 1]
    for _ in range(15 * n):
        for end in [it for it in forming if it in paper.sinks(graph, vals, lids)]:
            forming.remove(end)
            if len(vals) == n:
                vals = (*vals, (vals[end] + 1) % 3)  # the newcomer is the upper end
            graph = paper.joined(path, tuple(it for it in (0, n - 1) if it not in forming))
            if end in paper.sinks(graph, vals, lids):
                vals = paper.fire(graph, vals, [end], paper.one_rule)
        vals = paper.fire(graph, vals, paper.sinks(graph, vals, lids), paper.one_rule)
    return bool(paper.starved(graph, vals, lids, paper.one_rule))


# Note 4: parts that ran apart and meet again


def merge_printed(n: int, seed: int) -> Count:
    """Two complete parts of `n`, run apart, joined by two links: somebody starves."""
    rng = stream(seed, "merge")
    return count(_merged_printed(n, rng) for _ in range(RUNS))


def merge_ours(n: int, seed: int) -> Count:
    """The same with heights."""
    rng = stream(seed, "merge")
    return count(_merged_ours(n, rng) for _ in range(RUNS))


def _parts(n: int) -> tuple[Graph, Lids]:
    one = list(combinations(range(n), 2))
    return graph_of(2 * n, one + [(a + n, b + n) for a, b in one]), tuple(range(1, 2 * n + 1))


def _bridges(n: int, rng: Random) -> list[tuple[int, int]]:
    return rng.sample([(a, b) for a in range(n) for b in range(n, 2 * n)], 2)


def _merged_printed(n: int, rng: Random) -> bool:
    (graph, lids), vals = _parts(n), (0,) * (2 * n)
    for _ in range(rng.randrange(20)):
        vals = paper.fire(graph, vals, [rng.choice(paper.sinks(graph, vals, lids))], paper.one_rule)
    edges = [(a, b) for a, peers in enumerate(graph) for b in peers if a < b]
    return bool(
        paper.starved(graph_of(2 * n, edges + _bridges(n, rng)), vals, lids, paper.one_rule)
    )


def _merged_ours(n: int, rng: Random) -> bool:
    graph, lids = _parts(n)
    field = Field(graph, lids, (0,) * (2 * n))
    for _ in range(rng.randrange(20)):
        field.fire([rng.choice(field.sinks())])
    for a, b in _bridges(n, rng):
        field.link(a, b)
    return bool(field.starved())
