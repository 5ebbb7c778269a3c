"""Draws rings: the skip ring of a topic by its labels, and the ring of the DHT by its keys."""

from collections.abc import Mapping, Sequence

from planaria.core.ids import NodeId
from planaria.core.state import State
from planaria.protocols.dht.keys import KeySpace
from planaria.protocols.dht.member import DhtMemberState
from planaria.protocols.skipring.labels import CIRCLE, LABEL_MAX, label_bits, position
from planaria.protocols.skipring.legitimacy import parts_of
from planaria.protocols.skipring.peer import PeerState
from planaria.protocols.skipring.subscriber import SubscriberState
from planaria.web.pictures.picture import (
    INSIDE,
    RING,
    SHORTCUT,
    Named,
    Picture,
    Place,
    circle_places,
    listed,
    on_circle,
)

SPACE = KeySpace()


def ring_picture(
    ids: Sequence[NodeId], members: Mapping[NodeId, SubscriberState], named: Named
) -> Picture:
    """The ring and the shortcuts as members believe them; who is no member is drawn within."""
    found = Picture(places=_places(ids, {id: _share(it) for id, it in members.items()}))
    for id, it in members.items():
        refs = [ref[1] for ref in (it.pred, it.succ) if ref is not None]
        for kind, ends in ((SHORTCUT, it.shortcuts.values()), (RING, refs)):
            for end in ends:
                found.join(id, end, kind)
        label = "none yet" if _share(it) is None else label_bits(it.label or 0)
        pred, succ = ("nobody" if ref is None else named(ref[1]) for ref in (it.pred, it.succ))
        found.figures[id] = {
            "label": label,
            "on the ring": f"between {pred} and {succ}",
            "shortcuts": listed(named(end) for end in it.shortcuts.values()),
        }
    return found


def subscribers(states: Mapping[NodeId, State], topic: str = "") -> dict[NodeId, SubscriberState]:
    """Who is in the ring of a topic, or of any, among the states of a simulation."""
    members: dict[NodeId, SubscriberState] = {}
    for id, state in states.items():
        for part in parts_of(state):
            if isinstance(part, PeerState):
                for name, its in part.topics.items():
                    if not topic or name == topic:
                        members[id] = its.subscriber
    return members


def dht_picture(
    ids: Sequence[NodeId], members: Mapping[NodeId, DhtMemberState], named: Named
) -> Picture:
    """The hosts at their keys; the ring, closed at its ends, and the fingers over it."""
    found = Picture(places=_places(ids, {id: SPACE.key(id) / SPACE.size for id in members}))
    for id, it in members.items():
        refs = [ref[1] for ref in (it.ring.left, it.ring.right, it.ring.ring) if ref is not None]
        for kind, ends in ((SHORTCUT, it.fingers.known.values()), (RING, refs)):
            for end in ends:
                found.join(id, end, kind)
        found.figures[id] = {"beside": listed(map(named, refs)), "key": f"{SPACE.key(id):040x}"}
    return found


def _places(ids: Sequence[NodeId], shares: Mapping[NodeId, float | None]) -> dict[NodeId, Place]:
    """Members where they belong, everybody else in a circle within the ring."""
    places, others, taken = {}, [], set[Place]()
    for id in ids:
        share = shares.get(id)
        place = None if share is None else on_circle(share)
        if place is None or place in taken:  # two that claim one place are both to be seen
            others.append(id)
        else:
            places[id] = place
            taken.add(place)
    return places | circle_places(others, INSIDE)


def _share(it: SubscriberState) -> float | None:
    """How far around the ring a member's label is; None if it has no label that can be."""
    if it.label is None or not 0 <= it.label <= LABEL_MAX:
        return None
    return position(it.label) / CIRCLE
