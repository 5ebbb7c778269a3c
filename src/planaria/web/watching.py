"""Makes frames of a running network: looks at it again and again, and remembers what it saw."""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from planaria.core.ids import NodeId
from planaria.network.client.errors import Unreachable
from planaria.network.doctor import BROKEN as FINDING_BROKEN
from planaria.network.doctor import Finding, findings
from planaria.network.status import Status
from planaria.network.survey import Survey, Surveyor
from planaria.protocols.skipring.subscriber import SubscriberState
from planaria.web.drawing import LINK, Edge, circle_places, pairs, ring_edges, ring_places
from planaria.web.frames import (
    BROKEN,
    DOUBTS,
    GOOD,
    OK,
    ONCE,
    SILENT,
    Frame,
    Lamp,
    NodeView,
    Rates,
    TopicView,
)

# What doctor judges, in the order in which a network heals.
INVARIANTS = (
    *("unreachable", "supervisor", "database", "suspects", "patience", "label", "ring"),
    *("shortcuts", "leavers", "publications", "charter", "channel", "store", "clock", "version"),
    *("certificate", "answer"),
)
HISTORY_MAX = 600  # frames that a page which is opened later is shown
HEALED_MAX = 200
EVENTS_MAX = 8  # of one frame
TOPICS_MAX = 200  # that a page lists

log = logging.getLogger("planaria.dashboard")

Moment = tuple[float, bool, float, float]


class Watcher:
    """Looks once for each call of `look`, for all who watch; each is drawn the topic it asks for.

    `history` is what charts show to who comes later: time, legitimate or not, and the two rates.
    """

    def __init__(self, surveyor: Surveyor) -> None:
        self.surveyor = surveyor
        self.looks = 0
        self.history: deque[Moment] = deque(maxlen=HISTORY_MAX)
        self.healed: deque[tuple[float, float]] = deque(maxlen=HEALED_MAX)
        self.failure: str | None = None  # why there is no frame now
        self._survey: Survey | None = None
        self._before: Survey | None = None
        self._broken: list[Finding] = []
        self._frame: Frame | None = None
        self._keys: set[tuple[str, str | None, NodeId | None]] = set()
        self._names: dict[NodeId, str] = {}
        self._broken_since: float | None = None
        self._notes: list[str] = []

    async def look(self) -> bool:
        """Look once more; False if no node answers, and `failure` says why."""
        try:
            survey = await self.surveyor.look()
            await self.surveyor.examine(survey)
        except Unreachable as error:
            self.failure = str(error)
            self.looks += 1
            return False
        self.failure = None
        self._before, self._survey = self._survey, survey
        self._frame = self._judged(survey, [*findings(survey, self.surveyor.secret)])
        rate = self._frame.rates
        good = bool(self._frame.legitimate)
        self.history.append((survey.time, good, rate.held, rate.delivered))
        self.looks += 1
        return True

    async def run(self, seconds: float, changed: asyncio.Condition) -> None:
        """Look every `seconds`, and tell whoever waits; a look that raises is a failure too."""
        while True:
            try:
                await self.look()
            except Exception as error:
                log.exception("cannot look")
                self.failure = f"cannot look: {type(error).__name__}: {error}"
                self.looks += 1
            async with changed:
                changed.notify_all()
            await asyncio.sleep(seconds)

    def note(self, words: str) -> None:
        """Let the next frame tell what was done."""
        self._notes.append(words)

    def frame(self, topic: str = "") -> Frame | None:
        """The last look, with one topic drawn: the one that is named, or the first there is."""
        if self._survey is None or self._frame is None:
            return None
        topics = self._survey.topics()
        if topic not in topics:
            topic = topics[0] if topics else ""
        nodes, edges = drawn(self._before, self._survey, topic, self._broken, self._names)
        return replace(self._frame, topic=topic, nodes=nodes, edges=edges)

    def _judged(self, survey: Survey, found: Sequence[Finding]) -> Frame:
        """The frame of one look, nothing drawn yet."""
        self._broken = [one for one in found if one.severity == FINDING_BROKEN]
        lasting = [one for one in self._broken if one.key in self._keys]
        self._keys = {one.key for one in self._broken}
        events = [*self._notes, *self._changes(survey), *self._episode(survey.time)]
        self._notes = []
        return Frame(
            time=survey.time,
            legitimate=not lasting,
            edges=[],
            lamps=[*lamps(self._broken, lasting)],
            events=events[:EVENTS_MAX],
            topics=[*topic_views(survey, self._broken)],
            rates=rates(self._before, survey),
            healed=list(self.healed),
        )

    def _changes(self, survey: Survey) -> Iterable[str]:
        """Who came, who went, who started again."""
        before = {} if self._before is None else self._before.nodes
        for handle, seen in survey.nodes.items():
            self._names[handle] = seen.status.name or seen.status.id[:8]
            if self._before is not None and handle not in before:
                yield f"{self._names[handle]} is there"
            elif handle in before and seen.status.uptime < before[handle].status.uptime:
                yield f"{self._names[handle]} has started again"
        for handle in before:
            if handle not in survey.nodes:
                yield f"{self._names[handle]} does not answer"

    def _episode(self, time: float) -> Iterable[str]:
        """The beginning or the end of a time in which looks saw something wrong."""
        if self._broken_since is not None and not self._broken:
            seconds = round(time - self._broken_since, 1)
            self.healed.append((self._broken_since, seconds))
            self._broken_since = None
            yield f"nothing wrong any more after {seconds:g} s"
        elif self._broken_since is None and self._broken:
            self._broken_since = time
            yield "wrong: " + ", ".join(sorted({one.invariant for one in self._broken}))


