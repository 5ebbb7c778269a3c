"""The publications that one subscriber holds of one topic, in the order of retention.

What is held is decided by two logs alone: what the topic's window shows, and what it hides but does
not delete yet. Trie, sketch, quota and digests are derived from them and may be wrong in any way:
they are made anew as soon as they are found to be, and in every audit.
"""

from collections.abc import Iterable, Iterator, Sequence

from planaria.core.state import State, Stateful
from planaria.protocols.publications.publication import (
    KEY_BITS,
    RANK_BITS,
    Publication,
    Rank,
    rank_of,
    sound,
)
from planaria.protocols.publications.sketch import (
    CACHED_CELLS_MAX,
    Array,
    Cells,
    SketchCache,
    id_array,
    tug_of_war,
)
from planaria.protocols.publications.trie import Trie
from planaria.protocols.publications.window import LIMIT_MAX, Quota, Window, kept

ID_BITS = 64  # the id of a publication in sketches: the first half of its key
CACHED_CELLS_MIN = 64  # a cache starts here and doubles as longer sketches are asked for
AUDIT_SLICE = 4  # publications checked per timeout at least, cheap enough for every simulated node
AUDIT_SLICE_MAX = 2048  # at most; so many when something is in doubt
AUDIT_TIMEOUTS = 256  # for a pass over a store of up to half a million
HIDDEN_SLACK = 1024  # publications beyond what the windows may show, before a purge between audits

_NO_DIGEST = (-1, -1, 0)


class StoreState(State):
    """What is held, shown or hidden, and by which windows; all else is derived from it."""

    window: Window
    windows: list[Window]
    version: int
    shown: dict[int, Publication]
    hidden: dict[int, Publication]
    audited: int  # the last rank that the running audit has checked
    audit_due: int


