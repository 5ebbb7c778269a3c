"""What a skip ring's member must see to when it takes part in a plain sorted ring: labels.

A sorted ring takes any label that has an order; here only labels of a skip ring have a place.
"""

from collections.abc import Iterable

from planaria.core.node import Send
from planaria.protocols.ring.messages import Check, Introduce, RingMessage
from planaria.protocols.ring.sorted_ring import SortedRing
from planaria.protocols.skipring.messages import Ref
from planaria.protocols.skipring.place import Place


def as_ref(ref: Iterable[object] | None) -> Ref | None:
    """A reference of a sorted ring as one of a skip ring."""
    if ref is None:
        return None
    label, id = ref
    return (label, id) if isinstance(label, int) and isinstance(id, int) else None


def sortable(message: RingMessage, place: Place) -> bool:
    """Is the message about a node that could have a place beside mine?"""
    if isinstance(message, Check):
        return place.sound(as_ref(message.sender)) is not None
    return not isinstance(message, Introduce) or place.sound(as_ref(message.ref)) is not None


def correction(message: RingMessage, topic: str, place: Place) -> list[Send]:
    """Tell my label to an orphan that believes another."""
    if not isinstance(message, Check) or message.believed == place.label:
        return []
    label, sender = message.sender
    me: Ref = (place.label or 0, place.id)
    return [Send(sender, Check(topic, me, label, False))] if sender != place.id else []


def repair_orphan(orphan: SortedRing, place: Place) -> None:
    """Put the variables of an orphan's ring right, whatever they were."""
    orphan.label = place.label or 0
    orphan.left = place.sound(as_ref(orphan.left))
    orphan.right = place.sound(as_ref(orphan.right))
    orphan.ring = place.sound(as_ref(orphan.ring))
    orphan.lost = {id: age for id, age in orphan.lost.items() if place.may_be_neighbour(id)}
