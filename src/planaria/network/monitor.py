"""Watches one node over time: what it delivered, when it had doubts, how long it took to heal."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from time import monotonic

from msgspec import Struct
from msgspec.structs import replace

from planaria.core.node import Deliver, Effect, Notice
from planaria.network.doubts import member_doubts, store_doubts, supervisor_doubts
from planaria.network.evidence import Evidence
from planaria.network.introspection import Running, status_of, topics_after
from planaria.network.status import Shown, Status

RECOVERY_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)
NOTICE_KINDS_MAX = 32  # each is a time series for whoever scrapes; further kinds count as `other`
TICKS_MISSED_MAX = 20  # intervals without a timeout after which a node is not alive


class Histogram:
    """How many values fell below each bound; the last count is of those above all bounds."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value in."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """All of them."""
        return sum(self.counts)


class Stability(Struct, frozen=True):
    """What a node can honestly say of itself: what it knows to be wrong, and how old that is.

    `seconds`: for how long it has been so.
    """

    legitimate: bool
    doubts: list[str]
    evidence_age: float
    seconds: float
    topics: int


class Monitor:
    """Give it every effect for the application, and a `tick` after each timeout of the node."""

    def __init__(self, node: Running, clock: Callable[[], float] = monotonic) -> None:
        self.node = node
        self.recovery = Histogram(RECOVERY_SECONDS)
        self.deliveries = 0
        self.doubts = 0  # times that it began to have some
        self.notices: Counter[str] = Counter()
        self.evidence = Evidence()
        self.calm = 0  # intervals since it last had a doubt
        self.legitimate = False  # at the last tick
        self._clock = clock
        self._ticked = self._changed = clock()
        self._healed = False  # was it ever legitimate? Joining is not healing.

    def on_effect(self, effect: Effect) -> None:
        """Count what the application gets."""
        if isinstance(effect, Deliver):
            self.deliveries += len(effect.publications)
        elif isinstance(effect, Notice):
            known = effect.kind in self.notices or len(self.notices) < NOTICE_KINDS_MAX
            self.notices[effect.kind if known else "other"] += 1

    def tick(self) -> None:
        """An interval passed: has the node doubts?"""
        self._ticked = now = self._clock()
        self.evidence.tick(self.node.ring.peer.topics)
        legitimate = not self._doubtful()
        self.calm = self.calm + 1 if legitimate else 0
        if legitimate == self.legitimate:
            return
        if legitimate and self._healed:
            self.recovery.observe(now - self._changed)
        self.doubts += not legitimate
        self._healed = self._healed or legitimate
        self.legitimate, self._changed = legitimate, now

    def status(self) -> Status:
        """How the node is now."""
        found = status_of(self.node, self.evidence, now=self._clock(), time=self.node.host.wall())
        return replace(found, deliveries=self.deliveries)

    def shown(self, after: str | None = None) -> Status | Shown:
        """What clients are shown: the status, or those of its topics that follow a name."""
        if after is None:
            return self.status()
        return Shown(topics_after(self.node.ring, self.evidence, after))

    def stability(self) -> Stability:
        """Is it legitimate, as far as it can know? What was not looked at lately is older."""
        status, now = self.status(), self._clock()
        same = status.legitimate == self.legitimate
        return Stability(
            legitimate=status.legitimate,
            doubts=status.doubts,
            evidence_age=round(status.evidence_age + now - self._ticked, 3),
            seconds=round(now - self._changed, 3) if same else 0.0,
            topics=status.totals.topics,
        )

    @property
    def silence(self) -> float:
        """Seconds since the last tick."""
        return self._clock() - self._ticked

    @property
    def alive(self) -> bool:
        """Do the node's timeouts come?"""
        return self.silence < TICKS_MISSED_MAX * self.node.host.interval

    def _doubtful(self) -> bool:
        """Has it any doubt? Looks no further than the first: this is done every interval.

        Nor at a topic that rests, since that has none.
        """
        ring = self.node.ring
        if any(True for _ in store_doubts(self.node.database)):
            return True
        if any(its.doubts for its in self.node.overlays().values()):
            return True
        for one in ring.peer.topics.values():
            if not one.subscriber.pace.resting and any(True for _ in member_doubts(one)):
                return True
        served = ring.supervisor.topics.values() if ring.supervisor else ()
        return any(True for one in served if not one.pace.resting for _ in supervisor_doubts(one))
