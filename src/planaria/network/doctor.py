"""Is a whole network legitimate, and if not, what is wrong where, and what is to be expected?

Judges what a survey saw: each topic with the judge that tests and simulator use, and beside it what
only a live network has: clocks, stores, versions, certificates, nodes that do not answer. States
were taken at slightly different moments, and messages in flight are not seen at all; so one look
may raise a false alarm, and `diagnose` reports what two looks have in common.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from statistics import median_low
from time import time

from msgspec import Struct

from planaria.core.ids import NodeId
from planaria.core.overlay import Violation
from planaria.core.state import State
from planaria.network.overlays.registry import PARTS
from planaria.network.status import Settled
from planaria.network.survey import Parts, Survey, Surveyor
from planaria.protocols.skipring.legitimacy import topic_violations
from planaria.protocols.skipring.node import RingNodeState
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.protocols.skipring.peer import PeerState
from planaria.protocols.skipring.supervisor import Supervisor

CLOCK_SECONDS = 2.0  # that two clocks may differ: what is younger than four is still on its way
CERTIFICATE_DAYS = 14
AGAIN_SECONDS = 1.0  # between two looks, at least
AGAIN_INTERVALS = 3  # and so many intervals: a message and its answer have arrived by then
DELAY = 1.0  # intervals that a message takes at most, for the bound that is told

BROKEN, WARNING = "broken", "warning"


class Finding(Struct, frozen=True):
    """One thing that is wrong, where, and what to expect or to do."""

    severity: str
    invariant: str
    topic: str | None
    node: NodeId | None
    where: str
    detail: str
    expect: str

    @property
    def key(self) -> tuple[str, str | None, NodeId | None]:
        """What two looks have in common if both see it."""
        return self.invariant, self.topic, self.node


class Diagnosis(Struct, frozen=True):
    """The verdict; `looks` were taken, and what is wrong was wrong in the last two of them."""

    legitimate: bool
    nodes: int
    topics: int
    looks: int
    seconds: float
    findings: list[Finding]


async def diagnose(surveyor: Surveyor, wait: float = 0.0) -> Diagnosis:
    """Look until the network is legitimate, or twice and until `wait` seconds are over."""
    began, looks = time(), 0
    before: list[Finding] | None = None
    while True:
        survey = await surveyor.look()
        await surveyor.examine(survey)
        looks += 1
        seen = [*findings(survey, surveyor.secret)]
        found = seen if before is None else lasting(before, seen)
        broken = any(one.severity == BROKEN for one in found)
        if not broken or (before is not None and time() - began >= wait):
            topics, seconds = len(judged_topics(survey)), round(time() - began, 3)
            return Diagnosis(not broken, len(survey.nodes), topics, looks, seconds, found)
        before = seen
        await asyncio.sleep(max(AGAIN_SECONDS, AGAIN_INTERVALS * _interval(survey)))


def lasting(before: Sequence[Finding], after: Sequence[Finding]) -> list[Finding]:
    """What both looks saw, in the words of the second; warnings need no second look."""
    seen = {one.key for one in before}
    return [one for one in after if one.severity == WARNING or one.key in seen]


def findings(survey: Survey, secret: bytes = b"", now: datetime | None = None) -> Iterator[Finding]:
    """Everything that one look saw to be wrong, topics first."""
    for topic in judged_topics(survey):
        yield from topic_findings(survey, topic, secret)
        yield from publication_findings(survey, topic)
        yield from charter_findings(survey, topic)
    for overlay in PARTS:
        yield from overlay_findings(survey, overlay)
    yield from silent_findings(survey)
    yield from store_findings(survey)
    yield from clock_findings(survey)
    yield from version_findings(survey)
    yield from certificate_findings(survey, now)
    for node, words in survey.complaints:
        detail = f"cannot be judged: {words}"
        expect = "ask again; if it stays so, the node is of another version: upgrade the older"
        yield _finding(survey, BROKEN, "answer", None, node, detail, expect)


def judged_topics(survey: Survey) -> list[str]:
    """The topics of which states were seen."""
    return sorted({topic for seen in survey.nodes.values() for topic in seen.topics})


# The ring and the history of one topic


def topic_findings(survey: Survey, topic: str, secret: bytes) -> Iterator[Finding]:
    """What the judge of states says of one topic."""
    states = topic_states(survey, topic)
    for violation in topic_violations(topic, supervisors(survey), states, [], secret):
        yield _judged(survey, topic, violation)


def topic_states(survey: Survey, topic: str) -> Mapping[NodeId, State]:
    """The states of all nodes that were seen, as the judge takes them."""
    states: dict[NodeId, State] = {}
    for handle, seen in survey.nodes.items():
        parts = seen.topics.get(topic, Parts())
        served = parts.supervisor
        if served is None and seen.status.supervises:
            served = Supervisor(handle, ()).state()  # it is alive, and serves it no more
        states[handle] = RingNodeState(parts.peer or PeerState({}), served)
    return states


def supervisors(survey: Survey) -> list[NodeId]:
    """All that any node knows of, alive or not, and all that were seen to supervise."""
    known = {one.handle for seen in survey.nodes.values() for one in seen.status.supervisors}
    seen = {handle for handle, it in survey.nodes.items() if it.status.supervises}
    return sorted(known | seen)


def publication_findings(survey: Survey, topic: str) -> Iterator[Finding]:
    """Do all members hold the same of the past in which nothing is on its way any more?"""
    held: dict[tuple[int, int], dict[NodeId, Settled]] = {}
    for handle, seen in survey.nodes.items():
        its = seen.status.topics.get(topic)
        if its is not None and its.member and not its.leaving:
            for part in its.settled:
                held.setdefault((part.since, part.cut), {})[handle] = part
    if not held:
        return
    parts = held[max(held, key=lambda it: (len(held[it]), it))]
    most = max(part.records for part in parts.values())
    usual = Counter(it.digest for it in parts.values() if it.records == most).most_common(1)[0][0]
    expect = f"neighbours bring it what it lacks: {_healing(survey)}"
    for handle, part in parts.items():
        if part.digest != usual:
            lacks = f"lacks {most - part.records} of {most} records"
            other = f"holds other records than most, though as many ({most})"
            detail = other if part.records == most else lacks
            yield _finding(survey, BROKEN, "publications", topic, handle, detail, expect)


def charter_findings(survey: Survey, topic: str) -> Iterator[Finding]:
    """Do all who take part in a topic obey the same charter?"""
    found = {
        handle: seen.status.topics[topic].charter
        for handle, seen in survey.nodes.items()
        if topic in seen.status.topics
    }
    highest = max(found.values(), default=0)
    for handle, version in found.items():
        if version != highest:
            detail = f"obeys version {version}, there is version {highest}"
            expect = f"supervisors tell it: {_healing(survey)}"
            yield _finding(survey, BROKEN, "charter", topic, handle, detail, expect)


# The other overlays


def overlay_findings(survey: Survey, overlay: str) -> Iterator[Finding]:
    """What the overlay's own judge says of the parts of all nodes that are awake in it."""
    states = {h: seen.parts[overlay] for h, seen in survey.nodes.items() if overlay in seen.parts}
    if not states:
        return
    expect = _heals(survey, PARTS[overlay].bound(len(states), DELAY))
    for found in PARTS[overlay].violations(states):
        detail = _named(survey, found.detail)
        yield _finding(
            survey, BROKEN, f"{overlay} {found.invariant}", None, found.node, detail, expect
        )