def drawn(
    before: Survey | None,
    survey: Survey,
    topic: str,
    broken: Sequence[Finding],
    names: dict[NodeId, str],
) -> tuple[list[NodeView], list[Edge]]:
    """The nodes that were seen or are missed, and the lines of one topic between them."""
    silent = {one.node: one for one in survey.silent if one.node is not None}
    ids = sorted({*survey.nodes, *silent})
    members: dict[NodeId, SubscriberState] = {}
    for id, seen in survey.nodes.items():
        parts = seen.topics.get(topic)
        if parts is not None and parts.peer is not None and topic in parts.peer.topics:
            members[id] = parts.peer.topics[topic].subscriber
    places = ring_places(ids, members) if members else circle_places(ids)
    wrong: dict[NodeId, list[str]] = {}
    for one in broken:
        if one.node is not None:
            wrong.setdefault(one.node, []).append(f"{one.invariant}: {one.detail}")
    nodes = []
    for id in ids:
        x, y = places[id]
        if id in survey.nodes:
            old = None if before is None else before.nodes.get(id)
            was = None if old is None else old.status
            nodes.append(_node(was, survey.nodes[id].status, x, y, wrong.get(id, [])))
        else:
            name = names.get(id, f"{id:016x}"[:8])
            figures = {"address": ", ".join(silent[id].addresses)}
            told = [silent[id].reason]
            nodes.append(NodeView(str(id), name, x, y, SILENT, doubts=told, figures=figures))
    numbers = {id: at for at, id in enumerate(ids)}
    edges = ring_edges(numbers, members) if members else link_edges(survey, numbers)
    return nodes, edges


def link_edges(survey: Survey, numbers: dict[NodeId, int]) -> list[Edge]:
    """The connections, where there is no topic to draw."""
    found = {
        pair
        for id, seen in survey.nodes.items()
        for pair in pairs(numbers, id, (link.peer for link in seen.status.links))
    }
    return [(a, b, LINK) for a, b in sorted(found)]


def _node(was: Status | None, status: Status, x: float, y: float, wrong: list[str]) -> NodeView:
    store = "in memory" if status.store is None else f"{status.store.bytes:,} bytes"
    memory = status.process.resident_bytes
    figures = {
        "id": status.id,
        "address": ", ".join(status.listen),
        "topics": f"{status.totals.topics:,}",
        "publications": f"{status.totals.publications:,}",
        "links": f"{status.links_total} ({status.links_busy} full)",
        "clients": f"{status.clients}",
        "queues": f"{status.queues.messages} messages, {status.queues.link_bytes:,} bytes",
        "dropped": f"{status.drops} messages, {status.malformed} malformed",
        "store": store,
        "memory": "?" if memory is None else f"{memory >> 20} MiB",
        "up": f"{status.uptime:,.0f} s",
        "version": status.version,
    }
    doubts = [*wrong, *(it for it in status.doubts if it not in wrong)]
    role = "supervisor" if status.supervises else "member"
    name = status.name or status.id[:8]
    state = OK if not doubts else DOUBTS
    held = status.totals.publications
    arrived = 0 if was is None else max(0, held - was.totals.publications)
    return NodeView(str(status.handle), name, x, y, state, role, arrived, doubts, figures)


def lamps(broken: Sequence[Finding], lasting: Sequence[Finding]) -> Iterable[Lamp]:
    """One for each invariant: broken if two looks saw it, once if only the last did."""
    sure = {one.invariant for one in lasting}
    words: dict[str, list[str]] = {}
    for one in broken:
        topic = "" if one.topic is None else f"{one.topic}: "
        words.setdefault(one.invariant, []).append(f"{topic}{one.where}: {one.detail}")
    for name in (*INVARIANTS, *sorted(set(words) - set(INVARIANTS))):
        state = BROKEN if name in sure else ONCE if name in words else GOOD
        told = words.get(name, [])
        more = f" (and {len(told) - 1} more)" if len(told) > 1 else ""
        yield Lamp(name, state, told[0] + more if told else "")


def topic_views(survey: Survey, broken: Sequence[Finding]) -> Iterable[TopicView]:
    """All topics, as many as a page lists."""
    wrong = {one.topic for one in broken}
    for name in survey.topics()[:TOPICS_MAX]:
        its = [
            seen.status.topics[name] for seen in survey.nodes.values() if name in seen.status.topics
        ]
        members = sum(it.member for it in its)
        most = max((it.publications for it in its), default=0)
        charter = max((it.charter for it in its), default=0)
        yield TopicView(name, members, most, charter, name not in wrong)


def rates(before: Survey | None, after: Survey) -> Rates:
    """All nodes together, since the look before."""
    held = delivered = 0.0
    for handle, seen in after.nodes.items():
        old = None if before is None else before.nodes.get(handle)
        seconds = 0.0 if old is None else seen.status.uptime - old.status.uptime
        if old is not None and seconds > 0:
            status, was = seen.status, old.status
            held += max(0, status.totals.publications - was.totals.publications) / seconds
            delivered += max(0, status.deliveries - was.deliveries) / seconds
    every = [seen.status for seen in after.nodes.values()]
    clients = sum(status.clients for status in every)
    most = max((status.totals.publications for status in every), default=0)
    return Rates(round(held, 1), round(delivered, 1), clients, most)
