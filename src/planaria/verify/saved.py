"""Searches on disk: what was found so far, so that the same search can go on."""

import time
from collections.abc import Callable
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from msgspec import MsgspecError, msgpack

from planaria.core.codec import Codec, to_wire
from planaria.core.errors import UsageError

if TYPE_CHECKING:
    from planaria.verify.bursts import Bursts
    from planaria.verify.known import Codes
    from planaria.verify.wide import Wide

BURSTS, WIDE = "bursts.msgpack", "wide.arrays"
SECONDS = 120  # between two times
WRONG = "is damaged, or of an older version: remove it to begin anew"
SEAL = blake2b().digest_size  # bytes, at the beginning of a file, that say whether it is whole
_Numbers = tuple[int, int, int, int, bool]
_Bursts = tuple[
    str,
    list[bytes],
    list[tuple[int, ...]],
    list[int],
    list[tuple[int, int, int]],
    list[tuple[int, ...]],
    dict[str, list[int]],
    _Numbers,
]
_Wire = tuple[int | None, int, bytes]
_Cells = list[list[tuple[int, tuple[int, ...]]]]
_Wide = tuple[str, list[bytes], list[_Wire], _Cells, list[int], tuple[int, int, int]]


def write(path: Path, fill: Callable[[IO[bytes]], object]) -> None:
    """Have a file filled, seal it, and put it in its place whole: who is killed leaves the old."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.part")
    with partial.open("w+b") as file:
        file.write(bytes(SEAL))
        fill(file)
        file.seek(SEAL)
        seal = file_digest(file, blake2b).digest()
        file.seek(0)
        file.write(seal)
    partial.replace(path)


def read(path: Path) -> IO[bytes]:
    """A file that was written so, behind its seal. Raises UsageError if it is damaged."""
    file = path.open("rb")
    if file.read(SEAL) != file_digest(file, blake2b).digest():
        file.close()
        raise UsageError(f"{path} {WRONG}")
    file.seek(SEAL)
    return file


def decoded(path: Path, data: bytes | memoryview, kind: Any) -> Any:
    """What a file says. Raises UsageError if it says something else: another version wrote it."""
    try:
        return msgpack.decode(data, type=kind)
    except MsgspecError:
        raise UsageError(f"{path} {WRONG}") from None


class Saved:
    """A directory for one search; `key` says which, to know it again."""

    def __init__(
        self, directory: Path, key: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.directory, self.key, self.clock = directory, key, clock
        self.due = clock() + SECONDS

    def _write(self, name: str, fill: Callable[[IO[bytes]], object]) -> None:
        write(self.directory / name, fill)
        self.due = self.clock() + SECONDS

    def _same(self, key: str) -> None:
        if key != self.key:
            raise UsageError(f"{self.directory} holds another search: {key}")


class SavedBursts(Saved):
    """Of a search by bursts."""

    def keep(self, bursts: "Bursts", *, at_once: bool = False) -> None:
        """Write what was found, if it is time.

        What was heard at once is confirmed before: every burst is whole, here or resumed.
        """
        if not at_once and self.clock() < self.due:
            return
        bursts.passing.confirm()
        space = bursts.cells.space
        states = [bursts.cells.state(it) for it in bursts.codes]
        starts = [bursts.numbers[it] for it in bursts.starts]
        faulty = {kind: sorted(numbers) for kind, numbers in bursts.faulty.items()}
        rest = (bursts.expanded, bursts.transitions, bursts.between, bursts.longest)
        numbers = (*rest, space.coins.thinned)
        sets = bursts.sets.members
        data = (self.key, space.locals, states, starts, bursts.after, sets, faulty, numbers)
        self._write(BURSTS, lambda file: file.write(msgpack.encode(data)))

    def resume(self, bursts: "Bursts") -> bool:
        """Take up what was saved; False if there is nothing; another search is an error."""
        path = self.directory / BURSTS
        if not path.exists():
            return False
        with read(path) as file:
            data: _Bursts = decoded(path, file.read(), _Bursts)
        key, own, states, starts, after, sets, faulty, numbers = data
        self._same(key)
        cells = bursts.cells
        for it in own:
            cells.space.local(it)
        bursts.codes = [cells.code(it) for it in states]
        bursts.numbers = {code: number for number, code in enumerate(bursts.codes)}
        bursts.starts = [bursts.codes[it] for it in starts]
        bursts.after = after
        for members in sets[1:]:
            bursts.sets.of(*members)
        bursts.faulty = {kind: set(found) for kind, found in faulty.items()}
        bursts.expanded, bursts.transitions, bursts.between, bursts.longest, thinned = numbers
        cells.space.coins.thinned = thinned
        return True


class SavedWide(Saved):
    """Of a search of packed states, at the beginning of a level.

    States are numbers of cells, so cells, and what they are made of, are put back in their order.
    What each cell may do is asked again.
    """

    def keep(self, wide: "Wide", level: "Codes", *, at_once: bool = False) -> None:
        """Write what was found and what is next, if it is time."""
        if not at_once and self.clock() < self.due:
            return
        space, runs = wide.cells.space, wide.known.runs
        flying = [(source, target, to_wire(it)) for source, target, it in space.messages]
        numbers = (len(runs), wide.expanded, wide.transitions)
        cells = wide.cells
        data = (self.key, space.locals, flying, cells.cells, cells.fields.sizes, numbers)

        def fill(file: IO[bytes]) -> None:
            np.save(file, np.frombuffer(msgpack.encode(data), dtype=np.uint8))
            for codes in (np.array(wide.starts, dtype=np.uint64), level, *runs):
                np.save(file, codes)

        self._write(WIDE, fill)

    def resume(self, wide: "Wide") -> "Codes | None":
        """Take up what was saved, and say what is next; None if there is nothing to take up."""
        path = self.directory / WIDE
        if not path.exists():
            return None
        with read(path) as file:
            said: _Wide = decoded(path, np.load(file).data, _Wide)
            key, own, flying, cells, sizes, numbers = said
            self._same(key)
            runs, wide.expanded, wide.transitions = numbers
            arrays: list[Codes] = [np.load(file) for _ in range(2 + runs)]
            starts, level, *wide.known.runs = arrays
        space, codec = wide.cells.space, Codec(wide.model.messages)
        for data in own:
            space.local(data)
        for source, target, wire in flying:
            space.message(source, target, codec.decode(wire))
        wide.cells.put_back(cells, sizes)
        wide.starts = starts.tolist()
        return level
