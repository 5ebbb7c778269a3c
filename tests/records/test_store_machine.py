"""Any sequence of appends, settings, reads and restarts, beside a twin made of the definitions."""

import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from planaria.lab.incidents.disk_ring import commit
from planaria.network.store.database import Database
from planaria.records import retained
from planaria.records.batches import Slice
from planaria.records.memory import MemoryStore
from planaria.records.positions import START, Mark, skip
from planaria.records.record import Record, Stream
from planaria.records.store import Store
from planaria.records.window import Window
from records_lab import NOW, A, B, NaiveStore, any_record, flat

WINDOWS = [
    Window(),
    Window(lo=NOW + 2),
    Window(lo=NOW + 4, limit=4),
    Window(limit=3),
    Window(limit=5, per_publisher=3),
    Window(lo=NOW + 1, per_publisher=2),
]
windows = st.sampled_from(WINDOWS)
seeds = st.integers(0, 400)
HIGHEST = 16  # no record of `any_record` has a number so high


class Machine(RuleBasedStateMachine):
    """A store in memory beside its twin."""

    def __init__(self) -> None:
        super().__init__()
        self.twin = NaiveStore()
        self.windows = [Window()]
        self.store = self.make()
        self.step, retained.STEP_RECORDS = retained.STEP_RECORDS, 2  # so that all comes in between

    def teardown(self) -> None:
        retained.STEP_RECORDS = self.step

    def make(self) -> Store:
        return MemoryStore()

    @rule(drawn=st.lists(seeds, min_size=1, max_size=4))
    def append(self, drawn: list[int]) -> None:
        records = [any_record(Random(seed)) for seed in drawn]
        arrivals = self.store.append(records)
        for one, arrival in zip(records, arrivals, strict=True):
            if one not in self.twin.records:
                held = self.disputes(self.twin.records, one)
                shown = self.disputes(self.twin.kept(self.twin.window), one)
                assert shown <= {*flat(arrival.disputed)} <= held
            assert flat(arrival.new) == self.twin.append(one)
        self.keep(records)

    def disputes(self, others: list[Record], one: Record) -> set[int]:
        """The numbers to which one of the others gives another body."""
        found = set()
        for other in others:
            first, end = max(one.first, other.first), min(one.end, other.end)
            if other.stream == one.stream and first < end:
                pairs = zip(
                    one.publications(first, end), other.publications(first, end), strict=True
                )
                found |= {mine.sequence for mine, body in pairs if mine[3:6] != body[3:6]}
        return found

    @rule(window=windows)
    def show(self, window: Window) -> None:
        self.store.show(window)
        self.twin.window = window
        self.keep()

    @rule(others=st.lists(windows, max_size=2))
    def purge(self, others: list[Window]) -> None:
        self.store.purge(others)
        self.windows = others
        self.keep()

    def keep(self, fresh: Sequence[Record] = ()) -> None:
        """Nothing that a window of the grace shows is deleted; the twin forgets what is."""
        windows = [self.twin.window, *self.store.index.windows]
        wanted = [one for window in windows for one in self.twin.kept(window)]
        for one in wanted:
            if one not in fresh or one in self.twin.kept(self.twin.window):
                assert one.place in self.store
        self.twin.drop([one for one in self.twin.records if one.place in self.store])

    @rule(seed=seeds, limit=st.integers(1, 9))
    def read(self, seed: int, limit: int) -> None:
        random = Random(seed)
        vector = {of: Mark(random.randrange(6)) for of in (A, B) if random.random() < 0.5}
        before = {of: vector.get(of, START).next for of in (A, B)}
        got: dict[Stream, list[int]] = {A: [], B: []}
        while (batch := self.store.read(vector, limit=limit)).slices:
            rows = batch.publications()
            assert len(rows) <= limit
            for row in rows:
                stream = (row.publisher, row.incarnation)
                got[stream].append(row.sequence)
                assert row == self.twin.body(stream, row.sequence)
            vector = batch.vector
        for of in (A, B):
            end = self.twin.next(of, before[of])
            expected = [n for n in range(before[of], end) if self.twin.body(of, n) is not None]
            assert got[of] == expected

    @rule(seed=seeds, floor=st.integers(NOW - 1, NOW + 6), limit=st.integers(1, 9))
    def read_from_a_floor(self, seed: int, floor: int, limit: int) -> None:
        """Streams without a mark begin after the last record that is older than the floor."""
        shown = self.twin.kept(self.twin.window)
        if any(self.decreases(shown, of) for of in (A, B)):
            return
        random = Random(seed)
        vector = {of: Mark(random.randrange(6)) for of in (A, B) if random.random() < 0.3}
        before = {of: vector[of].next for of in vector}
        for of in (A, B):
            older = [one.end for one in shown if one.stream == of and one.time < floor]
            before.setdefault(of, max(older, default=0))
        got: dict[Stream, list[int]] = {A: [], B: []}
        more = True
        while more:
            batch = self.store.read(vector, limit=limit, floor=floor)
            for row in batch.publications():
                got[row.publisher, row.incarnation].append(row.sequence)
            vector, more = batch.vector, batch.more
        for of in (A, B):
            end = self.twin.next(of, before[of])
            expected = [n for n in range(before[of], end) if self.twin.body(of, n) is not None]
            assert got[of] == expected

    def decreases(self, shown: list[Record], of: Stream) -> bool:
        """Does a record with higher numbers have a lower time, as no publisher's has?"""
        mine = sorted((one for one in shown if one.stream == of), key=lambda one: one.first)
        return any(
            a.time > b.time or (b.end < a.end and a.time != b.time) for a, b in pairwise(mine)
        )

    @rule(seed=seeds)
    def skip(self, seed: int) -> None:
        """What is skipped is read as late, all of it, and nothing twice."""
        random = Random(seed)
        vector = skip({}, A, random.randrange(1, 9))
        batch = self.store.read(vector)
        skipped = [n for n in range(vector[A].next) if self.twin.body(A, n) is not None]
        late = [(part.lo, part.hi) for part in batch.slices if part.late]
        assert flat(late) == skipped
        assert not {*flat(batch.vector[A].skipped)} & {*skipped}

    @invariant()
    def same(self) -> None:
        twin, store = self.twin, self.store
        shown = twin.kept(twin.window)
        assert store.places(0, NOW + 1000) == sorted(one.place for one in shown)
        assert len(store) == sum(one.count for one in shown)
        keys = sum(int.from_bytes(one.key, "big") for one in shown)
        assert store.digest(0, NOW + 1000) == (keys % 2**128, len(shown))
        streams = {one.stream for one in twin.records} | {one.stream for one, _ in twin.dropped}
        ends = {of: twin.next(of) for of in streams}
        assert store.vector() == {of: Mark(end) for of, end in ends.items() if end}
        for of in sorted(streams):
            lacks = store.lacks({}, {of: Mark(HIGHEST)})
            absent = [n for n in range(HIGHEST) if twin.body(of, n) is None]
            assert flat(lacks.expired.get(of, [])) == [n for n in absent if twin.gone(of, n)]
            assert flat(lacks.coming.get(of, [])) == [n for n in absent if not twin.gone(of, n)]

    @rule()
    def compact(self) -> None:
        """One more step; once all is known, only what was replaced is left out, if that is sure."""
        known = self.store.retaining()
        if known is None:
            return
        parts = [
            Slice(self.store.get([entry.place])[0], lo, hi)
            for lane in self.store.index.lanes.values()
            for entry, lo, hi in lane.segments(0, HIGHEST)
        ]
        runs = [run for part in parts for run in known.compacted(part)]
        left = [one for run in runs for one in run.publications()]
        for one in (it for part in parts for it in part.publications()):
            last = one.key is None or one == self.twin.retained(one.key)
            assert one in left if last or not known.knows(one.key or b"") else one not in left

    @rule(key=st.sampled_from([None, b"k", b"l", b"none"]))
    def retained(self, key: bytes | None) -> None:
        assert self.store.retained(key) == self.twin.retained(key)

    @rule(limit=st.integers(1, 50))
    def audit(self, limit: int) -> None:
        assert self.store.audit(limit) == 0


class DiskMachine(Machine):
    """The same on disk, with restarts."""

    def make(self) -> Store:
        self._directory = tempfile.TemporaryDirectory()
        self._said: list[str] = []
        self._database = Database(Path(self._directory.name), self._said.append)
        return self._database.topic("news")

    @rule()
    def restart(self) -> None:
        self._database.close()
        self._database = Database(Path(self._directory.name), self._said.append)
        self.store = self._database.topic("news")
        self.store.purge(WINDOWS)
        self.store.show(self.twin.window)
        self.store.purge(self.windows)
        self.keep()

    @rule()
    def commit(self) -> None:
        commit(self.store)

    def teardown(self) -> None:
        super().teardown()
        self._database.close()
        self._directory.cleanup()
        assert self._said == []


TestMemoryStore = Machine.TestCase
TestSqliteStore = DiskMachine.TestCase
EXAMPLES = settings.default.max_examples if settings.default else 100  # many more in a campaign
TestMemoryStore.settings = settings(max_examples=EXAMPLES // 2, stateful_step_count=25)
TestSqliteStore.settings = settings(max_examples=EXAMPLES // 5, stateful_step_count=25)
