"""Which records a store holds, shows and hides: everything but their bytes.

What is shown is decided by the window over the order of retention; lanes, sums and quotas are
derived from it.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence

from planaria.core.ids import NodeId
from planaria.records.lanes import Drops, Entry, Lane
from planaria.records.record import RECORD_KEY_BITS, Place, Stream
from planaria.records.sums import Sums, compared
from planaria.records.window import LIMIT_MAX, Window, kept

UNBOUNDED = Window()
HIDDEN_SLACK = 1024  # records beyond what the windows may show, before a purge


class Index:
    """The entries of all records held, by place and by stream.

    `erased` collects what is no longer held, for the store to delete, and `unshown` the places of
    all that is no longer shown.
    """

    __slots__ = (
        "bytes", "capped", "erased", "given", "hidden", "lanes", "names", "order", "publications",
        "quotas", "shown", "sums", "unshown", "window", "windows",
    )  # fmt: skip

    def __init__(self) -> None:
        self.window = Window()
        self.windows: Sequence[Window] = (self.window,)  # what each of them shows is held
        # Both again: a fault changes one of two.
        self.given: tuple[Window, Sequence[Window]] = (self.window, self.windows)
        self.hidden: dict[Place, Entry] = {}
        self.lanes: dict[Stream, Lane] = {}
        self.names: list[Stream] = []  # of the lanes, sorted
        self.erased: list[Entry] = []
        self.unshown: list[Place] = []
        self._clear()

    def _clear(self) -> None:
        self.shown: dict[Place, Entry] = {}
        self.order: list[Place] = []  # of what is shown
        self.publications = 0
        self.bytes = 0
        self.sums = Sums()
        self.quotas: dict[NodeId, tuple[list[Place], int]] = {}  # only under a quota
        self.capped = 0  # publications, of each publisher at most its quota

    def __contains__(self, place: Place) -> bool:
        return place in self.shown or place in self.hidden

    def has(self, entry: Entry) -> bool:
        """Is it this very entry that is held at its place?"""
        return (self.shown.get(entry.place) or self.hidden.get(entry.place)) is entry

    @property
    def bounded(self) -> bool:
        """Is something dropped in this topic in the course of time?"""
        return any(window != Window() for window in (self.window, *self.windows))

    @property
    def sound(self) -> bool:
        """Are the windows those that were given?"""
        return self.given == (self.window, self.windows)

    def judge_by(self, window: Window, windows: Sequence[Window]) -> None:
        """Take windows, without looking yet at what they show."""
        self.window, self.windows = window, tuple(windows)
        self.given = (self.window, self.windows)

    def doubt(self) -> None:
        """Show all until a window is given, if a fault changed one: what it drops, readers pass."""
        if not self.sound:
            self.judge_by(Window(), (Window(),))

    def lane(self, stream: Stream) -> Lane:
        """The lane of a stream, made if it is new."""
        lane = self.lanes.get(stream)
        if lane is None:
            lane = self.lanes[stream] = Lane(stream)
            insort(self.names, stream)
        return lane

    def add(self, entry: Entry, lane: Lane) -> bool:
        """Hold a record of `lane` that is not held; False if the window has no room for it.

        What has no room beside it is hidden or erased.
        """
        place, order, count = entry.place, self.order, entry.end - entry.first
        bounded = self.window != UNBOUNDED
        if bounded:
            self.doubt()
            if self.window.lo and place < self.window.lowest:
                lane.erase(entry, aged=True)
                return False
        self.shown[place] = entry
        if order and place < order[-1]:
            insort(order, place)
        else:
            order.append(place)
        self.publications += count
        self.bytes += entry.size
        self.sums.add(place, 1)
        lane.show(entry)
        if not bounded:
            self.capped += count
            return True
        window = self.window
        if window.per_publisher is None:
            self.capped += count
        else:
            self._count(entry, 1)
        if window.limit == LIMIT_MAX and window.per_publisher is None:
            return True  # whatever a damaged count says
        for surplus in self.surplus(entry.publisher):
            self._unshow(surplus)
            if surplus is entry:
                lane.erase(entry, aged=False)
                return False
            self._drop(surplus)
        return True

    def load(self, entries: Sequence[tuple[Entry, int]]) -> None:
        """Hold records that were held before, each with its low, whatever the window says."""
        for entry, _ in entries:
            entry.stream = self.lane(entry.stream).stream
            self.hidden[entry.place] = entry
        self.sort()
        for entry, low in entries:
            if low > 0:
                self.lane(entry.stream).vouch(low)

    def discard(self, entry: Entry) -> None:
        """Hold a record no longer whose bytes are lost: its numbers may come again."""
        if self.hidden.pop(entry.place, None) is None and entry.place in self.shown:
            self._unshow(entry)

    def show(self, window: Window) -> None:
        """Show what `window` keeps of all that is held, and hide the rest."""
        self.doubt()
        before = self.window
        if window == before:
            return
        aged = window[1:] == before[1:] and window.lo > before.lo
        if not aged:
            self._check()
        self.judge_by(window, self.windows)
        if aged:
            while self.order and self.order[0] < window.lowest:
                lowest = self.shown[self.order[0]]
                self._unshow(lowest)
                self._drop(lowest)
        else:
            self.sort()

    def purge(self, windows: Sequence[Window]) -> None:
        """Erase from now on what neither the window nor one of `windows` would show."""
        self.doubt()
        if self.windows != (self.window, *windows):
            self.judge_by(self.window, (self.window, *windows))
            self._purge()

    def _check(self) -> None:
        """Raise ValueError if an entry contradicts what was derived of it when it came.

        Derived anew that would be believed: of one that a fault made older or larger readers would
        pass numbers that may still come.
        """
        for place, entry in self.shown.items():
            if place != entry.place or not self.lane(entry.stream).covers(entry):
                raise ValueError("an entry has numbers that its stream does not have here")
        for place, entry in self.hidden.items():
            self._check_hidden(place, entry)

    def _check_hidden(self, place: Place, entry: Entry) -> None:
        if place != entry.place or not self.lane(entry.stream).hides(entry):
            raise ValueError("what is hidden of a stream was changed by a fault")

    def sort(self) -> None:
        """Divide anew all that is held."""
        self.doubt()
        held = {**self.hidden, **self.shown}
        self._clear()
        self.names = sorted(self.lanes)
        for stream, lane in self.lanes.items():
            lane.stream = stream
            lane.clear()
        self.order = sorted(kept(held.values(), self.window))
        for place in self.order:
            entry = self.shown[place] = held.pop(place)
            self.publications += entry.count
            self.bytes += entry.size
            self.sums.add(place, 1)
            self._count(entry, 1)
            self.lane(entry.stream).entries.append(entry)
        for lane in self.lanes.values():
            lane.derive()
            lane.recall(bounded=self.bounded)
        self.hidden = held
        self._note_hidden()
        for stream in [name for name in self.names if self.lanes[name].empty]:
            self.forget(stream)

    def between(self, lo: int, cut: int) -> list[Place]:
        """The places shown from the second `lo` on that a digest with this cut covers."""
        start = bisect_left(self.order, lo << RECORD_KEY_BITS)
        return [p for p in self.order[start:] if compared(p >> RECORD_KEY_BITS, cut)]

    def last(self) -> Entry | None:
        """The entry with the last publication: by time, then by stream and number."""
        if not self.order:
            return None
        start = bisect_left(self.order, self.order[-1] >> RECORD_KEY_BITS << RECORD_KEY_BITS)
        newest = [self.shown[place] for place in self.order[start:]]
        return max(newest, key=lambda entry: (entry.stream, entry.end))

    def holds(self, stream: Stream) -> bool:
        """Is a record of this stream held, shown or hidden?"""
        lane = self.lanes.get(stream)
        return lane is not None and bool(lane.entries or lane.hid.firm or lane.hid.last)

    def forget(self, stream: Stream) -> None:
        """Forget a stream of which no record is held."""
        if self.lanes.pop(stream, None) is not None:
            del self.names[bisect_left(self.names, stream)]

    def drop(self, stream: Stream) -> None:
        """Hold nothing of a stream any more, and forget that there was one."""
        lane = self.lanes.get(stream)
        for entry in list(lane.entries) if lane is not None else ():
            self.discard(entry)
            self.erased.append(entry)
        self.forget(stream)

    def refuse(self, places: Sequence[Place]) -> None:
        """Hold these no longer, whatever the window says."""
        for place in places:
            entry = self.shown.get(place) or self.hidden.get(place)
            if entry is not None:
                self.discard(entry)
                self.erased.append(entry)

    def _unshow(self, entry: Entry) -> None:
        if not self.lane(entry.stream).covers(entry):
            raise ValueError("an entry has numbers that its stream does not have here")
        del self.shown[entry.place]
        self.unshown.append(entry.place)
        del self.order[bisect_left(self.order, entry.place)]
        self.publications -= entry.count
        self.bytes -= entry.size
        self.sums.add(entry.place, -1)
        self.lane(entry.stream).unshow(entry)
        self._count(entry, -1)

    def _count(self, entry: Entry, sign: int) -> None:
        if self.window.per_publisher is None:
            self.capped += sign * entry.count
            return
        places, sum = self.quotas.get(entry.publisher, ([], 0))
        if sign > 0:
            insort(places, entry.place)
        else:
            del places[bisect_left(places, entry.place)]
        quota, after = self.window.quota, sum + sign * entry.count
        self.capped += min(quota, after) - min(quota, sum)
        self.quotas[entry.publisher] = (places, after)
        if not places:
            del self.quotas[entry.publisher]

    def surplus(self, publisher: NodeId) -> Iterator[Entry]:
        """What has no room any more, the lowest first; to be taken out before the next."""
        window = self.window
        if window.per_publisher is None and self.capped != self.publications:
            raise ValueError("the counts of an index differ: by one of them records would be lost")
        while window.per_publisher is not None:
            places, sum = self.quotas.get(publisher, ([], 0))
            if not places or sum - self.shown[places[0]].count < window.quota:
                break
            yield self.shown[places[0]]
        while self.order and self.capped >= window.limit:
            lowest = self.shown[self.order[0]]
            above = self.capped - lowest.count
            if window.per_publisher is not None:
                sum = self.quotas[lowest.publisher][1]
                cap = min(window.quota, sum) - min(window.quota, sum - lowest.count)
                above = self.capped - cap
            if above < window.limit:
                break
            yield lowest

    def _drop(self, entry: Entry) -> None:
        """A record out of the window: hidden if another window might show it, else erased."""
        lane, aged = self.lane(entry.stream), entry.place < self.window.lowest
        if self._wanted(entry.place):
            if not lane.hid.intact:
                raise ValueError("what is hidden of a stream was changed by a fault")
            lane.hid.drop(entry, aged=aged)
            self.hidden[entry.place] = entry
            if len(self.hidden) > HIDDEN_SLACK + sum(min(w.limit, LIMIT_MAX) for w in self.windows):
                self._purge()
        else:
            lane.erase(entry, aged=aged)
            self.erased.append(entry)

    def _wanted(self, place: Place) -> bool:
        """Might another window show what this one does not? By its age, or by its limits."""
        if place < self.window.lowest:
            return any(place >= other.lowest for other in self.windows)
        return any(other[1:] != self.window[1:] for other in self.windows)

    def _purge(self) -> None:
        if not self.hidden:
            return
        if all(window[1:] == (LIMIT_MAX, None) for window in self.windows):
            lowest = min(window.lowest for window in self.windows)
            keep = {place for place in self.hidden if place >= lowest}
        else:
            held = [*self.hidden.values(), *self.shown.values()]
            keep = {place for window in self.windows for place in kept(held, window)}
        for place in sorted(place for place in self.hidden if place not in keep):
            entry = self.hidden[place]
            self._check_hidden(place, entry)
            del self.hidden[place]
            self.lane(entry.stream).erase(entry, aged=place < self.window.lowest)
            self.erased.append(entry)
        self._note_hidden()

    def _note_hidden(self) -> None:
        for lane in self.lanes.values():
            lane.hid = Drops()
        for place in sorted(self.hidden):
            entry = self.hidden[place]
            self.lane(entry.stream).hid.drop(entry, aged=place < self.window.lowest)