class PublicationStore(Stateful):
    """All publications of a topic that its window shows, and for a while those it showed.

    Hidden ones are not served and not counted in a digest. They come back with the window; only
    `purge` deletes them.
    """

    __slots__ = (
        "_digest",
        "_part",
        "_quota",
        "_sketch",
        "_trie",
        "audit_due",
        "hidden",
        "shown",
        "version",
        "window",
        "windows",
    )

    state_type = StoreState

    def __init__(self, limit: int = LIMIT_MAX) -> None:
        self.window = Window(limit=max(1, min(limit, LIMIT_MAX)))
        self.windows = [self.window]  # what each of them shows is held
        self.audit_due = 0  # publications to be checked soon
        self.version = 0  # changes with every change of what is shown
        self.shown: dict[Rank, Publication] = {}
        self.hidden: dict[Rank, Publication] = {}
        self._trie = Trie(RANK_BITS, self.shown)
        self._quota = Quota(None, self.shown)
        self._sketch: SketchCache | None = None
        self._digest = _NO_DIGEST  # of which version, from which second on, its value
        self._part: tuple[int, int, Trie] | None = None  # the same, of a part of the trie

    def state(self) -> StoreState:
        """What is held, and how far the audit is."""
        logs, audit = (self.shown, self.hidden), (self._trie.cursor, self.audit_due)
        return StoreState(self.window, self.windows, self.version, *logs, *audit)

    def load(self, state: State) -> None:
        """Hold and show what a state says, right or wrong; derive all else from it."""
        assert isinstance(state, StoreState)
        self.window, self.windows, self.version = state.window, state.windows, state.version
        self.shown, self.hidden = state.shown, state.hidden
        self._derive()
        self._trie.cursor, self.audit_due = state.audited, state.audit_due

    # The window

    def show(self, window: Window) -> None:
        """Show what `window` keeps of all that is held, and hide the rest."""
        before, self.window = self.window, window
        if window == before:
            return
        self.version += 1
        if window[1:] == before[1:] and window.lo > before.lo:
            lowest = self._trie.minimum()
            while lowest is not None and lowest < window.lowest:
                self._hide(lowest)
                lowest = self._trie.minimum()
        else:
            self._sort()

    def purge(self, windows: Sequence[Window]) -> None:
        """Delete from now on what neither the window nor one of `windows` would show."""
        if self.windows != [self.window, *windows]:
            self.windows = [self.window, *windows]
            self._purge()

    def _purge(self) -> None:
        if not self.hidden:
            return
        if all(window[1:] == (LIMIT_MAX, None) for window in self.windows):
            lowest = min(window.lowest for window in self.windows)
            keep = {rank for rank in self.hidden if rank >= lowest}
        else:
            held = {**self.hidden, **self.shown}
            keep = {rank for window in self.windows for rank in kept(held, window)}
        room = LIMIT_MAX - len(self.shown)
        ranks = sorted((rank for rank in self.hidden if rank in keep), reverse=True)
        self.hidden = {rank: self.hidden[rank] for rank in ranks[: max(0, room)]}

    # What is held

    def offer(self, publication: Publication, name: bytes) -> bool:
        """Hold what is to be kept; True if it is new here, and so to be delivered, kept or not.

        `name` is the publication's key; the caller has seen that it is sound.
        """
        rank = rank_of(publication, name)
        new = rank not in self.shown and rank not in self.hidden
        self._insert(publication, rank)
        return new and publication.time >= self.window.lo

    def insert(self, publication: Publication) -> bool:
        """Hold and show `publication`; False if it is held already, or not to be kept."""
        return sound(publication) and self._insert(publication, rank_of(publication))

    def _insert(self, publication: Publication, rank: Rank) -> bool:
        for log in (self.shown, self.hidden):
            if rank in log:
                if log[rank] != publication:  # a fault left something else there
                    log[rank] = publication
                    self._derive()
                return False
        if publication.time < self.window.lo:
            return False
        surplus = self._surplus(publication, rank)
        if surplus == rank:
            return False
        self._add(rank, publication)
        if surplus is not None:
            self._hide(surplus)
        return True

    def __contains__(self, key: bytes) -> bool:
        return self.get(key) is not None

    def get(self, key: bytes) -> Publication | None:
        """The publication shown with this key."""
        number, mask = int.from_bytes(key, "big"), (1 << KEY_BITS) - 1
        found = (self.shown[rank] for rank in self.shown if rank & mask == number)
        return next(found, None)

    def __len__(self) -> int:
        return len(self.shown)

    def count(self, lo: int) -> int:
        """How many publications are shown from the second `lo` on."""
        if lo <= self.window.lo:
            return len(self.shown)
        lowest = lo << KEY_BITS
        return sum(rank >= lowest for rank in self.shown)

    def publications(self, lo: int = 0) -> Iterator[Publication]:
        """The publications shown from the second `lo` on, by (time, key)."""
        for rank in sorted(self.shown):
            if rank >= lo << KEY_BITS:
                yield self.shown[rank]

    def keys(self) -> Iterator[bytes]:
        """The keys shown, by (time, key)."""
        for rank in sorted(self.shown):
            yield (rank & (1 << KEY_BITS) - 1).to_bytes(KEY_BITS // 8, "big")

    @property
    def floor(self) -> Rank | None:
        """Below this rank nothing is accepted; None while there is room."""
        return self._trie.minimum() if len(self.shown) >= self.window.limit else None

    # What is derived

    def digest(self, lo: int) -> int:
        """64 bits that are equal in two stores if what they show from the second `lo` on is."""
        if self._digest[:2] != (self.version, lo):
            root = self.trie(lo).root_hash
            self._digest = (self.version, lo, int.from_bytes(root[:8], "big"))
        return self._digest[2] & (1 << 64) - 1  # what is remembered may be damaged

    def trie(self, lo: int) -> Trie:
        """The trie over the ranks shown from the second `lo` on."""
        if lo <= self.window.lo:
            return self._trie
        if self._part is None or self._part[:2] != (self.version, lo):
            self._part = (self.version, lo, self._trie.since(lo << KEY_BITS))
        return self._part[2]

    def at(self, ranks: Iterable[Rank]) -> Iterator[Publication]:
        """The publications shown at these ranks, if they are what they are held as."""
        return (self.shown[rank] for rank in ranks if self._holds(rank))

    def by_ids(
        self, ids: Iterable[int], lo: int, bits: int = ID_BITS
    ) -> tuple[list[Publication], list[int]]:
        """The publications shown from `lo` on whose keys begin with `ids`, and the ids with which
        none begins."""
        wanted, shift, mask = dict.fromkeys(ids), KEY_BITS - bits, (1 << bits) - 1
        lowest = lo << KEY_BITS
        found = [p for p in self.shown if p >> shift & mask in wanted and p >= lowest]
        known = {rank >> shift & mask for rank in found}
        return list(self.at(sorted(found))), [id for id in wanted if id not in known]

    def sketch(self, lo: int, size: int) -> tuple[Array, Cells]:
        """The tug of war and `size` cells over all ids shown from the second `lo` on."""
        whole_sums, whole = self._read_sketch(size)
        cells = Cells(size)
        cells.add(whole)
        if lo <= self.window.lo:
            return whole_sums.copy(), cells
        lowest = lo << KEY_BITS
        older = id_array(_id(rank) for rank in self.shown if rank < lowest)
        cells.fold(older, -1)
        return whole_sums - tug_of_war(older), cells

    def doubt(self) -> None:
        """Something contradicts: make the sketch anew when it is next asked for, audit soon."""
        self._sketch = None
        self.audit_due = len(self.shown)

    def on_timeout(self) -> None:
        """Check the next publications: few, or all soon if something is in doubt."""
        self.audit_due = max(0, min(self.audit_due, len(self.shown)))
        due = max(self.audit_due, len(self.shown) // AUDIT_TIMEOUTS)
        limit = max(AUDIT_SLICE, min(due, AUDIT_SLICE_MAX))
        self.audit_due = max(0, self.audit_due - limit)
        if self.audit(limit):
            self.audit_due = len(self.shown)

    def audit(self, limit: int) -> int:
        """Check the next `limit` publications and all derived from them; returns the repairs."""
        trie = self._trie
        rebuilds = trie.rebuilds
        ranks, done = trie.audit(limit)
        repairs = trie.rebuilds - rebuilds + (trie.entries is not self.shown)
        repairs += sum(not self._holds(rank) for rank in ranks)
        if repairs or (done and self._misplaced()):
            self._sort()
            self.version += 1
        elif done:
            self._sketch, self._quota = None, Quota(self.window.per_publisher, self.shown)
        if done:
            self._purge()
        self._digest, self._part = _NO_DIGEST, None
        return repairs

    def _holds(self, rank: Rank) -> bool:
        publication = self.shown.get(rank)
        return publication is not None and _intact(rank, publication)

    def _misplaced(self) -> bool:
        return self.shown.keys() != set(kept({**self.hidden, **self.shown}, self.window))

    def _sort(self) -> None:
        """Divide anew what is held; what nobody said is dropped: who has what was said pushes it.

        Two logs may hold one rank only by a fault.
        """
        both = {**self.hidden, **self.shown}
        held = {rank: one for rank, one in both.items() if _intact(rank, one)}
        self.shown = {rank: held.pop(rank) for rank in kept(held, self.window)}
        self.hidden = held
        self._derive()

    def _derive(self) -> None:
        self._trie = Trie(RANK_BITS, self.shown)
        self._quota = Quota(self.window.per_publisher, self.shown)
        self._sketch, self._digest, self._part = None, _NO_DIGEST, None

    def _surplus(self, publication: Publication, rank: Rank) -> Rank | None:
        """What has no room beside a new publication: the lowest, perhaps itself."""
        surplus = self._quota.surplus(publication.publisher, rank)
        if surplus is None and self.shown and len(self.shown) >= self.window.limit:
            lowest = self._trie.minimum()
            if lowest not in self.shown:  # only a damaged trie says so
                lowest = min(self.shown)
            surplus = min(rank, lowest)
        return surplus

    def _add(self, rank: Rank, publication: Publication) -> None:
        self.shown[rank] = publication
        self.version += 1
        self._trie.insert(rank)
        self._quota.add(publication.publisher, rank)
        if self._sketch is not None and not self._sketch.add(_id(rank)):
            self._sketch = None

    def _hide(self, rank: Rank) -> None:
        """Show a rank no longer; hold it as long as another window might show it."""
        publication = self.shown.pop(rank, None)
        self.version += 1
        self._trie.remove(rank)
        if publication is None:
            self._sketch = None  # the trie or the quota named a rank that was never here
            return
        self._quota.remove(publication.publisher, rank)
        if self._sketch is not None and not self._sketch.remove(_id(rank)):
            self._sketch = None
        if self._wanted(rank):
            self.hidden[rank] = publication
            if len(self.hidden) > HIDDEN_SLACK + sum(w.limit for w in self.windows):
                self._purge()

    def _wanted(self, rank: Rank) -> bool:
        """Might another window show what this one does not? By its age, or by its limits."""
        if rank < self.window.lowest:
            return any(rank >= other.lowest for other in self.windows)
        return any(other[1:] != self.window[1:] for other in self.windows)

    def _read_sketch(self, size: int) -> tuple[Array, Cells]:
        """The tug of war and at least `size` cells over all ids that are shown."""
        if self._sketch is not None and size <= len(self._sketch):
            read = self._sketch.read()
            if read is not None:
                return read
        ids = id_array(map(_id, self.shown))
        if size > CACHED_CELLS_MAX:
            cells = Cells(size)
            cells.fold(ids, 1)
            return tug_of_war(ids), cells
        cache = SketchCache(ids, max(CACHED_CELLS_MIN, 1 << (size - 1).bit_length()))
        self._sketch = cache
        return cache.sums, cache.cells


def _intact(rank: Rank, publication: Publication) -> bool:
    return sound(publication) and rank_of(publication) == rank


def _id(rank: Rank) -> int:
    return rank >> (KEY_BITS - ID_BITS) & ((1 << ID_BITS) - 1)
