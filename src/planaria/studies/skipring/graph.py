"""What section 2.1 and its neighbours say of SR(n), measured on a graph of labels.

A graph maps each label, a string of bits, to the labels beside it. `grown` is the ring that
Planaria's subscribers form when they join; `defined` is Definition 2.
"""

from bisect import bisect, insort
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

from planaria.core.chance import stream
from planaria.literal.skipring.labels import chain
from planaria.literal.skipring.reference import reference_labels, skip_ring_edges
from planaria.protocols.skipring.labels import label_bits, label_index, predecessor, successor
from planaria.protocols.skipring.labels import shortcut_labels as computed_by_us
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.protocols.skipring.shape import draw, members, neighbours
from planaria.simulator.trial import Spec, Trial

Graph = dict[str, list[str]]
T = TypeVar("T")

DIAMETER_SOURCES_MAX = 2048  # of a larger graph, searches from so many of its labels
CONGESTION_SOURCES_MAX = 256  # each costs paths to all others
GROWING_MAX = 400  # intervals


def grown(n: int, seed: int) -> Graph:
    """The ring of `n` subscribers that joined at once, by label."""
    trial = _joined(n, seed)
    ring = members(trial.simulator.states(), RingOverlay().topic)
    label = {id: label_bits(one.label or 0) for id, one in ring.items()}
    return {label[id]: [label[other] for other in neighbours(one)] for id, one in ring.items()}


def defined(n: int) -> Graph:
    """Definition 2."""
    graph: Graph = {bits: [] for bits in reference_labels(n)}
    for one, other in sorted(skip_ring_edges(n)):
        graph[one].append(other)
        graph[other].append(one)
    return graph


def picture(n: int, seed: int) -> str:
    """The same ring as `grown`, drawn."""
    return draw(_joined(n, seed).simulator.states(), RingOverlay().topic)


def _joined(n: int, seed: int) -> Trial:
    trial = Trial(RingOverlay(), Spec(n, seed, "fresh", intervals=GROWING_MAX, closure=0))
    outcome = trial.run()
    if outcome.failure:
        raise trial.violation(*outcome.failure)
    return trial


def value(bits: str) -> float:
    """r(label), in [0, 1)."""
    return int(bits, 2) / (1 << len(bits))


def ring_order(graph: Mapping[str, object]) -> list[str]:
    """The labels as they follow each other on the circle."""
    return sorted(graph, key=value)


def gap_ratio(graph: Graph) -> float:
    """The widest gap between labels that follow each other, in units of the narrowest."""
    places = [*(value(bits) for bits in ring_order(graph)), 1.0]
    gaps = [after - before for before, after in pairwise(places)]
    return max(gaps) / min(gaps)


def edges_on_level(graph: Graph, level: int) -> int:
    """Undirected edges (u, v) with max(|u|, |v|) = level: ring edges are on the longest one."""
    ends = sum(
        max(len(one), len(other)) == level for one, beside in graph.items() for other in beside
    )
    return ends // 2


def two_on_every_level(graph: Graph) -> float:
    """Share of labels with two neighbours on every level from their own to the longest (3.2.2)."""
    longest = max(len(bits) for bits in graph)
    right = 0
    for bits, beside in graph.items():
        ends = [max(len(bits), len(other)) for other in beside]
        right += all(ends.count(level) == 2 for level in range(len(bits) + 1, longest + 1)) and (
            ends.count(len(bits)) == 2
        )
    return right / len(graph)


def crossing(graph: Graph) -> int:
    """Edges from inside one semicircle, [0, 1/2] or [1/2, 1], to inside the other."""

    def side(bits: str) -> int:
        return 0 if bits in ("0", "1") else 1 if value(bits) < 0.5 else 2

    return sum({side(one), side(other)} == {1, 2} for one in graph for other in graph[one]) // 2


def computed_shortcuts(graph: Graph, *, ours: bool) -> float:
    """Share of labels whose edges are those that 3.2.2 computes from the two ring neighbours."""
    order = ring_order(graph)
    right = 0
    for rank, bits in enumerate(order):
        found = set()
        for beside in (order[rank - 1], order[(rank + 1) % len(order)]):
            found |= {beside, *(_by_us(bits, beside) if ours else chain(bits, beside))}
        right += found - {bits} == set(graph[bits])
    return right / len(graph)


