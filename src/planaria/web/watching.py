"""Makes frames of a running network: looks at it again and again, and remembers what it saw."""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Sequence

from planaria.core.ids import NodeId
from planaria.network.client.asking import Unanswered
from planaria.network.client.errors import Unreachable
from planaria.network.client.overlays import RING
from planaria.network.doctor import BROKEN as FINDING_BROKEN
from planaria.network.doctor import Finding, findings
from planaria.network.laid_down import charters_of, line_of
from planaria.network.overlays.registry import PARTS
from planaria.network.status import Status
from planaria.network.survey import Survey, Surveyor
from planaria.web.frames import BROKEN, GOOD, ONCE, Frame, Lamp, Rates
from planaria.web.pictures.picture import Place
from planaria.web.views import drawn, topic_views

# What doctor judges, in the order in which a network heals.
INVARIANTS = (
    *("unreachable", "supervisor", "database", "suspects", "patience", "label", "ring"),
    *("shortcuts", "leavers", "publications", "charter", "channel", "store", "clock", "version"),
    *("certificate", "answer"),
)
HISTORY_MAX = 600  # frames that a page which is opened later is shown
HEALED_MAX = 200
EVENTS_MAX = 8  # of one frame

log = logging.getLogger("planaria.dashboard")

Moment = tuple[float, bool, float, float]


class Watcher:
    """Looks once for each call of `look`, for all who watch; each is drawn what it asks for.

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
        self._lasting: list[Finding] = []  # of these, what the look before saw too
        self._frame: Frame | None = None
        self._keys: set[tuple[str, str | None, NodeId | None]] = set()
        self._names: dict[NodeId, str] = {}
        self._broken_since: float | None = None
        self._notes: list[str] = []
        self._laid_down: dict[str, str] = {}  # what charters say
        self._versions: dict[str, int] = {}  # of those charters
        self._places: dict[tuple[str, str], dict[NodeId, Place]] = {}  # as they were last drawn

    async def look(self) -> bool:
        """Look once more; False if no node answers, and `failure` says why."""
        try:
            survey = await self.surveyor.look()
            await self.surveyor.examine(survey)
            await self._read_charters(survey)
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

    def frame(self, topic: str = "", overlay: str = RING) -> Frame | None:
        """The last look, with one topic drawn: the one that is named, or the first there is."""
        if self._survey is None or self._frame is None:
            return None
        choices = [(it.overlay, it.name) for it in self._frame.topics]
        if (overlay, topic) not in choices:
            overlay, topic = choices[0] if choices else (RING, "")
        looks = (self._before, self._survey)
        before = self._places.get((overlay, topic), {})
        broken = self._broken, self._lasting
        found = drawn(self._frame, looks, (overlay, topic), broken, self._names, before)
        places = {NodeId(int(it.id)): (it.x, it.y) for it in found.nodes}
        self._places[overlay, topic] = places
        return found

    def uptimes(self) -> dict[NodeId, float]:
        """For how long the nodes run that the last look saw."""
        seen = {} if self._survey is None else self._survey.nodes
        return {id: it.status.uptime for id, it in seen.items()}

    async def _read_charters(self, survey: Survey) -> None:
        """Ask what is laid down, if there is something new."""
        versions = {
            name: it.charter
            for seen in survey.nodes.values()
            for name, it in seen.status.topics.items()
            if it.charter
        }
        if versions == self._versions:
            return
        try:
            found = await charters_of(self.surveyor, survey, "#")
        except Unanswered:
            return  # the next look asks again
        self._versions = versions
        self._laid_down = {name: line_of(its[0]) for name, its in found.items()}

    def _judged(self, survey: Survey, found: Sequence[Finding]) -> Frame:
        """The frame of one look, nothing drawn yet."""
        self._broken = [one for one in found if one.severity == FINDING_BROKEN]
        self._lasting = [one for one in self._broken if one.key in self._keys]
        self._keys = {one.key for one in self._broken}
        events = [*self._notes, *self._changes(survey), *self._episode(survey.time)]
        self._notes = []
        return Frame(
            time=survey.time,
            legitimate=not self._lasting,
            edges=[],
            lamps=[*lamps(self._broken, self._lasting, awake(survey))],
            events=events[:EVENTS_MAX],
            topics=[*topic_views(survey, self._broken, self._laid_down)],
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


def awake(survey: Survey) -> list[str]:
    """The overlays beside `ring` in which somebody takes part."""
    return [it for it in PARTS if any(it in seen.parts for seen in survey.nodes.values())]


def lamps(
    broken: Sequence[Finding], lasting: Sequence[Finding], overlays: Iterable[str] = ()
) -> Iterable[Lamp]:
    """One for each invariant: broken if two looks saw it, once if only the last did."""
    known = [*INVARIANTS, *(f"{it} {name}" for it in overlays for name in PARTS[it].invariants)]
    sure = {one.invariant for one in lasting}
    words: dict[str, list[str]] = {}
    for one in broken:
        topic = "" if one.topic is None else f"{one.topic}: "
        words.setdefault(one.invariant, []).append(f"{topic}{one.where}: {one.detail}")
    for name in (*known, *sorted(set(words) - set(known))):
        state = BROKEN if name in sure else ONCE if name in words else GOOD
        causes = words.get(name, [])
        more = f" (and {len(causes) - 1} more)" if len(causes) > 1 else ""
        yield Lamp(name, state, causes[0] + more if causes else "")


def rates(before: Survey | None, after: Survey) -> Rates:
    """All nodes together, since the look before."""
    held = delivered = 0.0
    for handle, seen in after.nodes.items():
        old = None if before is None else before.nodes.get(handle)
        seconds = 0.0 if old is None else seen.status.uptime - old.status.uptime
        if old is not None and seconds > 0:
            status, was = seen.status, old.status
            held += max(0, status.totals.publications - was.totals.publications) / seconds
            delivered += max(0, deliveries(status) - deliveries(was)) / seconds
    every = [seen.status for seen in after.nodes.values()]
    clients = sum(status.clients for status in every)
    most = max((status.totals.publications for status in every), default=0)
    return Rates(round(held, 1), round(delivered, 1), clients, most)


def deliveries(status: Status) -> int:
    """Of all overlays."""
    return status.deliveries + sum(it.deliveries for it in status.overlays.values())
