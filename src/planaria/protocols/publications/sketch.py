"""Sketches of sets of 64-bit ids: how far two sets are apart, and which ids make the difference.

Both are linear: the sketch of a union of disjoint sets is the sum, and the difference of two
sketches is the sketch of the difference. A sketch says what to ask for, never what is stored.

- tug of war: 64 sums of random signs; their mean square estimates the size of the difference;
- cells of a rateless invertible Bloom lookup table: a prefix of one endless sequence, of which
  about 1.4 cells per id of the difference give back all of its ids.
"""

from collections.abc import Iterable
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any, TypeAlias

from planaria.core.later import Later

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = Later("numpy")

Array: TypeAlias = "NDArray[Any]"

COUNTERS = 64  # twice as many as 32 cost 32 bytes and save 12 % of all cells
DEVIATION = sqrt(2 / COUNTERS)  # of the estimate, relative
TUG_OF_WAR_BYTES = COUNTERS * 12 // 8  # sums modulo 2^12: enough for differences of 10^5 ids
CELL_BYTES = 13  # 8 of ids, 4 of checks, 1 of count modulo 256
CELLS_MAX = 1 << 16  # 832 KiB, one frame; a larger difference is for the descent
FEW = 16  # ids that are folded in one by one: one takes 42 us instead of 173, 16 take 204 for 253
ROUNDS_MAX = 256  # of decoding; a decodable difference of 10^4 ids takes about 30

_CHECK, _SIGNS, _PLACES = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0x8CB92BA72F3D8DD7
STEP = 0xDA942042E4DD58B5
MASK = 0xFFFFFFFFFFFFFFFF


def sketch_size(estimate: float) -> int:
    """Cells that decode a difference estimated at `estimate` ids in about 3 of 4 cases.

    Asking for more costs two messages, a generous first sketch costs bytes every time: at d = 100
    a larger margin put 4 of 60 exchanges above 10 kB, this one none, with at most 7 messages.
    """
    return ceil(1.40 * estimate * (1 + 0.5 * DEVIATION) + sqrt(estimate) + 6)


def id_array(ids: Iterable[int]) -> Array:
    """The ids as the array that the functions here take."""
    return np.fromiter(ids, dtype=np.uint64)


def tug_of_war(ids: Array) -> Array:
    """For each counter, the sum over all ids of a sign that the id decides."""
    signs = _mix(ids, _SIGNS).astype("<u8").view(np.uint8)
    ones = np.unpackbits(signs.reshape(-1, 8), axis=1).sum(axis=0, dtype=np.int64)
    return np.asarray(2 * ones - len(ids), dtype=np.int64)


def pack_tug_of_war(sums: Array) -> bytes:
    """The sums as they travel: 12 bits each, two in three bytes."""
    low = (sums & 0xFFF).astype("<u4")
    pairs = low[0::2] | low[1::2] << np.uint32(12)
    return bytes(pairs.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :3].tobytes())


def estimate_difference(mine: Array, packed: bytes) -> float | None:
    """About how many ids two sets differ in; None if `packed` is no tug of war."""
    if len(packed) != TUG_OF_WAR_BYTES:
        return None
    triples = np.frombuffer(packed, dtype=np.uint8).reshape(-1, 3).astype(np.int64)
    pairs = triples[:, 0] | triples[:, 1] << 8 | triples[:, 2] << 16
    theirs = np.stack((pairs & 0xFFF, pairs >> 12), axis=1).reshape(-1)
    gaps = ((mine - theirs + 0x800) & 0xFFF) - 0x800  # of the residues, the one nearest to zero
    return float(np.mean(gaps * gaps))


