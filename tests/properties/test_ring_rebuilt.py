"""While a supervisor rebuilds a ring from nothing, what members publish reaches the others."""

from random import Random

import pytest

from planaria.core.chance import stream
from planaria.core.node import LinkDown, Publish, Send
from planaria.protocols.skipring.arbitrary import corrupt_former
from planaria.protocols.skipring.broadcast_messages import Arc, Flood
from planaria.protocols.skipring.former import FORMER_TIMEOUTS
from planaria.protocols.skipring.messages import SetData
from planaria.protocols.skipring.overlay import TOPIC, RingOverlay
from planaria.protocols.skipring.peer import Peer
from planaria.simulator.trial import Spec, Trial
from ring_lab import RingLab


def settled() -> Peer:
    """A member of a ring of 6."""
    trial = Trial(RingOverlay(), Spec(n=6, seed=1, start="legitimate"))
    for _ in range(20):
        trial.simulator.run_interval()
    return next(it for it in trial.simulator.nodes.values() if isinstance(it, Peer))


def beside(peer: Peer) -> set[int]:
    """Its neighbours."""
    return {id for _, id in peer.topics[TOPIC].subscriber.neighbours()}


def tell_to_be_alone(peer: Peer, *, spread: bool = True, overtaken: bool = False) -> None:
    """A supervisor names it as the only one; `overtaken`: in a configuration that comes late."""
    inquiry = peer.topics[TOPIC].subscriber.inquiry
    assert inquiry.supervisor is not None
    version = inquiry.version + (-1 if overtaken else 1)
    word = SetData(TOPIC, inquiry.supervisor, version, 0, None, None, 1, False, spread)
    inquiry.version_age = 0
    peer.on_message(word, inquiry.supervisor)
    assert overtaken or not beside(peer)


def reached(peer: Peer) -> set[int]:
    """To whom a publication goes."""
    effects = peer.on_command(Publish(TOPIC, b"news"))
    sends = [it for it in effects if isinstance(it, Send)]
    return {it.target for it in sends if isinstance(it.message, Arc | Flood)}


def test_who_is_told_first_publishes_to_its_former_neighbours() -> None:
    peer = settled()
    before = beside(peer)
    tell_to_be_alone(peer)
    assert len(before) > 1
    assert reached(peer) == before


def test_who_is_told_first_passes_on_to_its_former_neighbours() -> None:
    peer, publisher = settled(), settled()
    before = beside(peer)
    tell_to_be_alone(peer)
    (published, *_) = [
        it.message
        for it in publisher.on_command(Publish(TOPIC, b"news"))
        if isinstance(it, Send) and isinstance(it.message, Arc)
    ]
    flood = Flood(TOPIC, min(before), published.record, 1)
    effects = [it for it in peer.on_message(flood, min(before)) if isinstance(it, Send)]
    assert {it.target for it in effects} == before - {min(before)}


def test_former_neighbours_are_forgotten_soon() -> None:
    peer = settled()
    tell_to_be_alone(peer)
    for _ in range(FORMER_TIMEOUTS - 1):
        peer.on_timeout()
    assert reached(peer)
    peer.on_timeout()
    assert reached(peer) == set()


def test_whom_a_supervisor_moves_that_knows_the_ring_has_no_former_neighbours() -> None:
    peer = settled()
    tell_to_be_alone(peer, spread=False)
    assert reached(peer) == set()


def test_a_configuration_that_is_not_heeded_takes_nobody_away() -> None:
    peer = settled()
    tell_to_be_alone(peer, overtaken=True)
    assert beside(peer)
    assert not peer.topics[TOPIC].former


def test_whom_it_misses_and_whom_no_send_reaches_is_not_flooded() -> None:
    peer = settled()
    one = peer.topics[TOPIC].subscriber
    before = beside(peer)
    assert one.pred is not None
    missed = one.pred[1]
    peer.on_command(LinkDown(missed))
    tell_to_be_alone(peer)
    assert reached(peer) == before - {missed}
    gone = min(before - {missed})
    peer.on_command(LinkDown(gone))
    assert reached(peer) == before - {missed, gone}


def test_former_neighbours_are_part_of_the_state() -> None:
    peer = settled()
    before = beside(peer)
    tell_to_be_alone(peer)
    again = Peer(peer.id, peer.supervisors, Random(1))
    assert list(again.restore(peer.snapshot())) == []
    assert again.topics[TOPIC].former.left == dict.fromkeys(before, FORMER_TIMEOUTS)
    assert reached(again) == before


def test_a_topic_with_former_neighbours_does_not_rest_and_counts_what_it_rested() -> None:
    """A fault may let it rest all the same: the intervals are made up for."""
    trial = Trial(RingOverlay(pace=16), Spec(n=6, seed=1, start="legitimate"))
    for _ in range(120):
        trial.simulator.run_interval()
    peer = next(it for it in trial.simulator.nodes.values() if isinstance(it, Peer))
    membership = peer.topics[TOPIC]
    pace = membership.subscriber.pace
    membership.former.left = {3: 6}
    pace.pace, pace.left = 16, 9
    pace.rest, pace.rested = 3, 0
    for left in (6, 6, 6, 2):
        peer.on_timeout()
        assert membership.former.left == {3: left}
        assert pace.spoke == (left == 2)
    for _ in range(2):
        peer.on_timeout()
        assert pace.spoke


@pytest.mark.parametrize("n", [1, 2, 5, 9, 16])
def test_any_former_neighbours_leave_a_legitimate_ring_so_and_are_gone_soon(n: int) -> None:
    """Nobody tells them on, so nothing keeps a false one: all publish to all of them meanwhile."""
    rng, kept = stream(n, "former"), 0
    for seed in range(4):
        lab = RingLab.legitimate(n, seed)
        memberships = [lab.overlay.membership(lab.simulator.nodes[id]) for id in lab.peers]
        for one in memberships:
            corrupt_former(one.former, range(n + 3), rng)
            kept += len(one.former.left)
        assert not lab.violations()
        for number in range(FORMER_TIMEOUTS + 1):
            for id in lab.peers:
                lab.simulator.command(id, Publish(TOPIC, b"%d" % number))
            lab.run()
            assert lab.broken() <= {"publications"}
        assert not any(one.former for one in memberships)
        lab.run(3)
        assert not lab.violations()
    assert kept


def test_nobody_waits_while_a_successor_rebuilds_the_ring() -> None:
    """Found with processes: half of the survivors waited 5 s for what had reached nobody."""
    overlay = RingOverlay(supervisors=2)
    trial = Trial(overlay, Spec(n=12, seed=4, start="legitimate"))
    simulator = trial.simulator
    for _ in range(20):
        simulator.run_interval()
    peers = [it for it in simulator.nodes.values() if isinstance(it, Peer)]
    one = peers[5].topics[TOPIC]
    serving = one.subscriber.inquiry.supervisor
    assert serving is not None
    simulator.remove(serving)
    late = 0
    for number in range(40):
        simulator.command(peers[5].id, Publish(TOPIC, b"%d" % number))
        simulator.run_interval()
        simulator.run_interval()
        held = [it.topics[TOPIC].history.holdings.store.index.publications for it in peers]
        late += sum(it < number + 1 for it in held)
    assert late == 0
