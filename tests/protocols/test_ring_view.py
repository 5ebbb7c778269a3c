"""The view that a member keeps of its place: what a fault makes of it does not stay."""

from random import Random

import pytest

from planaria.core.node import Effects, Publish, Send
from planaria.protocols.skipring.arbitrary_history import corrupt_view
from planaria.protocols.skipring.arcs import Share
from planaria.protocols.skipring.broadcast_messages import Arc, Flood
from planaria.protocols.skipring.labels import position
from planaria.protocols.skipring.overlay import TOPIC, RingOverlay
from planaria.protocols.skipring.peer import Peer


def settled_peer() -> Peer:
    """A member of a legitimate ring that has just published."""
    peer = RingOverlay().legitimate(9, Random(1))[0]
    assert isinstance(peer, Peer)
    peer.on_command(Publish(TOPIC, b"before"))
    return peer


def spread(effects: Effects) -> list[tuple[type, int]]:
    """By what kind of message a publication leaves, and to whom."""
    sends = [effect for effect in effects if isinstance(effect, Send)]
    return [(type(it.message), it.target) for it in sends if isinstance(it.message, Arc | Flood)]


@pytest.mark.parametrize(("field", "value"), [("doubt", True), ("id", 99), ("label", 5)])
def test_view_of_another_place_is_made_anew_at_once(field: str, value: int) -> None:
    peer = settled_peer()
    right = spread(peer.on_command(Publish(TOPIC, b"right")))
    assert {kind for kind, _ in right} == {Arc}
    setattr(peer.topics[TOPIC]._seen, field, value)
    assert spread(peer.on_command(Publish(TOPIC, b"after the fault"))) == right
    assert getattr(peer.topics[TOPIC]._seen, field) != value


def test_false_division_of_an_arc_is_forgotten_at_the_next_timeout() -> None:
    peer = settled_peer()
    right = spread(peer.on_command(Publish(TOPIC, b"right")))
    membership = peer.topics[TOPIC]
    assert membership.subscriber.label is not None
    own = position(membership.subscriber.label)
    membership._seen._splits[own, own, 0] = [Share(1, 77, 0, 0)]
    assert spread(peer.on_command(Publish(TOPIC, b"lost"))) == [(Arc, 77)]
    peer.on_timeout()
    assert spread(peer.on_command(Publish(TOPIC, b"found"))) == right


def test_any_view_raises_nothing_and_is_right_after_a_timeout() -> None:
    right = spread(settled_peer().on_command(Publish(TOPIC, b"right")))
    false = 0
    for seed in range(40):
        peer = settled_peer()
        corrupt_view(peer.topics[TOPIC], range(9), Random(seed))
        false += spread(peer.on_command(Publish(TOPIC, b"lost"))) != right
        corrupt_view(peer.topics[TOPIC], range(9), Random(seed))
        peer.on_timeout()
        assert spread(peer.on_command(Publish(TOPIC, b"found"))) == right
    assert false > 5


def test_a_shortcut_that_changes_in_its_place_is_seen_at_once() -> None:
    peer = settled_peer()
    shortcuts = peer.topics[TOPIC].subscriber.shortcuts
    slot, former = next(it for it in shortcuts.items() if it[1] is not None)
    before = spread(peer.on_command(Publish(TOPIC, b"before")))
    assert (Arc, former) in before
    shortcuts[slot] = 77
    after = spread(peer.on_command(Publish(TOPIC, b"after")))
    assert after == [(kind, 77 if id == former else id) for kind, id in before]