# What only a live network has


def silent_findings(survey: Survey) -> Iterator[Finding]:
    """Nodes that do not answer: broken if the network still counts on them."""
    counted = Counter(id for topic in judged_topics(survey) for id in recorded(survey, topic))
    for one in survey.silent:
        topics = counted[one.node] if one.node is not None else 0
        where = f"{'' if one.node is None else one.node} ({', '.join(one.addresses)})".strip()
        if topics:
            detail = f"does not answer, and {topics} topics count on it: {one.reason}"
            expect = (
                f"if it is gone, supervisors forget it: {_healing(survey)}; if it runs, let "
                "this machine reach it"
            )
            yield Finding(BROKEN, "unreachable", None, one.node, where, detail, expect)
        else:
            expect = "nothing counts on it; start it, or leave it out of the servers you name"
            yield Finding(WARNING, "unreachable", None, one.node, where, one.reason, expect)


def recorded(survey: Survey, topic: str) -> set[NodeId]:
    """Who is in a database of the topic."""
    found: set[NodeId] = set()
    for seen in survey.nodes.values():
        part = seen.topics.get(topic, Parts()).supervisor
        if part is not None and topic in part.topics:
            found |= {id for id in part.topics[topic].database.entries if id is not None}
    return found


def store_findings(survey: Survey) -> Iterator[Finding]:
    """Stores that cannot write, or that were found damaged."""
    for handle, seen in survey.nodes.items():
        store = seen.status.store
        if store is not None and store.stalled is not None:
            detail = f"{store.path} cannot write: {store.stalled}"
            expect = "make room or mend the disk: it goes on by itself; until then it refuses"
            yield _finding(survey, BROKEN, "store", None, handle, detail, expect)
        if store is not None and store.damaged:
            expect = "start the node again: it saves what can be read, peers bring the rest"
            yield _finding(
                survey, BROKEN, "store", None, handle, f"{store.path} is damaged", expect
            )


