"""The link reversal paper as printed (LLO, LLRO, LLRM, Tables 4 and 5), for tests and reports only.

A layer is a graph with a val and a lid per node, seen by all at once as in the paper's proofs. What
is printed stays printed, also where it fails; `one_rule` and `one_bit` are the two amendments that
the errata compare it with.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import combinations, permutations

Graph = tuple[tuple[int, ...], ...]  # neighbours of each node
Vals = tuple[int, ...]
Lids = tuple[int, ...]
Lower = Callable[[Vals, Lids, int, int], bool]  # is the edge oriented from the second to the first?
Rule = Callable[[Graph, Vals, int], int]  # the new val of a sink


def precedes(x: int, y: int) -> bool:
    """Definition 3."""
    return 0 < y - x < 2 or (x == 2 and y == 0)


def lower(vals: Vals, lids: Lids, p: int, q: int) -> bool:
    """Definition 4, with the relation of Definition 3."""
    return precedes(vals[p], vals[q]) or (vals[p] == vals[q] and lids[p] < lids[q])


def lower_plain(vals: Vals, lids: Lids, p: int, q: int) -> bool:
    """Definition 4 as its `<` is printed: the order of numbers (erratum 3)."""
    return (vals[p], lids[p]) < (vals[q], lids[q])


def lower_one_bit(bits: Vals, lids: Lids, p: int, q: int) -> bool:
    """One bit per node: an edge follows the lids if the bits agree, else opposes them."""
    return (lids[p] < lids[q]) == (bits[p] == bits[q])


def llro(graph: Graph, vals: Vals, i: int) -> int:
    """Table 2: R1 if all neighbours have my val, R2 (numeric max) otherwise."""
    around = [vals[j] for j in graph[i]]
    if all(val == vals[i] for val in around):
        return (vals[i] + 1) % 3
    return max(around)


def one_rule(_: Graph, vals: Vals, i: int) -> int:
    """The amendment: both rules are val + 1."""
    return (vals[i] + 1) % 3


def one_bit(_: Graph, bits: Vals, i: int) -> int:
    """A sink flips its bit: full reversal with two states (erratum 11)."""
    return 1 - bits[i]


def sinks(graph: Graph, vals: Vals, lids: Lids, low: Lower = lower) -> list[int]:
    """Definition 5."""
    return [i for i in range(len(graph)) if all(low(vals, lids, i, j) for j in graph[i])]


def acyclic(graph: Graph, vals: Vals, lids: Lids, low: Lower = lower) -> bool:
    """Can all nodes be taken away, always one that no remaining edge leaves?"""
    left = list(range(len(graph)))
    while left:
        ends = [
            i for i in left if all(j not in left or not low(vals, lids, j, i) for j in graph[i])
        ]
        if not ends:
            return False
        left = [i for i in left if i not in ends]
    return True


def fire(graph: Graph, vals: Vals, chosen: Iterable[int], rule: Rule) -> Vals:
    """The chosen sinks act at once."""
    new = {i: rule(graph, vals, i) for i in chosen}
    return tuple(new.get(i, val) for i, val in enumerate(vals))


def starved(graph: Graph, vals: Vals, lids: Lids, rule: Rule, low: Lower = lower) -> list[int]:
    """Who acts only finitely often when all sinks act in every round: the states repeat at last."""
    seen: dict[Vals, int] = {}
    acted: list[list[int]] = []
    while vals not in seen:
        seen[vals] = len(acted)
        acted.append(sinks(graph, vals, lids, low))
        vals = fire(graph, vals, acted[-1], rule)
    for_ever = [i for now in acted[seen[vals] :] for i in now]
    return [i for i in range(len(graph)) if i not in for_ever]


def reachable(
    graph: Graph, vals: Vals, lids: Lids, rule: Rule, low: Lower = lower
) -> dict[Vals, list[Vals]]:
    """All states that any schedule of single sinks reaches, with their successors."""
    found: dict[Vals, list[Vals]] = {}
    queue = [vals]
    while queue:
        state = queue.pop()
        if state not in found:
            found[state] = [fire(graph, state, [i], rule) for i in sinks(graph, state, lids, low)]
            queue += found[state]
    return found


def lift(graph: Graph, vals: Vals) -> tuple[int, ...] | None:
    """Integers that are val modulo 3 and differ by at most one on every edge, if there are any."""
    heights = {0: vals[0]}
    queue = [0]
    while queue:
        i = queue.pop()
        for j in graph[i]:
            height = heights[i] + (vals[j] - vals[i] + 1) % 3 - 1
            if j not in heights:
                heights[j] = height
                queue.append(j)
            elif heights[j] != height:
                return None
    return tuple(heights[i] for i in range(len(graph)))


# Table 1


def choose_id(around: Sequence[int]) -> int:
    """Choose_id: the first free number between the neighbours' lids, else the largest plus one."""
    free = [lid for lid in range(min(around), max(around) + 1) if lid not in around]
    return min(free) if free else max(around) + 1


