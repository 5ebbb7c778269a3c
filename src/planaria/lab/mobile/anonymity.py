"""Note 5 as something measured: who published, in the eyes of some who watch?

The observer holds k nodes and sees all that they send and receive, not what others say to each
other. Publishers, and the turns with which publications leave them, are equally likely beforehand.
Who sees all links sees who spoke first, and knows.

Two bounds. Of a publication's first arrival: neighbours take turns in strict alternation, so each
turn of each node leads to one first arrival, over one link in one turn; one node can be named for
it, and every link has one turn while every node has one. Right at most links / (n - k) times.
Of all that is ever seen, by one who knows everybody's turns: nothing without a walk. With one, what
is seen depends on the publisher only by where the walk ended, in an observer's hands or with the
flood, and each end is reached from each node with a probability that the graph alone decides.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from planaria.core.ids import NodeId

Graph = Mapping[NodeId, Sequence[NodeId]]
Link = tuple[NodeId, NodeId]  # (honest sender, observer)
End = NodeId | Link  # of a walk: the node where the flood begins, or an observer was handed it
Ends = Mapping[NodeId, Mapping[End, float]]  # publisher -> end -> probability

REST = 1e-6  # of walks that are longer than is looked at


class Sighting(Struct, frozen=True):
    """The first copy of a publication that reached an observer, and who had published it."""

    link: Link | None
    publisher: NodeId


def bound_of_first(neighbours: Graph, observers: Sequence[NodeId]) -> float:
    """The best that can be made of the first arrival, for publishers drawn from the others."""
    honest = len(neighbours) - len(observers)
    return min(1.0, len(watched(neighbours, observers)) / honest) if honest > 0 else 0.0


def bound(neighbours: Graph, observers: Sequence[NodeId], walk: int) -> float:
    """The best that can be made of everything, by one who knows everybody's turns."""
    ends = walk_ends(neighbours, observers, walk)
    best: dict[End, float] = {}
    rest = 0.0
    for reached in ends.values():
        rest += 1 - sum(reached.values())
        for end, share in reached.items():
            best[end] = max(best.get(end, 0.0), share)
    return min(1.0, (sum(best.values()) + rest) / max(1, len(ends)))


def walk_ends(neighbours: Graph, observers: Sequence[NodeId], walk: int) -> Ends:
    """Where the walk of each honest node's publications ends, and how often.

    At least one step, `walk` on average, each to a neighbour drawn at random.
    """
    honest = [id for id in neighbours if id not in observers]
    if not walk:
        return {id: {id: 1.0} for id in honest}
    return {id: _ends_of(id, neighbours, observers, 1 / walk) for id in honest}


def _ends_of(
    publisher: NodeId, neighbours: Graph, observers: Sequence[NodeId], stop: float
) -> dict[End, float]:
    ends: dict[End, float] = {}
    here = {publisher: 1.0}
    while sum(here.values()) > REST:
        there: dict[NodeId, float] = {}
        for id, mass in here.items():
            for peer in neighbours[id]:
                share = mass / len(neighbours[id])
                if peer in observers:
                    ends[id, peer] = ends.get((id, peer), 0.0) + share
                else:
                    ends[peer] = ends.get(peer, 0.0) + share * stop
                    there[peer] = there.get(peer, 0.0) + share * (1 - stop)
        here = there
    return ends


def watched(neighbours: Graph, observers: Sequence[NodeId]) -> list[Link]:
    """The links between an honest node and an observer."""
    return [
        (peer, observer)
        for observer in observers
        for peer in neighbours[observer]
        if peer not in observers
    ]


def first_sender(sightings: Sequence[Sighting]) -> float:
    """How often the naive guess is right: whoever sent the first copy published it."""
    right = sum(it.link is not None and it.link[0] == it.publisher for it in sightings)
    return right / max(1, len(sightings))


def best_guess(learnt: Sequence[Sighting], judged: Sequence[Sighting]) -> float:
    """How often the best guess for each link is right, learnt from publications that the observer
    somehow knows the publishers of."""
    counts: dict[Link | None, dict[NodeId, int]] = {}
    for it in learnt:
        table = counts.setdefault(it.link, {})
        table[it.publisher] = table.get(it.publisher, 0) + 1
    guess = {link: max(sorted(table), key=table.__getitem__) for link, table in counts.items()}
    right = sum(guess.get(it.link) == it.publisher for it in judged)
    return right / max(1, len(judged))
