"""Note 5 as something measured: who published, in the eyes of some who watch?

The observer holds k nodes and sees all that they send and receive, not what others say to each
other. A publication shows in its traffic as a first arrival over one link between an honest node
and one of the k. Whatever the observer makes of that link, with publishers equally likely it is
right with probability at most links / (n - k): it can name only one node for each link, and each
is the publisher once in n - k times. Who sees all links sees who spoke first, and knows.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from planaria.core.ids import NodeId

Link = tuple[NodeId, NodeId]  # (honest sender, observer)


class Sighting(Struct, frozen=True):
    """The first copy of a publication that reached an observer, and who had published it."""

    link: Link | None
    publisher: NodeId


def bound(neighbours: Mapping[NodeId, Sequence[NodeId]], observers: Sequence[NodeId]) -> float:
    """The best an observer of the first arrival can do, for publishers drawn from the others."""
    honest = len(neighbours) - len(observers)
    return min(1.0, len(watched(neighbours, observers)) / honest) if honest > 0 else 0.0


def watched(
    neighbours: Mapping[NodeId, Sequence[NodeId]], observers: Sequence[NodeId]
) -> list[Link]:
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
