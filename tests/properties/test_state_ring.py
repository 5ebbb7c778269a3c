"""A peer or supervisor that is replaced by its bytes goes on as if nothing had been."""

from collections.abc import Callable, Mapping, Sequence
from random import Random

import pytest

from planaria.core.chance import combination, stream
from planaria.core.codec import Codec
from planaria.core.ids import NodeId
from planaria.core.node import Node, Send
from planaria.core.overlay import Channel, Violation
from planaria.core.state import State
from planaria.protocols.publications.retention import Retention
from planaria.protocols.skipring.overlay import TOPIC, RingOverlay
from planaria.protocols.skipring.peer import Peer, PeerState
from planaria.simulator.links import SCHEDULERS
from planaria.simulator.schedule import parse_schedule
from planaria.simulator.trial import Spec, Trial
from state_lab import goes_on_identically, starts_fresh

RETENTION = Retention(age=4, count=6, per_publisher=2)
FAULTS = (
    "at 0 publish count=6\nat 1 for 3 busy share=0.5\nat 3 publish count=3",
    "at 0 publish count=4\nat 1 for 3 partition groups=2\nat 2 publish count=5",
    "at 0 publish count=4\nat 2 crash count=1\nat 3 leave count=1\nat 4 join count=1",
    "at 0 for 6 loss rate=0.3\nat 1 publish count=8\nat 2 restart count=2 state=kept",
)


class Ring(RingOverlay):
    """Corrupt states, with what is derived from them derived anew.

    Tries, sketches, quotas and kept views are no part of a state. A fault that strikes them is put
    right by the bytes, sooner than by the audit: then the run may well differ.
    """

    def _corrupt(self, node: Node, peers: Sequence[NodeId], rng: Random) -> None:
        super()._corrupt(node, peers, rng)
        if isinstance(node, Peer):
            for membership in node.topics.values():
                history, membership._place = membership.history, None
                for holdings in (history.holdings, history.staging.holdings):
                    holdings.load(holdings.state())


def test_any_corrupt_ring_with_publications_goes_on_identically(
    seeds: Callable[[int, int], int],
) -> None:
    for number in range(seeds(16, 2000)):
        n, supervisors, start, faults, scheduler = combination(
            number, range(1, 9), (1, 2), ("corrupt", "corrupt", "permuted"), FAULTS, SCHEDULERS
        )
        schedule = parse_schedule(faults if n > 1 else FAULTS[0])
        spec = Spec(n, 4000 + number, start, schedule, scheduler=scheduler, closure=6)
        at = stream(number, "intervals").sample(range(8), 3)
        goes_on_identically(Ring(supervisors), spec, at)


def test_ordered_subscriptions_and_windows_go_on_identically() -> None:
    """Publications that wait for their turn, and a store that hides and deletes."""

    class Ordered(Ring):
        def spawn(self, id: NodeId, rng: Random) -> Node:
            node = super().spawn(id, rng)
            if isinstance(node, Peer):
                node.topics[TOPIC].history.reader.ordered = True
                node.retain(TOPIC, RETENTION)
            return node

    for seed in range(8):
        spec = Spec(5, 90 + seed, "corrupt", parse_schedule(FAULTS[seed % 4]), closure=8)
        goes_on_identically(Ordered(), spec, (1, 4, 7))


def test_bytes_that_are_no_state_leave_peers_and_supervisors_fresh() -> None:
    for seed in range(6):
        starts_fresh(RingOverlay(2), Spec(4, seed, "corrupt"))


class AskedTwice(RingOverlay):
    """Its judge is asked twice each time, and must say the same."""

    found = 0

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        flight = list(channel)
        first = super().violations(states, flight)
        assert super().violations(states, flight) == first
        self.found += len(first)
        return first


def test_asked_twice_the_judge_says_the_same_and_nothing_else_changes() -> None:
    found = 0
    for seed in range(12):
        spec = Spec(1 + seed % 6, 700 + seed, "corrupt", parse_schedule(FAULTS[0]))
        twice = AskedTwice(2)
        assert Trial(RingOverlay(2), spec).run() == Trial(twice, spec).run()
        found += twice.found
    assert found > 12


def test_a_name_that_is_no_topic_is_skipped_and_the_others_are_loaded() -> None:
    peer = RingOverlay().legitimate(3, Random(1))[0]
    state = peer.state()
    assert isinstance(state, PeerState)
    odd = PeerState(
        {"": state.topics[TOPIC], TOPIC: state.topics[TOPIC], "a/#": state.topics[TOPIC]}
    )
    fresh = Peer(0, RingOverlay().supervisors, Random(1))
    fresh.load(odd)
    assert fresh.state() == state


@pytest.mark.parametrize("seed", range(20))
def test_a_state_of_random_bytes_in_every_variable_loads_and_raises_nothing(seed: int) -> None:
    """Whatever decodes is a state: flip bytes of true ones and let those live that decode."""
    rng, codec, lived = stream(seed, "flips"), Codec(RingOverlay.messages), 0
    trial = Trial(RingOverlay(), Spec(3, seed, "corrupt", parse_schedule(FAULTS[0])))
    trial.simulator.run(300)
    for id, node in trial.simulator.nodes.items():
        whole = node.snapshot()
        for _ in range(60):
            data = bytearray(whole)
            for _ in range(rng.randrange(1, 4)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            fresh = trial.overlay.spawn(id, Random(seed))
            if not fresh.restore(bytes(data)):
                lived += 1
                fresh.snapshot()
                for effect in fresh.on_timeout():
                    if isinstance(effect, Send):
                        codec.decode(codec.encode(effect.message))
    assert lived > 10
