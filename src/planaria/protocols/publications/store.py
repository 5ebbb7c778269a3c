"""The publications that one subscriber holds of one topic, in buckets by epoch.

What is held is decided by the buckets' logs alone. Tries, sketches, sizes and digests are derived
from them and may be wrong in any way: they are made anew as soon as they are found to be.
"""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

from planaria.protocols.publications.publication import EPOCH_MAX, KEY_BITS, Publication, key
from planaria.protocols.publications.sketch import (
    CACHED_CELLS_MAX,
    Array,
    Cells,
    SketchCache,
    id_array,
    tug_of_war,
)
from planaria.protocols.publications.trie import Trie

ID_BITS = 64  # the id of a publication in sketches: the first half of its key
LIMIT_MAX = 1 << 20  # publications of one topic in memory: about 1 GiB at 500 bytes each
CACHED_CELLS_MIN = 64  # a cache starts here and doubles as longer sketches are asked for
AUDIT_BUCKETS_MAX = 16  # so that an audit over many small buckets is bounded as well

NOTHING = int.from_bytes(blake2b(digest_size=8).digest(), "big")  # the digest of an empty store

Place = tuple[int, int]  # (epoch, key): the order in which a full store lets go of publications


class Bucket:
    """The publications of one epoch by key, with what is derived from them."""

    __slots__ = ("log", "sketch", "trie")

    def __init__(self, log: dict[int, Publication]) -> None:
        self.log = log
        self.trie = Trie(KEY_BITS, self.log)
        self.sketch: SketchCache | None = None

    def insert(self, number: int, publication: Publication) -> None:
        """Hold `publication` under its key."""
        self.log[number] = publication
        self.trie.insert(number)
        if self.sketch is not None and not self.sketch.add(number >> (KEY_BITS - ID_BITS)):
            self.sketch = None

    def remove(self, number: int) -> None:
        """Let go of what is held under a key."""
        if self.log.pop(number, None) is None:
            self.sketch = None  # the trie named a key that was never here
        self.trie.remove(number)
        if self.sketch is not None and not self.sketch.remove(number >> (KEY_BITS - ID_BITS)):
            self.sketch = None

    def read_sketch(self, size: int) -> tuple[Array, Cells]:
        """The tug of war and at least `size` cells over the ids held here."""
        if self.sketch is not None and size <= len(self.sketch):
            return self.sketch.read()
        ids = id_array(number >> (KEY_BITS - ID_BITS) for number in self.log)
        if size > CACHED_CELLS_MAX:
            cells = Cells(size)
            cells.fold(ids, 1)
            return tug_of_war(ids), cells
        self.sketch = SketchCache(ids, max(CACHED_CELLS_MIN, 1 << (size - 1).bit_length()))
        return self.sketch.read()

    def audit(self, epoch: int, limit: int) -> tuple[int, int, bool]:
        """Check the next `limit` publications: how many, how many repairs, and was it the end?"""
        rebuilds = self.trie.rebuilds
        numbers, done = self.trie.audit(limit)
        repairs = self.trie.rebuilds - rebuilds
        for number in numbers:
            publication = self.log[number]
            if publication.epoch != epoch or _number(publication) != number:
                self.remove(number)  # nobody said this; whoever has what was said will push it
                repairs += 1
        if done or repairs:
            self.sketch = None
        return len(numbers), repairs, done


