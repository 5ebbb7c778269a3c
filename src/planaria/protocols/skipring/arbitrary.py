"""Arbitrary states of the skip ring: any value in any variable, any message in any channel."""

from collections.abc import Sequence
from random import Random

from planaria.core.chance import any_integer
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.protocols.ring.messages import Check as RingCheck
from planaria.protocols.ring.messages import Introduce, Remove
from planaria.protocols.skipring.inquiry import PATIENCE
from planaria.protocols.skipring.messages import (
    WINDOW_MAX,
    Check,
    GetConfiguration,
    IntroduceShortcut,
    Moved,
    ProbeReply,
    Ref,
    RemoveConnections,
    SetData,
    Unsubscribe,
    Wake,
)
from planaria.protocols.skipring.subscriber import Subscriber
from planaria.protocols.skipring.supervisor import Supervisor
from planaria.protocols.skipring.topic_supervisor import (
    CLAIM_MAX,
    DOUBTS_MAX,
    SPREAD_TIMEOUTS,
    TopicSupervisor,
)
from planaria.protocols.skipring.topic_supervisor import PATIENCE as ANSWER_PATIENCE

LONG_LABEL = 1 << 39  # a 40-bit label: the probability of action (ii) is negligible


def any_label(n: int, rng: Random) -> int:
    """Mostly labels of about this network, sometimes absurdly long ones."""
    if rng.random() < 0.1:
        return LONG_LABEL + rng.randrange(LONG_LABEL)
    return rng.randrange(2 * n + 2)


def any_ref(ids: Sequence[NodeId], rng: Random) -> Ref:
    """Somebody, with some label."""
    return any_label(len(ids), rng), rng.choice(ids)


def corrupt_subscriber(one: Subscriber, ids: Sequence[NodeId], rng: Random) -> None:
    """Give a subscriber's variables arbitrary values; its intent is the application's, not ours."""
    n = len(ids)
    one.label = rng.choice([None, any_label(n, rng), any_label(n, rng), any_label(n, rng)])
    one.pred = rng.choice([None, any_ref(ids, rng), any_ref(ids, rng)])
    one.succ = rng.choice([None, any_ref(ids, rng), any_ref(ids, rng)])
    one.shortcuts = {any_label(n, rng): rng.choice(ids) for _ in range(rng.randrange(4))}
    one.inquiry.due = rng.choice([None, None, rng.randrange(-5, 2 * WINDOW_MAX)])
    one.missing = [rng.choice(ids) for _ in range(rng.randrange(2))]
    one.silence = (rng.randrange(6), rng.randrange(6))
    one.child_sums = {any_label(n, rng): (rng.getrandbits(64), rng.randrange(8))}
    one.inquiry.contact = rng.randrange(len(one.inquiry.supervisors) + 1)
    one.inquiry.waiting = rng.randrange(2 * PATIENCE)
    one.inquiry.version = rng.choice([-1, rng.randrange(100), 1 << 60])
    one.inquiry.version_age = rng.randrange(10)
    one.told = any_integer(rng, 0, WINDOW_MAX)


def corrupt_topic(served: TopicSupervisor, ids: Sequence[NodeId], rng: Random) -> None:
    """All four kinds of a corrupt database (3.1), and everything around it."""
    n = len(ids)
    owners = [*ids, None]
    entries: list[NodeId | None] = [rng.choice(owners) for _ in range(rng.randrange(2 * n))]
    served.database.entries = rng.choice([entries, entries, []])
    served.next = rng.randrange(-5, 2 * n + 1)
    served.version = rng.randrange(100)
    served.calm = rng.randrange(100)
    served.outbox = {rng.choice(ids): rng.random() < 0.5 for _ in range(rng.randrange(3))}
    served.suspects = {rng.choice(ids): rng.randrange(2 * ANSWER_PATIENCE) for _ in range(2)}
    served.probes = {rng.choice(ids): rng.random() < 0.5 for _ in range(rng.randrange(3))}
    served.answers = {rng.choice(ids): rng.random() < 0.5 for _ in range(rng.randrange(3))}
    served.claimed = any_integer(rng, 0, CLAIM_MAX)
    served.spread = any_integer(rng, 0, SPREAD_TIMEOUTS)
    served.doubts = any_integer(rng, 0, DOUBTS_MAX)


def corrupt_supervisor(
    supervisor: Supervisor, topic: str, ids: Sequence[NodeId], rng: Random
) -> None:
    """Any database for the topic, or none; any belief about other supervisors."""
    supervisor.topics = {}
    if rng.random() < 0.8:
        served = TopicSupervisor(topic, supervisor.id)
        corrupt_topic(served, ids, rng)
        supervisor.topics[topic] = served
    supervisor.moved = {}
    if rng.random() < 0.3:
        supervisor.moved = {topic: (rng.choice(supervisor.supervisors), rng.randrange(9))}


def any_message(
    topic: str, ids: Sequence[NodeId], supervisors: Sequence[NodeId], rng: Random
) -> Message:
    """A message of any kind with any content."""
    ref, other, id = any_ref(ids, rng), any_ref(ids, rng), rng.choice(ids)
    label, one = any_label(len(ids), rng), rng.choice(supervisors)
    window, flag = rng.randrange(1, WINDOW_MAX + 1), rng.random() < 0.5
    hops, spread = rng.randrange(WINDOW_MAX + 1), rng.random() < 0.5
    sums = (rng.getrandbits(64), None)
    maybe = rng.choice([None, ref])
    return rng.choice(
        [
            Check(topic, ref, label, None),
            IntroduceShortcut(topic, ref, rng.choice([None, other]), rng.getrandbits(64), None),
            SetData(topic, one, rng.randrange(200), label, maybe, other, window, flag, spread),
            SetData(topic, one, rng.randrange(200), None, None, None, window, flag),
            GetConfiguration(topic, id, label, sums, [rng.choice(ids)], rng.getrandbits(64)),
            Unsubscribe(topic, id),
            RemoveConnections(topic, id),
            Wake(topic, window, hops),
            Moved(topic, one, rng.choice(supervisors)),
            ProbeReply(topic, one),
            RingCheck(topic, ref, label, flag),
            Introduce(topic, ref, flag, rng.randrange(5)),
            Remove(topic, id),
        ]
    )
