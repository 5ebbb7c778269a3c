"""A search by bursts on disk: what was found so far, so that the same search can go on."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import msgpack

from planaria.core.errors import UsageError

if TYPE_CHECKING:
    from planaria.verify.bursts import Bursts

SAVED = "bursts.msgpack"
SECONDS = 120  # between two times
_Numbers = tuple[int, int, int, int, bool]
_Search = tuple[
    str,
    list[bytes],
    list[tuple[int, ...]],
    list[int],
    list[tuple[int, int, int]],
    list[tuple[int, ...]],
    dict[str, list[int]],
    _Numbers,
]


class Saved:
    """A directory for one search; `key` says which, to know it again."""

    def __init__(
        self, directory: Path, key: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.directory, self.key, self.clock = directory, key, clock
        self.due = clock() + SECONDS

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
        self.directory.mkdir(parents=True, exist_ok=True)
        partial = self.directory / f"{SAVED}.part"
        partial.write_bytes(msgpack.encode(data))
        partial.replace(self.directory / SAVED)
        self.due = self.clock() + SECONDS

    def resume(self, bursts: "Bursts") -> bool:
        """Take up what was saved; False if there is nothing; another search is an error."""
        path = self.directory / SAVED
        if not path.exists():
            return False
        key, own, states, starts, after, sets, faulty, numbers = msgpack.decode(
            path.read_bytes(), type=_Search
        )
        if key != self.key:
            raise UsageError(f"{self.directory} holds another search: {key}")
        cells = bursts.cells
        for data in own:
            cells.space.local(data)
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
