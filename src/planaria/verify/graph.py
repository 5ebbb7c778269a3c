"""The states found so far and the steps between them, as flat arrays; can be saved and resumed."""

from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from msgspec import Struct, msgpack

from planaria.core.codec import Codec, to_wire
from planaria.core.errors import UsageError
from planaria.verify.saved import read, write
from planaria.verify.space import Raised, Space, State

SAVED = "search.msgpack"
NOBODY = -1
Part = tuple[int, int]  # of the first states: from this one to before that one
EVERY = 2_000  # states between two looks at the clock


class Trouble(Struct, frozen=True):
    """A step that raised, or broke what holds in every state."""

    state: int
    action: int
    detail: str


class Graph:
    """Breadth-first: states in the order they were found, each with its steps once expanded."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.states: list[State] = []
        self.number_of: dict[State, int] = {}
        self.parents, self.ways = array("q"), array("q")  # whence, by which action
        self.edges, self.offsets = array("q"), array("q", [0])
        self.cuts = bytearray()  # of expanded states: how many steps were left out for want of room
        self.transitions = 0
        self.starts = 0
        self.troubles: list[Trouble] = []

    def __len__(self) -> int:
        return len(self.states)

    @property
    def expanded(self) -> int:
        """How many states have their steps."""
        return len(self.offsets) - 1

    @property
    def complete(self) -> bool:
        """Is every state that was found expanded?"""
        return self.expanded == len(self.states)

    def add(self, state: State, parent: int = NOBODY, way: int = NOBODY) -> int:
        """The number of a state."""
        found = self.number_of.get(state)
        if found is None:
            found = self.number_of[state] = len(self.states)
            self.states.append(state)
            self.parents.append(parent)
            self.ways.append(way)
        return found

    def begin(self, part: Part | None = None) -> None:
        """Put in every first state of the model, or those of a part: from this one to before that.

        All that is reached from a first state belongs to its part, so whatever a part says of its
        states is true of the whole.
        """
        for first in islice(self.space.model.firsts(), *(part or (None,))):
            self.starts += 1
            self.add(self.space.first(first))

    def explore(self, most: int, tick: Callable[["Graph"], bool] = lambda _: True) -> None:
        """Expand states until there are none, or `most` are, or `tick` says no."""
        while self.expanded < min(most, len(self.states)):
            self._expand(self.expanded)
            if self.expanded % EVERY == 0 and not tick(self):
                return

    def _expand(self, number: int) -> None:
        edges, cut = self.edges, self.space.cut
        try:
            for action, reached in self.space.after(self.states[number]):
                targets = [self.add(state, number, action) for state in reached]
                edges.append(action)
                edges.append(len(targets))
                edges.extend(targets)
                self.transitions += len(targets)
        except Raised as raised:
            self.troubles.append(Trouble(number, raised.action, str(raised)))
        self.offsets.append(len(edges))
        self.cuts.append(self.space.cut - cut)

    def actions(self, number: int) -> Iterator[tuple[int, Sequence[int]]]:
        """The actions of an expanded state, each with its outcomes."""
        edges, at, end = self.edges, self.offsets[number], self.offsets[number + 1]
        while at < end:
            width = edges[at + 1]
            yield edges[at], edges[at + 2 : at + 2 + width]
            at += 2 + width

    def path(self, number: int) -> list[tuple[int, int]]:
        """From a first state to this one: pairs of action and state, the first without action."""
        found = [(NOBODY, number)]
        while self.parents[number] != NOBODY:
            found[-1] = (self.ways[number], number)
            number = self.parents[number]
            found.append((NOBODY, number))
        return found[::-1]

    # To disk and back

    def save(self, directory: Path, key: str) -> None:
        """Write all that was found, so that the same search can be resumed."""
        space = self.space
        flying = [(source, target, to_wire(it)) for source, target, it in space.messages]
        arrays = [it.tobytes() for it in (self.parents, self.ways, self.edges, self.offsets)]
        arrays.append(bytes(self.cuts))
        rest = (self.transitions, self.starts, space.cut, space.coins.thinned, self.troubles)
        data = msgpack.encode((key, space.locals, flying, self.states, arrays, rest))
        write(directory / SAVED, lambda file: file.write(data))

    def resume(self, directory: Path, key: str) -> bool:
        """Take up a search that was saved; False if there is none; another one is an error."""
        if not (directory / SAVED).exists():
            return False
        with read(directory / SAVED) as file:
            data = msgpack.decode(file.read(), type=_Saved)
        if data[0] != key:
            raise UsageError(f"{directory} holds another search: {data[0]}")
        space, codec = self.space, Codec(self.space.model.messages)
        for own in data[1]:
            space.local(own)
        for source, target, wire in data[2]:
            space.message(source, target, codec.decode(wire))
        self.states = data[3]
        self.number_of = {state: number for number, state in enumerate(self.states)}
        for it, saved in zip(
            (self.parents, self.ways, self.edges, self.offsets), data[4], strict=False
        ):
            del it[:]
            it.frombytes(saved)
        self.cuts = bytearray(data[4][-1])
        self.transitions, self.starts, space.cut, space.coins.thinned, self.troubles = data[5]
        return True


_Wire = tuple[int | None, int, bytes]
_Rest = tuple[int, int, int, bool, list[Trouble]]
_Saved = tuple[str, list[bytes], list[_Wire], list[tuple[int, ...]], list[bytes], _Rest]