def llo(around: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Table 1: (val, lid) of a newcomer, from (val, lid) of its neighbours."""
    vals = [val for val, _ in around]
    lids = [lid for _, lid in around]
    if len(set(vals)) == 1:
        return (vals[0] + 1) % 3, choose_id(lids)
    if sorted(set(vals)) != [0, 1, 2]:
        return min(vals), choose_id(lids)
    return 0, max(lid for val, lid in around if val == 0) + 1


def joined(graph: Graph, points: Sequence[int]) -> Graph:
    """The graph with a newcomer at `points`."""
    new = len(graph)
    grown = [(*peers, new) if i in points else peers for i, peers in enumerate(graph)]
    return (*grown, tuple(points))


# Table 4


def send(graph: Graph, buffers: dict[int, list[str]], i: int, *, lists: bool = True) -> int:
    """A turn: everything received goes to all neighbours, once each or (`lists`) as often as it
    came; returns the copies sent."""
    messages, buffers[i] = buffers[i], []
    if not lists:
        messages = sorted(set(messages))
    for j in graph[i]:
        buffers[j] += messages
    return len(messages) * len(graph[i])


def table_4(graph: Graph, lids: Lids, publisher: int, rounds: int, *, lists: bool) -> list[int]:
    """Copies sent in each round when all sinks act.

    Orientation by the amended rule, so that what fails is the dissemination.
    """
    vals: Vals = (0,) * len(graph)
    buffers: dict[int, list[str]] = {i: [] for i in range(len(graph))}
    buffers[publisher] = ["m"]
    sent = []
    for _ in range(rounds):
        acting = sinks(graph, vals, lids)
        sent.append(sum(send(graph, buffers, i, lists=lists) for i in acting))
        vals = fire(graph, vals, acting, one_rule)
    return sent


# All small graphs


def graph_of(n: int, edges: Iterable[tuple[int, int]]) -> Graph:
    """Adjacency from a list of edges."""
    pairs = sorted(edges)
    return tuple(
        tuple(sorted([b for a, b in pairs if a == i] + [a for a, b in pairs if b == i]))
        for i in range(n)
    )


def connected(graph: Graph) -> bool:
    """Is every node reached from the first?"""
    reached, queue = {0: None}, [0]
    while queue:
        for j in graph[queue.pop()]:
            if j not in reached:
                reached[j] = None
                queue.append(j)
    return len(reached) == len(graph)


@cache
def connected_graphs(n: int) -> tuple[Graph, ...]:
    """All connected graphs of `n` nodes, one of each shape."""
    pairs = list(combinations(range(n), 2))
    shapes: dict[tuple[tuple[int, int], ...], Graph] = {}
    for size in range(n - 1, len(pairs) + 1):
        for edges in combinations(pairs, size):
            graph = graph_of(n, edges)
            if connected(graph):
                shapes.setdefault(_canonical(n, edges), graph)
    return tuple(shapes.values())


def orders(graph: Graph) -> list[Lids]:
    """Lids 1..n, one assignment for each acyclic orientation of `graph`."""
    found: Mapping[tuple[bool, ...], Lids] = {
        tuple(lids[i] < lids[j] for i, peers in enumerate(graph) for j in peers): lids
        for lids in permutations(range(1, len(graph) + 1))
    }
    return list(found.values())


def _canonical(n: int, edges: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    return min(
        tuple(sorted((min(p[a], p[b]), max(p[a], p[b])) for a, b in edges))
        for p in permutations(range(n))
    )
