"""Supervisors ask each other, and members, whether they are alive."""

from random import Random

from planaria.core.node import Send
from planaria.protocols.skipring.messages import (
    GetConfiguration,
    Moved,
    Probe,
    ProbeReply,
    SetData,
)
from planaria.protocols.skipring.placement import preference
from planaria.protocols.skipring.subscriber import Subscriber
from planaria.protocols.skipring.supervisor import Supervisor
from ring_lab import hear

CLOSE, FAR = 1000, 1001


def sent(supervisor: Supervisor) -> list[Send]:
    return [effect for effect in supervisor.on_timeout() if isinstance(effect, Send)]


def test_one_probe_for_all_topics_and_its_answer_moves_those_that_the_other_is_closer_to() -> None:
    topics = [f"t/{number}" for number in range(40)]
    theirs = [topic for topic in topics if preference(topic, (CLOSE, FAR))[0] == CLOSE]
    assert 1 < len(theirs) < len(topics)
    far = Supervisor(FAR, (CLOSE, FAR))
    for topic in topics:
        hear(far, GetConfiguration(topic, 7, None, (None, None), []))
    (probe,) = [it for it in sent(far) if isinstance(it.message, Probe)]
    assert probe.target == CLOSE
    assert isinstance(probe.message, Probe)
    assert probe.message.topic in theirs
    hear(far, ProbeReply(probe.message.topic, CLOSE))
    moved = [it.message.topic for it in sent(far) if isinstance(it.message, Moved)]
    assert sorted(moved) == sorted(theirs)
    assert sorted(far.topics) == sorted(set(topics) - set(theirs))


def test_overtaken_probe_is_answered() -> None:
    """Whoever is asked whether it is alive says so, whatever version it remembers."""
    one = Subscriber("news", 50, (CLOSE,), Random(1))
    one.label, one.pred, one.succ = 2, (4, 14), (5, 15)
    one.inquiry.calm()
    one.inquiry.version, one.inquiry.version_age = 1 << 60, 0
    probe = SetData("news", CLOSE, 1, 7, (3, 13), (0, 20), 9, True)
    (answer,) = one.on_set_data(probe)
    assert answer.target == CLOSE
    assert isinstance(answer.message, GetConfiguration)
    assert one.label == 2
    one.leaving = True
    assert one.on_set_data(probe) == []
