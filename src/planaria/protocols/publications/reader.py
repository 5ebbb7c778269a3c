"""What the application is handed: every publication once, on request in its publisher's order.

Order is a cursor on the store. It stops at a number that may still come, until that comes, its
publisher vouches for it no longer, it is expired, or patience ends: then the number is skipped, and
told as a gap, and what comes of it later is told as late. Nothing waits in memory.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from planaria.core.node import Deliver, Effect, Notice
from planaria.core.state import State, Stateful
from planaria.protocols.publications.deliveries import Deliveries
from planaria.protocols.publications.holdings import Holdings
from planaria.records.batches import Arrival, Slice
from planaria.records.positions import SKIPPED_MAX, START, Interval, Intervals, Mark
from planaria.records.record import Record, Stream

PATIENCE = 10  # own timeouts for which a hole is waited for: anti-entropy is faster when healthy
PATIENCE_MAX = 100  # the same, while history still comes in
FORGET_MAX = 64  # marks examined per timeout for streams that nobody knows


class ReaderState(State):
    """How far each stream was handed out, and since when which hole is waited for."""

    ordered: bool
    marks: dict[tuple[int, bytes], Mark]
    holes: dict[tuple[int, bytes], tuple[int, int]]
    quiet: int
    turn: int


class Reader(Stateful):
    """The local application's place in one topic."""

    __slots__ = ("holdings", "holes", "marks", "ordered", "quiet", "topic", "turn")
    state_type = ReaderState

    def __init__(self, topic: str, holdings: Holdings, *, ordered: bool = False) -> None:
        self.topic, self.holdings, self.ordered = topic, holdings, ordered
        self.marks: dict[Stream, Mark] = {}  # only if ordered
        self.holes: dict[Stream, tuple[int, int]] = {}  # the missing number, timeouts since
        self.quiet = 0  # timeouts since history came in
        self.turn = 0

    def arrived(self, arrivals: Sequence[Arrival], *, history: bool = False) -> list[Effect]:
        """Hand out what is new, or what its coming sets free."""
        if len(arrivals) == 1:
            one = arrivals[0]
            record, new = one.record, one.new
            plain = not one.disputed and not one.abandoned
            if plain and (not self.ordered or self._next(record, new)):
                if history and new:
                    self.quiet = 0
                if len(new) == 1:
                    lo, hi = new[0]
                    return [Deliver(self.topic, Deliveries((Slice(record, lo, hi),)))]
                return self._deliver([Slice(record, lo, hi) for lo, hi in new])
        effects: list[Effect] = []
        for one in arrivals:
            stream = one.record.stream
            effects += [self._notice("equivocation", stream, *them) for them in one.disputed]
            effects += [self._notice("given_up", *them) for them in one.abandoned]
        if history and any(arrival.new for arrival in arrivals):
            self.quiet = 0
        parts = [Slice(one.record, *them) for one in arrivals for them in one.new]
        parts.sort(key=lambda part: (part.record.stream, part.lo))
        if not self.ordered:
            return effects + self._deliver(parts)
        for part in parts:
            effects += self._late(part)
        shown = self.holdings.store.index.shown
        for part in parts:
            if part.record.place not in shown:
                effects += self._unkept(part)
        for stream in dict.fromkeys(arrival.record.stream for arrival in arrivals):
            effects += self._follow(stream)
        return effects

    def _next(self, record: Record, new: Sequence[Interval]) -> bool:
        """Is it what the cursor waits for, with nothing behind it, as nearly always? Then pass it.

        It need not be read from the store.
        """
        first, end, index = record.first, record.first + record.count, self.holdings.store.index
        stream = (record.publisher, record.incarnation)
        mark = self.marks.get(stream, START)
        if mark.next != first or len(new) != 1 or new[0] != (first, end):
            return False
        if stream in self.holes or record.place not in index.shown:
            return False
        lane = index.lanes.get(stream)
        if lane is None or lane.covered.end > end:
            return False
        self.marks[stream] = Mark(end, mark.skipped)
        return True

    def on_timeout(self) -> list[Effect]:
        """Time passed: give up holes that were waited for, forget streams that are forgotten."""
        if not self.ordered:
            self.marks, self.holes = {}, {}
            return []
        self.quiet = min(max(0, self.quiet) + 1, PATIENCE_MAX)
        effects: list[Effect] = []
        for stream, (number, age) in list(self.holes.items()):
            self.holes[stream] = (number, age + 1)
            patience = PATIENCE if self.quiet >= PATIENCE else PATIENCE_MAX
            if not 0 <= age + 1 < patience:
                effects += self._skip(stream)
        self.turn = (max(0, self.turn) + FORGET_MAX) % max(1, len(self.marks))
        known = self.holdings.store.index.lanes
        for stream in list(self.marks)[self.turn : self.turn + FORGET_MAX]:
            if stream not in known:
                del self.marks[stream]
                self.holes.pop(stream, None)
        return effects

    def give_up(self) -> list[Effect]:
        """Wait for no hole any longer: what stands behind it is about to be kept no more."""
        if not self.ordered:
            return []
        return [effect for stream in list(self.holes) for effect in self._skip(stream)]

    def _late(self, part: Slice) -> list[Effect]:
        """Hand out at once what comes after its turn; the cursor has passed it."""
        record, lo, hi = part.record, part.lo, part.hi
        stream = record.stream
        mark = self.marks.get(stream, START)
        if lo >= mark.next:
            return []
        late = Slice(record, lo, min(hi, mark.next), late=True)
        skipped = Intervals(mark.skipped)
        skipped.remove(late.lo, late.hi)
        self.marks[stream] = Mark(mark.next, tuple(skipped))
        return [self._notice("late", stream, late.lo, late.hi), *self._deliver([late])]

    def _unkept(self, part: Slice) -> list[Effect]:
        """Hand out at once what the store does not keep, after what comes before it."""
        record, lo, hi = part.record, part.lo, part.hi
        stream = record.stream
        effects = self._follow(stream, before=lo)
        start = max(lo, self.marks.get(stream, START).next)
        if start < hi:
            effects += self._pass(stream, start)
            effects += self._deliver([Slice(record, start, hi)])
            self.marks[stream] = Mark(hi, self.marks.get(stream, START).skipped)
        return effects

    def _follow(self, stream: Stream, before: int | None = None) -> list[Effect]:
        """Hand out what the cursor reaches; what it passes unseen is a gap."""
        effects: list[Effect] = []
        while True:
            mark = self.marks.get(stream, START)
            slices, after = self.holdings.follow(stream, mark)
            if before is not None:
                slices = [replace(it, hi=min(it.hi, before)) for it in slices if it.lo < before]
                after = Mark(max(mark.next, min(after.next, before)), mark.skipped)
            if after.next == mark.next:
                break
            at = mark.next or (slices[0].lo if slices else after.next)
            for part in slices:
                if part.lo > at:
                    effects.append(self._notice("gap", stream, at, part.lo))
                at = part.hi
                self.holdings.handed(part)
            if at < after.next:
                effects.append(self._notice("gap", stream, at, after.next))
            self.marks[stream] = after
            effects += self._deliver(slices)
        self._watch(stream)
        return effects

    def _watch(self, stream: Stream) -> None:
        """Note whether the cursor stands at a hole."""
        number = self.marks.get(stream, START).next
        if self.holdings.ahead(stream, number) is None:
            self.holes.pop(stream, None)
        elif self.holes.get(stream, (-1, 0))[0] != number:
            self.holes[stream] = (number, 0)

    def _skip(self, stream: Stream) -> list[Effect]:
        """Pass over a hole and go on behind it."""
        self.holes.pop(stream, None)
        start = self.holdings.ahead(stream, self.marks.get(stream, START).next)
        if start is None:
            return []
        return [*self._pass(stream, start), *self._follow(stream)]

    def _pass(self, stream: Stream, before: int) -> list[Effect]:
        """Skip all numbers below `before`, of which none was handed out: a gap, until they come."""
        mark = self.marks.get(stream, START)
        if before <= mark.next:
            return []
        skipped = Intervals(mark.skipped)
        skipped.add(mark.next, before)
        kept = tuple(skipped)[-SKIPPED_MAX:]  # what comes of the others is late all the same
        self.marks[stream] = Mark(before, kept)
        return [self._notice("gap", stream, mark.next, before)]

    def _deliver(self, slices: Sequence[Slice]) -> list[Effect]:
        return [Deliver(self.topic, Deliveries(slices))] if slices else []

    def _notice(self, kind: str, stream: Stream, lo: int, hi: int) -> Notice:
        publisher, incarnation = stream
        detail = {"publisher": publisher, "incarnation": incarnation.hex(), "first": lo}
        return Notice(self.topic, kind, {**detail, "last": hi - 1})