def _by_us(own: str, beside: str) -> list[str]:
    mine, other = label_index(own), label_index(beside)
    assert mine is not None  # labels of a ring are labels
    assert other is not None
    return [label_bits(index) for index in computed_by_us(mine, other)]


def touched(n: int, *, ours: bool) -> dict[str, list[int]]:
    """While n subscribers join SR(n) one by one: which joins change an old one's neighbours."""
    labels = reference_labels(2 * n)
    line = sorted(labels[:n], key=value)
    changes: dict[str, list[int]] = {bits: [] for bits in line}
    for size in range(n, 2 * n):
        new = labels[size]
        if ours:
            beside = [label_bits(of(size, size + 1)) for of in (predecessor, successor)]
        else:
            rank = bisect(line, value(new), key=value)
            beside = [line[rank - 1], line[rank % len(line)]]
        for bits in dict.fromkeys(beside):
            if bits in changes:
                changes[bits].append(size)
        insort(line, new, key=value)
    return changes


def diameter(graph: Graph) -> int:
    """The longest of all shortest paths (of a large graph, of those from a sample)."""
    sources = _sample(list(graph), DIAMETER_SOURCES_MAX)
    return max(max(_distances(graph, source).values()) for source in sources)


def congestion(graph: Graph) -> float:
    """Packets through the busiest node when everybody sends one to a random other.

    Shortest paths, all equally likely (Brandes' accumulation); ends of a path do not count.
    """
    load = dict.fromkeys(graph, 0.0)
    sources = _sample(list(graph), CONGESTION_SOURCES_MAX)
    for source in sources:
        distance = _distances(graph, source)
        order = list(distance)
        paths = dict.fromkeys(order, 0)
        paths[source] = 1
        for at in order:
            for other in graph[at]:
                if distance[other] == distance[at] + 1:
                    paths[other] += paths[at]
        passing = dict.fromkeys(order, 0.0)
        for at in reversed(order):
            for before in graph[at]:
                if distance[before] == distance[at] - 1:
                    passing[before] += paths[before] / paths[at] * (1 + passing[at])
            if at != source:
                load[at] += passing[at]
    return max(load.values()) / (len(graph) - 1) * len(graph) / len(sources)


def chord_congestion(n: int, seed: int) -> float:
    """The same in a Chord ring: random ids, fingers to the owners of id + 2^i, greedy routing."""
    chance = stream(seed, "chord")
    ids = sorted(chance.sample(range(1 << 32), n))
    fingers = [_fingers(ids, at) for at in range(n)]
    load = [0] * n
    sources = _sample(list(range(n)), CONGESTION_SOURCES_MAX)
    for source in sources:
        for target in range(n):
            at = source
            while at != target:
                at = (at + _step(fingers[at], (target - at) % n)) % n
                load[at] += at != target
    return max(load) / (n - 1) * n / len(sources)


def _fingers(ids: Sequence[int], at: int) -> list[int]:
    """How many places on each finger of a place is, the nearest first."""
    owners = (bisect(ids, (ids[at] + (1 << bit) - 1) % (1 << 32)) for bit in range(32))
    return sorted({(owner - at) % len(ids) for owner in owners})


def _step(fingers: Sequence[int], away: int) -> int:
    """The finger that gets closest to a target so far away without passing it."""
    return fingers[bisect(fingers, away) - 1]


def _sample(all_of_them: list[T], most: int) -> list[T]:
    return stream(0, "sources").sample(all_of_them, min(most, len(all_of_them)))


def _distances(graph: Graph, source: str) -> dict[str, int]:
    """Hops from `source`, in the order in which a breadth-first search finds them."""
    distance, waiting = {source: 0}, deque([source])
    while waiting:
        at = waiting.popleft()
        for other in graph[at]:
            if other not in distance:
                distance[other] = distance[at] + 1
                waiting.append(other)
    return distance