def clock_findings(survey: Survey) -> Iterator[Finding]:
    """Clocks that are not like most others."""
    if not survey.nodes:
        return
    usual = median_low([seen.clock for seen in survey.nodes.values()])
    for handle, seen in survey.nodes.items():
        off = seen.clock - usual
        if abs(off) > CLOCK_SECONDS + seen.trip / 2:
            detail = f"is {abs(off):.1f} s {'ahead of' if off > 0 else 'behind'} most others"
            expect = "set it right (NTP): a topic's retention goes by the median of clocks"
            yield _finding(survey, WARNING, "clock", None, handle, detail, expect)


def version_findings(survey: Survey) -> Iterator[Finding]:
    """Nodes of another version than most."""
    said = {h: (seen.status.version, seen.status.wire) for h, seen in survey.nodes.items()}
    if len(set(said.values())) <= 1:
        return
    usual = Counter(said.values()).most_common(1)[0][0]
    for handle, (version, wire) in said.items():
        if (version, wire) != usual:
            detail = f"runs {version} (wire {wire}), most run {usual[0]} (wire {usual[1]})"
            expect = "fine while you upgrade; then all should run the same"
            yield _finding(survey, WARNING, "version", None, handle, detail, expect)


def certificate_findings(survey: Survey, now: datetime | None = None) -> Iterator[Finding]:
    """Certificates that end soon."""
    for handle, seen in survey.nodes.items():
        expires = seen.status.certificate_expires
        if expires is None:
            continue
        left = expires - (now or datetime.now(UTC))
        if left < timedelta(days=CERTIFICATE_DAYS):
            detail = f"its certificate ends on {expires:%Y-%m-%d}, in {max(0, left.days)} days"
            expect = "issue a new one (`planaria keys issue`) and start the node again with it"
            yield _finding(survey, WARNING, "certificate", None, handle, detail, expect)


# Words


def _judged(survey: Survey, topic: str, violation: Violation) -> Finding:
    """A violation in words for people: nodes by name, and what to expect of it."""
    detail = _named(survey, violation.detail.removeprefix(f"{topic}: "))
    if violation.invariant == "supervisor" and violation.node is None:
        expect = (
            "start a supervisor (`planaria node --supervise`): members keep their ring meanwhile"
        )
    else:
        expect = _healing(survey)
    return _finding(survey, BROKEN, violation.invariant, topic, violation.node, detail, expect)


def _named(survey: Survey, detail: str) -> str:
    """The same words with nodes by name."""
    for handle in sorted(survey.nodes, reverse=True):
        detail = detail.replace(str(handle), survey.nodes[handle].status.name or str(handle))
    return detail


def _healing(survey: Survey) -> str:
    """How long rings take at most, if nothing more happens."""
    pace = max((seen.status.pace for seen in survey.nodes.values()), default=1)
    overlay = RingOverlay(max(1, len(supervisors(survey))), pace=pace)
    return _heals(survey, overlay.bound(max(1, len(survey.nodes)), DELAY))


def _heals(survey: Survey, bound: int) -> str:
    seconds = bound * _interval(survey)
    return (
        f"heals by itself, at the latest {bound} intervals ({seconds:.0f} s) after the last fault"
    )


def _interval(survey: Survey) -> float:
    return max((seen.status.interval for seen in survey.nodes.values()), default=0.0)


def _finding(
    survey: Survey,
    severity: str,
    invariant: str,
    topic: str | None,
    node: NodeId | None,
    detail: str,
    expect: str,
) -> Finding:
    return Finding(severity, invariant, topic, node, survey.called(node), detail, expect)
