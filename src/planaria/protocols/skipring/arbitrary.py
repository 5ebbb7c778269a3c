"""Arbitrary states of the skip ring: any value in any variable, any message in any channel."""

from collections.abc import Sequence
from random import Random

from planaria.core.chance import any_integer, stream
from planaria.core.ids import NODE_ID_MAX, NodeId
from planaria.core.message import Message
from planaria.protocols.ring.messages import Check, Introduce, Remove
from planaria.protocols.ring.sorted_ring import HOPS_MAX, SortedRing
from planaria.protocols.skipring.database import Database
from planaria.protocols.skipring.former import FORMER_MAX, FORMER_TIMEOUTS, Former
from planaria.protocols.skipring.inquiry import PATIENCE, VERSION_AGE_MAX, Inquiry
from planaria.protocols.skipring.labels import LABEL_MAX, position
from planaria.protocols.skipring.messages import (
    WINDOW_MAX,
    GetConfiguration,
    Greeting,
    IntroduceShortcut,
    Moved,
    Probe,
    ProbeReply,
    Ref,
    RemoveConnections,
    SetData,
    Unsubscribe,
    Wake,
)
from planaria.protocols.skipring.pace import REST_MAX, Pace
from planaria.protocols.skipring.subscriber import SILENCE_MAX, Subscriber
from planaria.protocols.skipring.supervisor import MOVED_AGE_MAX, Supervisor
from planaria.protocols.skipring.topic_supervisor import (
    CLAIM_MAX,
    DOUBTS_MAX,
    SPREAD_TIMEOUTS,
    UNHEARD_MAX,
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


def any_raw_id(ids: Sequence[NodeId], rng: Random) -> NodeId:
    """What a variable for an id may hold."""
    return any_integer(rng, 0, len(ids), NODE_ID_MAX) if rng.random() < 0.1 else rng.choice(ids)


def any_raw_ref(ids: Sequence[NodeId], rng: Random) -> Ref | None:
    """What a variable for a reference may hold: nobody, somebody, or no reference at all."""
    if rng.random() < 0.3:
        return None
    label = any_label(len(ids), rng)
    if rng.random() < 0.2:
        label = any_integer(rng, 0, len(ids), 1 << 62)
    return label, any_raw_id(ids, rng)


def aside(rng: Random, name: str) -> Random:
    """A stream beside `rng`, which goes on as if nothing had been drawn: old starts stay theirs."""
    before, seed = rng.getstate(), rng.getrandbits(64)
    rng.setstate(before)
    return stream(seed, name)


def corrupt_former(former: Former, ids: Sequence[NodeId], rng: Random) -> None:
    """Any former neighbours, each for any time; seldom more of them than are ever kept."""
    count = FORMER_MAX + 2 if rng.random() < 0.02 else rng.choice((0, 0, 1, 4))
    strangers = any_integer(rng, len(ids), NODE_ID_MAX)
    lost = [any_raw_id(ids, rng) if it < 4 else strangers + it for it in range(count)]
    former.left = {id: any_integer(rng, 0, FORMER_TIMEOUTS) for id in lost}


def corrupt_subscriber(one: Subscriber, ids: Sequence[NodeId], rng: Random) -> None:
    """Give a subscriber's variables arbitrary values; its intent is the application's, not ours.

    Every other one keeps its place, so that false beliefs meet in places that are right.
    """
    n = len(ids)
    if rng.random() < 0.5:
        one.label = rng.choice([None, any_label(n, rng), any_label(n, rng), any_integer(rng, n)])
        one.pred, one.succ = any_raw_ref(ids, rng), any_raw_ref(ids, rng)
    one.shortcuts = any_shortcuts(one, ids, rng)
    one.missing = [any_raw_id(ids, rng) for _ in range(rng.randrange(4))]
    one.silence = (any_integer(rng, 0, SILENCE_MAX), any_integer(rng, 0, SILENCE_MAX))
    one.child_sums = {
        label: (rng.choice([rng.getrandbits(64), any_integer(rng)]), any_integer(rng, 0, 8))
        for label in (any_label(n, rng), 2 * (one.label or 0), any_integer(rng, n))
    }
    one.orphan = any_sorted_ring(one, ids, rng) if rng.random() < 0.2 else None
    one.spread_pause = any_integer(rng, 0, WINDOW_MAX)
    one.acquaintances = [any_raw_id(ids, rng) for _ in range(rng.randrange(4))]
    corrupt_inquiry(one.inquiry, rng)
    corrupt_pace(one.pace, rng)
    if one.orphan is not None and rng.random() < 0.8:
        one.inquiry.waiting = one.inquiry.waiting_max  # else it is none any more


def corrupt_pace(pace: Pace, rng: Random) -> None:
    """Any pace; most often one in range that was promised to nobody."""
    pace.pace = any_integer(rng, 1, pace.longest)
    pace.left = rng.choice([rng.randrange(1, pace.longest + 1), any_integer(rng, 1)])
    pace.shown = any_integer(rng)
    if pace.longest > 1:
        pace.rest, pace.rested = any_integer(rng, 0, REST_MAX), any_integer(rng, 0, REST_MAX)


def corrupt_inquiry(inquiry: Inquiry, rng: Random) -> None:
    """Any counters; most often some that are in range."""
    hopeless = inquiry.waiting_max
    inquiry.due = rng.choice([None, None, any_integer(rng, 0, WINDOW_MAX)])
    inquiry.contact = any_integer(rng, 0, len(inquiry.supervisors))
    waiting = (rng.randrange(2 * PATIENCE), any_integer(rng, 0, PATIENCE, hopeless))
    inquiry.waiting = rng.choice(waiting)
    inquiry.version = rng.choice([rng.randrange(100), any_integer(rng, 1 << 60)])
    inquiry.version_age = any_integer(rng, 0, VERSION_AGE_MAX)


def any_shortcuts(one: Subscriber, ids: Sequence[NodeId], rng: Random) -> dict[int, NodeId]:
    """A few anywhere; or one in every slot, at random, or such that members confirm each other."""
    n, kind = len(ids), rng.randrange(4)
    if kind == 0 or not _in_range(one):
        slots = (any_label(n, rng), any_label(n, rng), any_integer(rng, n))
        return {slot: rng.choice(ids) for slot in slots[: rng.randrange(4)]}
    expected = (*one.around.left, *one.around.right)
    if kind == 1:
        return {slot: rng.choice(ids) for slot in expected}
    shift = rng.randrange(1, 3)  # few of them, so that many believe in the same false owners
    return {slot: ids[(slot + shift) % n] for slot in expected}


def _in_range(one: Subscriber) -> bool:
    labels = [ref[0] for ref in one.ring]
    return all(0 <= label <= LABEL_MAX for label in (one.label or 0, *labels))


def any_sorted_ring(one: Subscriber, ids: Sequence[NodeId], rng: Random) -> SortedRing:
    """What an orphan may hold."""
    ring = SortedRing(one.topic, one.id, any_integer(rng, len(ids)), position)
    ring.left, ring.right = any_raw_ref(ids, rng), any_raw_ref(ids, rng)
    ring.ring = any_raw_ref(ids, rng)
    ring.silence = {any_raw_id(ids, rng): any_integer(rng, 0, 16) for _ in range(2)}
    ring.lost = {any_raw_id(ids, rng): any_integer(rng, 0, 256) for _ in range(2)}
    ring.handed = {any_raw_id(ids, rng): any_integer(rng, len(ids)) for _ in range(2)}
    return ring


def corrupt_topic(served: TopicSupervisor, ids: Sequence[NodeId], rng: Random) -> None:
    """All four kinds of a corrupt database (3.1), and everything around it."""
    n = len(ids)
    corrupt_database(served.database, ids, rng)
    served.next = any_integer(rng, 0, n)
    served.version = rng.choice([rng.randrange(100), any_integer(rng, 1 << 62)])
    served.calm = any_integer(rng, 0, 64)
    served.requests, served.requests_before = any_integer(rng, 0, n), any_integer(rng, 0, n)
    served.unheard = any_integer(rng, 0, UNHEARD_MAX)
    served.claimed = any_integer(rng, 0, CLAIM_MAX)
    served.spread = any_integer(rng, 0, SPREAD_TIMEOUTS)
    served.doubts = any_integer(rng, 0, DOUBTS_MAX)
    served.unsettled = served.doubts  # any number will do: no rule of the ring reads it
    for lane in ("probes", "outbox", "answers"):
        queued = [any_raw_id(ids, rng) for _ in range(rng.randrange(3))]
        setattr(served, lane, {id: rng.random() < 0.5 for id in queued})
    served.suspects = {any_raw_id(ids, rng): any_integer(rng, 0, ANSWER_PATIENCE) for _ in range(2)}
    served.sent = any_integer(rng, 0, 64)
    corrupt_pace(served.pace, rng)


def corrupt_database(database: Database, ids: Sequence[NodeId], rng: Random) -> None:
    """Write the list and what is derived from it as a fault would, past the repair of the setter.

    `ids` ends with the dead; a database of the dead alone is one of the kinds.
    """
    n, dead = len(ids), ids[-2:]
    kind = rng.randrange(5)
    if kind == 0:
        database.entries = []
    elif kind == 1:
        database.entries = [dead[place % 2] + 2 * place for place in range(rng.randrange(2 * n))]
    elif kind == 2:
        database.entries = rng.sample(ids, rng.randrange(n + 1))
    else:
        database._entries[:] = [
            any_raw_id(ids, rng) if rng.random() < 0.9 else None
            for _ in range(rng.randrange(2 * n))
        ]
    if rng.random() < 0.5:
        database._labels = {id: any_integer(rng, 0, n) for id in rng.sample(ids, rng.randrange(n))}
    if rng.random() < 0.5:
        database._sums = [any_integer(rng) for _ in range(rng.randrange(2 * n))]


def corrupt_supervisor(
    supervisor: Supervisor, topic: str, ids: Sequence[NodeId], rng: Random
) -> None:
    """Any database for the topic, or none; any belief about other supervisors."""
    supervisor.topics = {}
    if rng.random() < 0.8:
        served = TopicSupervisor(topic, supervisor.id, supervisor.budget, supervisor.pace_max)
        corrupt_topic(served, ids, rng)
        supervisor.topics[topic] = served
    supervisor.moved = {}
    supervisor.turn = any_integer(rng, 0)
    supervisor.unsettled = supervisor.turn
    supervisor.absent = dict.fromkeys((*supervisor.supervisors, *ids[:1]), supervisor.turn)
    budget = supervisor.budget
    budget.limit, budget.cap, budget.spent = (any_integer(rng, 0, 64) for _ in range(3))
    if rng.random() < 0.3:
        age = any_integer(rng, 0, MOVED_AGE_MAX)
        supervisor.moved = {topic: (rng.choice(supervisor.supervisors), age)}


def any_wire_integer(rng: Random, *near: int) -> int:
    """Any integer that fits on the wire."""
    return max(-(1 << 63), min(any_integer(rng, *near), (1 << 63) - 1))


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
    version = rng.choice([rng.randrange(200), any_wire_integer(rng, 1 << 62)])
    return rng.choice(
        [
            Greeting(topic, ref, label, None),
            IntroduceShortcut(topic, ref, rng.choice([None, other]), rng.getrandbits(64), None),
            SetData(topic, one, version, label, maybe, other, window, flag, spread),
            SetData(topic, one, version, None, None, None, window, flag),
            GetConfiguration(topic, id, label, sums, [rng.choice(ids)], rng.getrandbits(64)),
            Unsubscribe(topic, id),
            RemoveConnections(topic, id),
            Wake(topic, window, hops),
            Moved(topic, one, rng.choice(supervisors)),
            Probe(topic, one),
            ProbeReply(topic, one),
            Check(topic, ref, label, flag),
            Introduce(topic, ref, flag, any_wire_integer(rng, 0, HOPS_MAX)),
            Remove(topic, id),
        ]
    )
