"""The publications that one subscriber holds of one topic, in the order of retention.

What is held is decided by two logs alone: what the topic's window shows, and what it hides but does
not delete yet. Trie, sketch, quota and digests are derived from them and may be wrong in any way:
they are made anew as soon as they are found to be, and in every audit.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from planaria.protocols.publications.publication import (
    KEY_BITS,
    PLACE_BITS,
    Place,
    Publication,
    place_of,
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
HIDDEN_SLACK = 1024  # publications beyond what the windows may show, before a purge between audits

_NO_DIGEST = (-1, -1, 0)


class PublicationStore:
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
        "hidden",
        "shown",
        "version",
        "window",
        "windows",
    )

    def __init__(self, limit: int = LIMIT_MAX) -> None:
        self.window = Window(limit=max(1, min(limit, LIMIT_MAX)))
        self.windows: Sequence[Window] = (self.window,)  # what each of them shows is held
        self.version = 0  # changes with every change of what is shown
        self.shown: dict[Place, Publication] = {}
        self.hidden: dict[Place, Publication] = {}
        self._trie = Trie(PLACE_BITS, self.shown)
        self._quota = Quota(None, self.shown)
        self._sketch: SketchCache | None = None
        self._digest = _NO_DIGEST  # of which version, from which second on, its value
        self._part: tuple[int, int, Trie] | None = None  # the same, of a part of the trie

    def __deepcopy__(self, memo: dict[int, Any]) -> "PublicationStore":
        """A store with the same publications; what is derived from them is derived again."""
        copy = PublicationStore()
        copy.window, copy.windows, copy.version = self.window, self.windows, self.version
        copy.shown, copy.hidden = dict(self.shown), dict(self.hidden)
        copy._derive()
        return copy

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
        if self.windows != (self.window, *windows):
            self.windows = (self.window, *windows)
            self._purge()

    def _purge(self) -> None:
        if not self.hidden:
            return
        if all(window[1:] == (LIMIT_MAX, None) for window in self.windows):
            lowest = min(window.lowest for window in self.windows)
            keep = {place for place in self.hidden if place >= lowest}
        else:
            held = {**self.hidden, **self.shown}
            keep = {place for window in self.windows for place in kept(held, window)}
        room = LIMIT_MAX - len(self.shown)
        places = sorted((place for place in self.hidden if place in keep), reverse=True)
        self.hidden = {place: self.hidden[place] for place in places[: max(0, room)]}

    # What is held

    def insert(self, publication: Publication) -> bool:
        """Hold and show `publication`; False if it is held already, or not to be kept."""
        place = place_of(publication)
        for log in (self.shown, self.hidden):
            if place in log:
                log[place] = publication  # heals what a fault may have left there
                return False
        if not sound(publication) or publication.time < self.window.lo:
            return False
        surplus = self._surplus(publication, place)
        if surplus == place:
            return False
        self._add(place, publication)
        if surplus is not None:
            self._hide(surplus)
        return True

    def load(self, publications: Iterable[Publication]) -> None:
        """Hold publications that were held before, whatever the window says of them now."""
        for publication in publications:
            if len(self.shown) + len(self.hidden) < LIMIT_MAX:
                self.hidden[place_of(publication)] = publication
        self._sort()
        self.version += 1

    def is_new(self, publication: Publication) -> bool:
        """Is this neither held nor expired? Then it is to be delivered, kept or not."""
        place = place_of(publication)
        return (
            sound(publication)
            and publication.time >= self.window.lo
            and place not in self.shown
            and place not in self.hidden
        )

    def __contains__(self, key: bytes) -> bool:
        return self.get(key) is not None

    def get(self, key: bytes) -> Publication | None:
        """The publication shown with this key."""
        number, mask = int.from_bytes(key, "big"), (1 << KEY_BITS) - 1
        found = (self.shown[place] for place in self.shown if place & mask == number)
        return next(found, None)

    def __len__(self) -> int:
        return len(self.shown)

    def count(self, lo: int) -> int:
        """How many publications are shown from the second `lo` on."""
        if lo <= self.window.lo:
            return len(self.shown)
        lowest = lo << KEY_BITS
        return sum(place >= lowest for place in self.shown)

    def publications(self, lo: int = 0) -> Iterator[Publication]:
        """The publications shown from the second `lo` on, by (time, key)."""
        for place in sorted(self.shown):
            if place >= lo << KEY_BITS:
                yield self.shown[place]

    def keys(self) -> Iterator[bytes]:
        """The keys shown, by (time, key)."""
        for place in sorted(self.shown):
            yield (place & (1 << KEY_BITS) - 1).to_bytes(KEY_BITS // 8, "big")

    @property
    def floor(self) -> Place | None:
        """Below this place nothing is accepted; None while there is room."""
        return self._trie.minimum() if len(self.shown) >= self.window.limit else None

    # What is derived

    def digest(self, lo: int) -> int:
        """64 bits that are equal in two stores if what they show from the second `lo` on is."""
        if self._digest[:2] != (self.version, lo):
            root = self.trie(lo).root_hash
            self._digest = (self.version, lo, int.from_bytes(root[:8], "big"))
        return self._digest[2] & (1 << 64) - 1  # what is remembered may be damaged

    def trie(self, lo: int) -> Trie:
        """The trie over the places shown from the second `lo` on."""
        if lo <= self.window.lo:
            return self._trie
        if self._part is None or self._part[:2] != (self.version, lo):
            self._part = (self.version, lo, self._trie.since(lo << KEY_BITS))
        return self._part[2]

    def at(self, places: Iterable[Place]) -> Iterator[Publication]:
        """The publications shown at these places, if they are what they are held as."""
        return (self.shown[place] for place in places if self._holds(place))

    def by_ids(
        self, ids: Iterable[int], lo: int, bits: int = ID_BITS
    ) -> tuple[list[Publication], list[int]]:
        """The publications shown from `lo` on whose keys begin with `ids`, and the ids with which
        none begins."""
        wanted, shift, mask = dict.fromkeys(ids), KEY_BITS - bits, (1 << bits) - 1
        lowest = lo << KEY_BITS
        found = [p for p in self.shown if p >> shift & mask in wanted and p >= lowest]
        known = {place >> shift & mask for place in found}
        return list(self.at(sorted(found))), [id for id in wanted if id not in known]

    def sketch(self, lo: int, size: int) -> tuple[Array, Cells]:
        """The tug of war and `size` cells over all ids shown from the second `lo` on."""
        whole_sums, whole = self._read_sketch(size)
        cells = Cells(size)
        cells.add(whole)
        if lo <= self.window.lo:
            return whole_sums.copy(), cells
        lowest = lo << KEY_BITS
        older = id_array(_id(place) for place in self.shown if place < lowest)
        cells.fold(older, -1)
        return whole_sums - tug_of_war(older), cells

    def drop_sketches(self) -> None:
        """Make the sketch anew when it is next asked for."""
        self._sketch = None

    def audit(self, limit: int) -> int:
        """Check the next `limit` publications and all derived from them; returns the repairs."""
        trie = self._trie
        rebuilds = trie.rebuilds
        places, done = trie.audit(limit)
        repairs = trie.rebuilds - rebuilds + (trie.entries is not self.shown)
        repairs += sum(not self._holds(place) for place in places)
        if repairs or (done and self._misplaced()):
            self._sort()
            self.version += 1
        elif done:
            self._sketch, self._quota = None, Quota(self.window.per_publisher, self.shown)
        if done:
            self._purge()
        self._digest, self._part = _NO_DIGEST, None
        return repairs

    def _holds(self, place: Place) -> bool:
        publication = self.shown.get(place)
        return publication is not None and _intact(place, publication)

    def _misplaced(self) -> bool:
        return self.shown.keys() != set(kept({**self.hidden, **self.shown}, self.window))

    def _sort(self) -> None:
        """Divide anew what is held; what nobody said is dropped: who has what was said pushes it.

        Two logs may hold one place only by a fault.
        """
        both = {**self.hidden, **self.shown}
        held = {place: one for place, one in both.items() if _intact(place, one)}
        self.shown = {place: held.pop(place) for place in kept(held, self.window)}
        self.hidden = held
        self._derive()

    def _derive(self) -> None:
        self._trie = Trie(PLACE_BITS, self.shown)
        self._quota = Quota(self.window.per_publisher, self.shown)
        self._sketch, self._digest, self._part = None, _NO_DIGEST, None

    def _surplus(self, publication: Publication, place: Place) -> Place | None:
        """What has no room beside a new publication: the lowest, perhaps itself."""
        surplus = self._quota.surplus(publication.publisher, place)
        if surplus is None and self.shown and len(self.shown) >= self.window.limit:
            lowest = self._trie.minimum()
            if lowest not in self.shown:  # only a damaged trie says so
                lowest = min(self.shown)
            surplus = min(place, lowest)
        return surplus

    def _add(self, place: Place, publication: Publication) -> None:
        self.shown[place] = publication
        self.version += 1
        self._trie.insert(place)
        self._quota.add(publication.publisher, place)
        if self._sketch is not None and not self._sketch.add(_id(place)):
            self._sketch = None

    def _hide(self, place: Place) -> None:
        """Show a place no longer; hold it as long as another window might show it."""
        publication = self.shown.pop(place, None)
        self.version += 1
        self._trie.remove(place)
        if publication is None:
            self._sketch = None  # the trie or the quota named a place that was never here
            return
        self._quota.remove(publication.publisher, place)
        if self._sketch is not None and not self._sketch.remove(_id(place)):
            self._sketch = None
        if self._wanted(place):
            self.hidden[place] = publication
            if len(self.hidden) > HIDDEN_SLACK + sum(w.limit for w in self.windows):
                self._purge()

    def _wanted(self, place: Place) -> bool:
        """Might another window show what this one does not? By its age, or by its limits."""
        if place < self.window.lowest:
            return any(place >= other.lowest for other in self.windows)
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


def _intact(place: Place, publication: Publication) -> bool:
    return sound(publication) and place_of(publication) == place


def _id(place: Place) -> int:
    return place >> (KEY_BITS - ID_BITS) & ((1 << ID_BITS) - 1)
