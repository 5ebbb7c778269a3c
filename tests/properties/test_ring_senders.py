"""Who speaks in another's name is not heard; who lies in its own is, and the ring heals of it."""

from random import Random

import pytest

from planaria.core.chance import stream
from planaria.core.message import Message
from planaria.core.node import Effects
from planaria.protocols.publications.antientropy_messages import Digest, Push, Root
from planaria.protocols.publications.retention import Rejected
from planaria.protocols.ring.messages import Check, Introduce, Remove
from planaria.protocols.skipring.broadcast_messages import Arc, Flood, Nack
from planaria.protocols.skipring.messages import (
    GetConfiguration,
    Greeting,
    IntroduceShortcut,
    Moved,
    Probe,
    ProbeReply,
    RemoveConnections,
    SetData,
    Unsubscribe,
    Wake,
    speaker,
)
from planaria.protocols.skipring.overlay import SUPERVISOR_BASE, TOPIC, RingOverlay
from planaria.protocols.skipring.peer import Peer
from planaria.records.record import Draft, seal
from planaria.simulator.engine import ENVIRONMENT
from planaria.simulator.trial import Spec, Trial
from ring_lab import RingLab

FORGED_INTERVALS = 200


def legitimate_intervals(lab: RingLab, *, vouched: bool) -> int:
    """In how many of the intervals the ring is legitimate at the end, if its members are sent
    wrong configurations in the supervisor's name all the time, one in each."""
    rng, calm = stream(5, "forger"), 0
    for interval in range(FORGED_INTERVALS):
        label, other = rng.randrange(8), (rng.randrange(8), rng.randrange(8))
        lie = SetData(TOPIC, SUPERVISOR_BASE, 1 << 61, label, other, other, 1, False)
        sender = SUPERVISOR_BASE if vouched else rng.choice([None, *lab.peers])
        lab.simulator.inject(interval % 8, lie, 50, sender)
        lab.run()
        # What is in flight is not the forger's success.
        calm += not lab.broken() - {"channel"}
    return calm


def test_a_forged_configuration_in_every_interval_does_nothing() -> None:
    """Sent by the supervisor itself, the same lies keep the ring from being legitimate."""
    assert legitimate_intervals(RingLab.legitimate(8), vouched=False) == FORGED_INTERVALS
    assert legitimate_intervals(RingLab.legitimate(8), vouched=True) < FORGED_INTERVALS // 10


SAID = seal((5, bytes(12)), 0, [Draft(b"said")], time=0).data
ME: tuple[int, int] = (7, 7)  # the label and the id of a liar's victim
TO_PEER: list[Message] = [
    SetData(TOPIC, SUPERVISOR_BASE, 9, 5, (1, 1), (2, 2), 1, True),
    Moved(TOPIC, SUPERVISOR_BASE, SUPERVISOR_BASE),
    Greeting(TOPIC, ME, 3, Digest(0, 0, 9, 7)),
    IntroduceShortcut(TOPIC, (1, 7), None, 99, None),
    RemoveConnections(TOPIC, 7),
    Check(TOPIC, ME, 3, False),
    Introduce(TOPIC, (33, 5), False, 0),
    Remove(TOPIC, 7),
    Arc(TOPIC, 7, SAID, 0, 0, 0, 0, 1),
    Flood(TOPIC, 7, SAID, 1),
    Nack(TOPIC, 7, b"k" * 16, 0, 0, 0, None),
    Rejected(TOPIC, 7, b"k" * 16),
    Push(TOPIC, 7, 1, [SAID], []),
    Root(TOPIC, 7, 1, 0, 9, 99),
]
TO_SUPERVISOR: list[Message] = [
    GetConfiguration(TOPIC, 7, None, (None, None), [3]),
    Unsubscribe(TOPIC, 7),
    Probe(TOPIC, SUPERVISOR_BASE),
    ProbeReply(TOPIC, SUPERVISOR_BASE),
]


@pytest.mark.parametrize("message", TO_PEER + TO_SUPERVISOR, ids=lambda it: type(it).__name__)
def test_a_message_in_anothers_name_changes_nothing(message: Message) -> None:
    lab = RingLab.legitimate(8)
    target = lab.simulator.nodes[SUPERVISOR_BASE if message in TO_SUPERVISOR else 0]
    before = target.snapshot()
    for liar in (None, 3, 7 if speaker(message) == SUPERVISOR_BASE else SUPERVISOR_BASE):
        assert liar != speaker(message)
        assert list(target.on_message(message, liar)) == []
        assert target.snapshot() == before


HARMLESS = (Moved, Remove, Nack, Rejected, ProbeReply, Probe)  # in a calm ring nobody asked for it


@pytest.mark.parametrize(
    "message",
    [it for it in TO_PEER + TO_SUPERVISOR if not isinstance(it, HARMLESS)],
    ids=lambda it: type(it).__name__,
)
def test_the_same_message_in_ones_own_name_is_heard(message: Message) -> None:
    lab = RingLab.legitimate(8)
    target = lab.simulator.nodes[SUPERVISOR_BASE if message in TO_SUPERVISOR else 0]
    before = target.snapshot()
    effects = target.on_message(message, speaker(message))
    assert effects or target.snapshot() != before


def test_hearsay_is_heard_from_anybody_but_not_from_nobody() -> None:
    heard: list[Message] = [Wake(TOPIC, 3), Introduce(TOPIC, (33, 5), False, 1)]
    for message in heard:
        peer = RingLab.legitimate(8).simulator.nodes[0]
        before = peer.snapshot()
        assert list(peer.on_message(message, None)) == []
        assert peer.snapshot() == before
        assert peer.on_message(message, 3) or peer.snapshot() != before


def test_garbage_of_a_start_is_vouched_for_by_whom_it_names_more_often_than_not() -> None:
    """Else a ring that asks who sent a message would never meet garbage."""
    named = vouched = configurations = 0
    for seed in range(40):
        trial = Trial(RingOverlay(2), Spec(8, seed, "corrupt"))
        for bucket in trial.simulator._buckets.values():
            for entry in bucket:
                if entry.message is not None and speaker(entry.message) is not None:
                    right = entry.source == speaker(entry.message) != ENVIRONMENT
                    named, vouched = named + 1, vouched + right
                    configurations += right and isinstance(entry.message, SetData)
    assert 0.6 < vouched / named < 0.95
    assert configurations > 20, "false configurations, by the real supervisors"


def test_forged_and_replayed_messages_of_a_fault_reach_the_rules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of the messages that a fault puts on links, many come from whom they name."""
    heard: list[bool] = []
    whole = Peer.on_message

    def listen(self: Peer, message: Message, sender: int | None = None) -> Effects:
        heard.append(sender is not None and speaker(message) in (None, sender))
        return whole(self, message, sender)

    monkeypatch.setattr(Peer, "on_message", listen)
    simulated = Trial(RingOverlay(), Spec(4, 3, "legitimate"))
    rng = Random(1)
    ids = list(simulated.simulator.nodes)
    for _ in range(200):
        target, message = simulated.overlay.forge(ids, rng)
        sender = simulated.overlay.link_of(message, ids, rng)
        simulated.simulator.nodes[target].on_message(message, sender)
    assert 0.5 < sum(heard) / len(heard) < 1
