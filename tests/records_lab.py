"""Records, streams and a naive twin of the store, for the tests of records."""

from collections.abc import Callable, Iterable, Sequence
from random import Random

from planaria.core.errors import CapacityExceeded
from planaria.records.batches import Batch
from planaria.records.positions import Interval
from planaria.records.record import Draft, Publication, Record, Stream, seal
from planaria.records.store import Store
from planaria.records.window import Window

NOW = 1_700_000_000


def stream(publisher: int = 1, incarnation: int = 0) -> Stream:
    return publisher, incarnation.to_bytes(12, "big")


A, B = stream(1), stream(2)

Make = Callable[[str], Store]


def record(
    of: Stream = A,
    first: int = 0,
    count: int = 1,
    *,
    time: int = NOW,
    low: int = 0,
    text: str = "",
    keys: Sequence[bytes | None] = (),
) -> Record:
    """A record whose payloads say where they stand, and `text`."""
    drafts = [
        Draft(f"{of[0]}/{number}{text}".encode(), keys[number - first] if keys else None)
        for number in range(first, first + count)
    ]
    return seal(of, first, drafts, time=time, low=low)


def shuffled(records: list[Record], seed: int) -> list[Record]:
    """The same in another order."""
    return Random(seed).sample(records, len(records))


def numbers(batch: Batch) -> dict[Stream, list[int]]:
    """The numbers in a batch, by stream, in the order in which they came."""
    found: dict[Stream, list[int]] = {}
    for one in batch.publications():
        found.setdefault((one.publisher, one.incarnation), []).append(one.sequence)
    return found


def no_room(*_: object) -> None:
    """A store that takes nothing, in place of one of its methods."""
    raise CapacityExceeded("no room")


class NaiveStore:
    """A store from the definitions: lists, searched whole for every question."""

    def __init__(self) -> None:
        self.records: list[Record] = []  # what is held
        self.dropped: list[tuple[Record, bool]] = []  # not held any more; was it too old?
        self.delivered: set[tuple[Stream, int]] = set()
        self.window = Window()

    def kept(self, window: Window) -> list[Record]:
        """Young enough, and fewer than N stand above it, of each publisher at most its quota."""
        quota = window.per_publisher or 1 << 62
        young = [one for one in self.records if one.time >= window.lo]
        found = []
        for one in young:
            above: dict[int, int] = {}
            for other in young:
                if (other.time, other.key) > (one.time, one.key):
                    above[other.publisher] = above.get(other.publisher, 0) + other.count
            capped = sum(min(quota, count) for count in above.values())
            if above.get(one.publisher, 0) < quota and capped < window.limit:
                found.append(one)
        return found

    def append(self, one: Record) -> list[int]:
        """Hold a record; returns the numbers to deliver."""
        if one in self.records:
            return []
        self.records.append(one)
        if one.time < self.window.lo:
            return []
        positions = [(one.stream, number) for number in range(one.first, one.end)]
        new = [number for at, number in positions if (at, number) not in self.delivered]
        self.delivered.update(positions)
        return new

    def drop(self, keep: Sequence[Record]) -> None:
        """Hold only these."""
        for one in self.records:
            if one not in keep:
                self.dropped.append((one, one.time < self.window.lo))
        self.records = [one for one in self.records if one in keep]

    def body(self, of: Stream, number: int) -> Publication | None:
        """The body at a position: of all that is shown the one highest in (time, key)."""
        shown = self.kept(self.window)
        found = [r for r in shown if r.stream == of and r.first <= number < r.end]
        if not found:
            return None
        best = max(found, key=lambda r: (r.time, r.key))
        return best.publications(number, number + 1)[0]

    def gone(self, of: Stream, number: int) -> bool:
        """Can nothing come at this position any more?

        Vouched away, dropped itself, or below a number from before the last second dropped.
        """
        shown = self.kept(self.window)
        hidden = [(r, r.time < self.window.lo) for r in self.records if r not in shown]
        known = [*self.records, *(r for r, _ in self.dropped)]
        if any(r.stream == of and number < r.low for r in known):
            return True
        for group in (hidden, self.dropped):
            mine = [(r, aged) for r, aged in group if r.stream == of]
            last = max((r.time for r, aged in mine if not aged), default=0)
            if any(r.first <= number < r.end for r, _ in mine):
                return True
            if any(number < r.end for r, aged in mine if aged or r.time < last):
                return True
        return False

    def next(self, of: Stream, start: int = 0) -> int:
        """The first number from `start` on that may still come."""
        number = start
        while self.body(of, number) is not None or self.gone(of, number):
            number += 1
        return number

    def retained(self, key: bytes | None) -> Publication | None:
        best: tuple[tuple[int, Stream, int], Publication] | None = None
        for one in self.kept(self.window):
            for mine in one.publications(one.first, one.end):
                if mine != self.body(one.stream, mine.sequence):
                    continue
                turn = (one.time, one.stream, mine.sequence)
                if (key is None or mine.key == key) and (best is None or turn > best[0]):
                    best = (turn, mine)
        return best[1] if best else None


def flat(intervals: Iterable[Interval]) -> list[int]:
    return [number for lo, hi in intervals for number in range(lo, hi)]


def any_record(random: Random, streams: Sequence[Stream] = (A, B)) -> Record:
    """A record of one of these streams whose time grows with its numbers, often overlapping."""
    first = random.randrange(12)
    time = NOW + first // 3 + random.randrange(2)
    keys = [random.choice([None, b"k", b"l"]) for _ in range(3)]
    low = random.choice([0, 0, 0, first // 2])
    text = random.choice(["", "", "!"])
    count = random.randrange(1, 4)
    return record(
        random.choice(streams), first, count, time=time, low=low, text=text, keys=keys[:count]
    )