class Cells:
    """The first cells of the endless sequence for one set, or for a difference of two sets."""

    __slots__ = ("checks", "counts", "ids")

    def __init__(self, size: int) -> None:
        self.ids: Array = np.zeros(size, dtype="<u8")
        self.checks: Array = np.zeros(size, dtype="<u4")
        self.counts: Array = np.zeros(size, dtype="u1")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def regular(self) -> bool:
        """Are there as many checks and counts as ids? Memory can hold anything."""
        return len(self.ids) == len(self.checks) == len(self.counts)

    def fold(self, ids: Array, sign: int) -> None:
        """Add (sign 1) or take away (sign -1) all of `ids`."""
        if len(ids) <= FEW:
            self._fold_few(ids, sign)
            return
        step = np.uint8(sign % 256)
        checks = _check(ids)
        state = _mix(ids, _PLACES)
        place = np.zeros(len(ids), dtype=np.int64)
        while len(ids):  # every turn moves every id to a later place, so at most len(self) turns
            np.bitwise_xor.at(self.ids, place, ids)
            np.bitwise_xor.at(self.checks, place, checks)
            np.add.at(self.counts, place, step)
            state = state * np.uint64(STEP)
            jump = np.ceil((place + 1.5) * (4294967296.0 / np.sqrt(state + 1.0) - 1.0))
            following = place + np.maximum(jump, 1.0)
            stay = following < len(self)
            ids, checks, state = ids[stay], checks[stay], state[stay]
            place = following[stay].astype(np.int64)

    def _fold_few(self, ids: Array, sign: int) -> None:
        """The same one by one, without the price of an array operation at every place."""
        size, counts = len(self), self.counts
        states = _mix(ids, _PLACES).tolist()
        for id, check, state in zip(ids, _check(ids), states, strict=True):
            place = 0
            while place < size:
                self.ids[place] ^= id
                self.checks[place] ^= check
                counts[place] = int(counts[place]) + sign & 0xFF
                state = state * STEP & MASK
                jump = ceil((place + 1.5) * (4294967296.0 / sqrt(state + 1.0) - 1.0))
                place += max(1, jump)

    def add(self, other: "Cells") -> None:
        """Add the cells of a disjoint set, cell by cell; `other` is at least as long."""
        self.ids ^= other.ids[: len(self)]
        self.checks ^= other.checks[: len(self)]
        self.counts += other.counts[: len(self)]

    def minus(self, other: "Cells") -> "Cells":
        """The cells of the difference of two sets; both are of one length."""
        difference = Cells(len(self))
        difference.ids = self.ids ^ other.ids
        difference.checks = self.checks ^ other.checks
        difference.counts = self.counts - other.counts
        return difference

    def pack(self, start: int = 0) -> bytes:
        """The cells from `start` on as they travel."""
        parts = (self.ids[start:], self.checks[start:], self.counts[start:])
        return b"".join(part.tobytes() for part in parts)

    def extended(self, packed: bytes) -> "Cells | None":
        """These cells and those in `packed` behind them; None if `packed` holds no cells."""
        size, rest = divmod(len(packed), CELL_BYTES)
        if rest or not size or len(self) + size > CELLS_MAX:
            return None
        longer = Cells(0)
        tail = np.frombuffer(packed, dtype="u1")
        longer.ids = np.concatenate((self.ids, tail[: 8 * size].view("<u8")))
        longer.checks = np.concatenate((self.checks, tail[8 * size : 12 * size].view("<u4")))
        longer.counts = np.concatenate((self.counts, tail[12 * size :]))
        return longer

    def decode(self) -> tuple[list[int], list[int]] | None:
        """The ids only in the first set and those only in the second; None if it cannot be told."""
        left = self.minus(Cells(len(self)))
        found: dict[int, int] = {}
        for _ in range(ROUNDS_MAX):
            ids, signs = left._pure()
            if not len(ids):
                break
            for id, sign in zip(ids.tolist(), signs.tolist(), strict=True):
                if id in found or len(found) == len(self):
                    return None  # no honest peer's cells hold an id twice
                found[id] = sign
            left.fold(ids[signs == 1], -1)
            left.fold(ids[signs != 1], 1)
        if left.ids.any() or left.checks.any() or left.counts.any():
            return None
        return (
            [id for id, sign in found.items() if sign == 1],
            [id for id, sign in found.items() if sign != 1],
        )

    def _pure(self) -> tuple[Array, Array]:
        """The ids that are alone in a cell, each once, and whose they are (1 or 255)."""
        single = np.flatnonzero((self.counts == 1) | (self.counts == 255))
        single = single[_check(self.ids[single]) == self.checks[single]]
        ids, first = np.unique(self.ids[single], return_index=True)
        return ids, self.counts[single][first]


def _mix(ids: Array, salt: int) -> Array:
    """A 64-bit hash of each id (the finalizer of SplitMix64)."""
    mixed = ids + np.uint64(salt)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def _check(ids: Array) -> Array:
    return (_mix(ids, _CHECK) >> np.uint64(32)).astype("<u4")
