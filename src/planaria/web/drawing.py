"""Where nodes are drawn and which lines join them: a skip ring by labels, others in a circle."""

from collections.abc import Iterable, Mapping, Sequence
from math import cos, pi, sin

from planaria.core.ids import NodeId
from planaria.core.state import State
from planaria.protocols.skipring.labels import CIRCLE, LABEL_MAX, position
from planaria.protocols.skipring.legitimacy import parts_of
from planaria.protocols.skipring.peer import PeerState
from planaria.protocols.skipring.subscriber import SubscriberState

RING, SHORTCUT, LINK = "ring", "shortcut", "link"
OUTSIDE = 1.0  # where the ring is; what is in no ring is drawn within
INSIDE = 0.35

Place = tuple[float, float]
Edge = tuple[int, int, str]


def on_circle(share: float, radius: float = OUTSIDE) -> Place:
    """The place at `share` of the way around, clockwise from the top."""
    return round(radius * sin(2 * pi * share), 4), round(-radius * cos(2 * pi * share), 4)


def ring_places(
    ids: Sequence[NodeId], members: Mapping[NodeId, SubscriberState]
) -> dict[NodeId, Place]:
    """Members where their labels say, everybody else in a circle within the ring."""
    places, others, taken = {}, [], set[Place]()
    for id in ids:
        label = members[id].label if id in members else None
        place = None
        if label is not None and 0 <= label <= LABEL_MAX:
            place = on_circle(position(label) / CIRCLE)
        if place is None or place in taken:  # two that claim one label are both to be seen
            others.append(id)
        else:
            places[id] = place
            taken.add(place)
    return places | circle_places(others, INSIDE)


def places_of(states: Mapping[NodeId, State]) -> dict[NodeId, Place]:
    """Where the nodes of a simulated ring belong; nothing for other overlays."""
    members: dict[NodeId, SubscriberState] = {}
    for id, state in states.items():
        for part in parts_of(state):
            if isinstance(part, PeerState):
                for its in part.topics.values():
                    members[id] = its.subscriber
    return ring_places(sorted(states), members) if members else {}


def circle_places(ids: Sequence[NodeId], radius: float = OUTSIDE) -> dict[NodeId, Place]:
    """All of them in a circle, in the order given."""
    return {id: on_circle(at / len(ids), radius) for at, id in enumerate(ids)}


def ring_edges(
    numbers: Mapping[NodeId, int], members: Mapping[NodeId, SubscriberState]
) -> list[Edge]:
    """The ring and the shortcuts as members believe them; what leads to nobody is left out."""
    found: dict[tuple[int, int], str] = {}
    for id, it in members.items():
        if id not in numbers:
            continue
        refs = [ref[1] for ref in (it.pred, it.succ) if ref is not None]
        for kind, ends in ((SHORTCUT, it.shortcuts.values()), (RING, refs)):
            for pair in pairs(numbers, id, ends):
                found[pair] = kind  # the ring is drawn over shortcuts
    return [(a, b, kind) for (a, b), kind in sorted(found.items())]


def pairs(
    numbers: Mapping[NodeId, int], id: NodeId, ends: Iterable[NodeId]
) -> Iterable[tuple[int, int]]:
    """The numbers of `id` and each end, the smaller first, so that a line is drawn once."""
    for end in ends:
        if end in numbers and end != id:
            a, b = sorted((numbers[id], numbers[end]))
            yield a, b
