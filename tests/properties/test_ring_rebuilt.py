"""While a supervisor rebuilds a ring from nothing, what members publish reaches the others."""

from planaria.core.node import Publish, Send
from planaria.protocols.skipring.broadcast_messages import Arc, Flood
from planaria.protocols.skipring.membership import FORMER_TIMEOUTS
from planaria.protocols.skipring.messages import SetData
from planaria.protocols.skipring.overlay import TOPIC, RingOverlay
from planaria.protocols.skipring.peer import Peer
from planaria.simulator.trial import Spec, Trial


def told_to_be_alone(*, spread: bool) -> tuple[Peer, set[int]]:
    """A member of a ring of 6 that a supervisor names as the only one, and its neighbours."""
    trial = Trial(RingOverlay(), Spec(n=6, seed=1, start="legitimate"))
    for _ in range(20):
        trial.simulator.run_interval()
    peer = next(it for it in trial.simulator.nodes.values() if isinstance(it, Peer))
    one = peer.topics[TOPIC].subscriber
    beside = {id for _, id in one.neighbours()}
    supervisor = one.inquiry.supervisor
    assert supervisor is not None
    version = one.inquiry.version + 1
    alone = SetData(TOPIC, supervisor, version, 0, None, None, 1, False, spread)
    peer.on_message(alone, supervisor)
    assert not one.neighbours()
    return peer, beside


def reached(peer: Peer) -> set[int]:
    """To whom a publication goes."""
    effects = peer.on_command(Publish(TOPIC, b"news"))
    sends = [it for it in effects if isinstance(it, Send)]
    return {it.target for it in sends if isinstance(it.message, Arc | Flood)}


def test_who_is_told_first_publishes_to_its_former_neighbours() -> None:
    peer, beside = told_to_be_alone(spread=True)
    assert beside
    assert reached(peer) == beside


def test_former_neighbours_are_forgotten_soon() -> None:
    peer, _ = told_to_be_alone(spread=True)
    for _ in range(FORMER_TIMEOUTS):
        peer.on_timeout()
    assert reached(peer) == set()


def test_whom_a_supervisor_moves_that_knows_the_ring_has_no_former_neighbours() -> None:
    peer, _ = told_to_be_alone(spread=False)
    assert reached(peer) == set()


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