class PublicationStore:
    """All publications of a topic whose epochs lie in a window, at most `limit` of them.

    Outside the window nothing is accepted, served or counted in a digest. A full store keeps the
    `limit` largest by (epoch, key), so that two stores that exchange all they hold agree.
    """

    __slots__ = ("_audited", "_buckets", "_digest", "_size", "hi", "limit", "lo", "version")

    def __init__(self, limit: int = LIMIT_MAX) -> None:
        self.limit = max(1, min(limit, LIMIT_MAX))
        self.lo = 0
        self.hi = EPOCH_MAX
        self.version = 0  # changes with every change of what is held or visible
        self._buckets: dict[int, Bucket] = {}
        self._size = 0
        self._digest = (-1, -1, 0)  # of which version, from which epoch on, its value
        self._audited = 0  # the epoch at which the audit goes on

    def __deepcopy__(self, memo: dict[int, Any]) -> "PublicationStore":
        """A store with the same publications; what is derived from them is derived again."""
        copy = PublicationStore(self.limit)
        for epoch, bucket in self._buckets.items():
            copy._buckets[epoch] = Bucket(dict(bucket.log))
        copy.set_window(self.lo, self.hi)
        return copy

    @property
    def empty(self) -> bool:
        """Is nothing held at all, visible or hidden?"""
        return not self._buckets

    def set_window(self, lo: int, hi: int) -> None:
        """Show the epochs from `lo` to `hi` and hide all others, without deleting them."""
        if (lo, hi) != (self.lo, self.hi):
            self.lo, self.hi = lo, hi
            self.version += 1
        self._size = self._count(self.lo)
        self._evict()

    def in_window(self, epoch: int) -> bool:
        """Is `epoch` visible?"""
        return self.lo <= epoch <= self.hi

    def epochs(self, lo: int = 0) -> list[int]:
        """The visible epochs from `lo` on that hold something."""
        if not self._buckets:
            return []
        low = max(lo, self.lo)
        return sorted(e for e, held in self._buckets.items() if low <= e <= self.hi and held.log)

    def hidden(self) -> list[int]:
        """The epochs outside the window that still hold something."""
        return sorted(epoch for epoch in self._buckets if not self.in_window(epoch))

    def remove_bucket(self, epoch: int) -> int:
        """Delete all publications of one epoch; returns how many."""
        bucket = self._buckets.pop(epoch, None)
        if bucket is None:
            return 0
        self.version += 1
        self._size = self._count(self.lo)
        return len(bucket.log)

    def insert(self, publication: Publication) -> bool:
        """Hold `publication`; False if it is held already, or not to be held."""
        epoch, number = publication.epoch, _number(publication)
        if not self.in_window(epoch):
            return False
        bucket = self._buckets.get(epoch)
        if bucket is not None and number in bucket.log:
            bucket.log[number] = publication  # heals what a fault may have left there
            return False
        floor = self.floor
        if floor is not None and (epoch, number) < floor:
            return False
        if bucket is None:
            bucket = self._buckets[epoch] = Bucket({})
        bucket.insert(number, publication)
        self.version += 1
        self._size += 1
        self._evict()
        return True

    def remove(self, place: Place) -> bool:
        """Let go of one publication; was it here?"""
        epoch, number = place
        bucket = self._buckets.get(epoch)
        if bucket is None or number not in bucket.log:
            return False
        bucket.remove(number)
        if not bucket.log:
            del self._buckets[epoch]
        self.version += 1
        self._size = self._count(self.lo)
        return True

    def __contains__(self, key: bytes) -> bool:
        return self.get(key) is not None

    def get(self, key: bytes) -> Publication | None:
        """The visible publication with this key."""
        number = int.from_bytes(key, "big")
        for epoch in self.epochs():
            if number in self._buckets[epoch].log:
                return self._buckets[epoch].log[number]
        return None

    def __len__(self) -> int:
        return self._count(self.lo)

    def count(self, lo: int) -> int:
        """How many visible publications have an epoch of at least `lo`."""
        return self._count(lo)

    def keys(self, lo: int = 0) -> Iterator[bytes]:
        """The visible keys from epoch `lo` on, by (epoch, key)."""
        for epoch in self.epochs(lo):
            for number in sorted(self._buckets[epoch].log):
                yield number.to_bytes(KEY_BITS // 8, "big")

    def publications(self, lo: int = 0) -> Iterator[Publication]:
        """The visible publications from epoch `lo` on, by (epoch, key)."""
        for epoch in self.epochs(lo):
            log = self._buckets[epoch].log
            for number in sorted(log):
                yield log[number]

    @property
    def floor(self) -> Place | None:
        """Below this (epoch, key) nothing is accepted; None while there is room."""
        if self._size < self.limit:
            return None
        self._size = self._count(self.lo)  # never refuse or let go because of a wrong size
        return self._lowest() if self._size >= self.limit else None

    def digest(self, lo: int) -> int:
        """64 bits that are equal in two stores if what they show from epoch `lo` on is equal."""
        if self._digest[:2] == (self.version, lo):
            return self._digest[2]
        value = NOTHING
        if self._buckets:
            state = blake2b(digest_size=8)
            for epoch in self.epochs(lo):
                state.update(epoch.to_bytes(8, "big"))
                state.update(self._buckets[epoch].trie.root_hash)
            value = int.from_bytes(state.digest(), "big")
        self._digest = (self.version, lo, value)
        return value

    def trie(self, epoch: int) -> Trie:
        """The trie over the keys of a visible epoch; without keys for any other."""
        bucket = self._buckets.get(epoch) if self.in_window(epoch) else None
        return Trie(KEY_BITS, {}) if bucket is None else bucket.trie

    def at(self, epoch: int, numbers: Iterable[int]) -> Iterator[Publication]:
        """The publications of a visible epoch with these keys, as integers."""
        if self.in_window(epoch) and epoch in self._buckets:
            log = self._buckets[epoch].log
            yield from (log[number] for number in numbers if number in log)

    def by_ids(
        self, ids: Iterable[int], lo: int, bits: int = ID_BITS
    ) -> tuple[list[Publication], list[int]]:
        """The visible publications from epoch `lo` on whose keys begin with `ids`, and the ids
        with which none begins."""
        found: list[Publication] = []
        unknown: list[int] = []
        buckets = [self._buckets[epoch] for epoch in self.epochs(lo)]
        for id in ids:
            held = len(found)
            for bucket in buckets:
                keys = bucket.trie.keys(1 << bits | id)
                found += [bucket.log[number] for number in keys if number in bucket.log]
            if len(found) == held:
                unknown.append(id)
        return found, unknown

    def sketch(self, lo: int, size: int) -> tuple[Array, Cells]:
        """The tug of war and `size` cells over all visible ids from epoch `lo` on."""
        sums = tug_of_war(id_array(()))
        cells = Cells(size)
        for epoch in self.epochs(lo):
            bucket_sums, bucket_cells = self._buckets[epoch].read_sketch(size)
            sums = sums + bucket_sums
            cells.add(bucket_cells)
        return sums, cells

    def drop_sketches(self) -> None:
        """Make all sketches anew when they are next asked for."""
        for bucket in self._buckets.values():
            bucket.sketch = None

    def audit(self, limit: int) -> int:
        """Check the next `limit` publications and all derived from them; returns the repairs."""
        if not self._buckets:
            self._digest, self._size = (-1, -1, 0), 0
            return 0
        repairs = 0
        for _ in range(AUDIT_BUCKETS_MAX):
            if not self._buckets or limit <= 0:
                break
            following = [epoch for epoch in self._buckets if epoch >= self._audited]
            epoch = min(following or self._buckets)
            bucket = self._buckets[epoch]
            checked, repaired, done = bucket.audit(epoch, limit)
            limit -= checked
            repairs += repaired
            if not bucket.log:
                del self._buckets[epoch]
            self._audited = epoch + 1 if done else epoch
            if done and len(following) <= 1:
                break
        self._digest = (-1, -1, 0)
        self._size = self._count(self.lo)
        self._evict()
        self.version += bool(repairs)
        return repairs

    def _count(self, lo: int) -> int:
        low = max(lo, self.lo)
        return sum(len(b.log) for epoch, b in self._buckets.items() if low <= epoch <= self.hi)

    def _lowest(self) -> Place | None:
        epochs = self.epochs()
        lowest = self._buckets[epochs[0]].trie.minimum() if epochs else None
        return None if lowest is None else (epochs[0], lowest)

    def _evict(self) -> None:
        """Keep the `limit` largest by (epoch, key) of what is visible."""
        for _ in range(self._size - self.limit):
            place = self._lowest()
            if place is None:
                return
            epoch, number = place
            bucket = self._buckets[epoch]
            bucket.remove(number)
            self._size -= 1
            self.version += 1
            if not bucket.log:
                del self._buckets[epoch]


def place_of(publication: Publication) -> Place:
    """Where a publication stands in the order in which a full store lets go."""
    return publication.epoch, _number(publication)


def _number(publication: Publication) -> int:
    return int.from_bytes(key(publication), "big")
