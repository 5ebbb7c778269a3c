"""The one table that forgets: what passes by is remembered for a while, and for no longer.

Entries are kept in generations. After so many timeouts the oldest generation is thrown away and a
new one begins, so whatever a fault puts in is gone after all generations' time, without a clock
and without a timer for each entry. Used for keys in flight, ids against duplicates, hand-offs.
"""

from collections.abc import Iterator
from typing import Generic, TypeVar

from planaria.core.state import State, Stateful

K = TypeVar("K")
V = TypeVar("V")


class ForgetfulState(State, Generic[K, V]):
    """The generations of a table, the youngest first, and the timeouts since the last began.

    An owner's state names the types: `seen: ForgetfulState[bytes, int]`.
    """

    generations: list[dict[K, V]]
    age: int


class Forgetful(Stateful, Generic[K, V]):
    """A table of at most `entries_max` entries that keeps them in `count` generations.

    An entry lives for more than `(count - 1) * timeouts` timeouts and for at most `count *
    timeouts`, however often it is read, unless the owner calls `forget` to make room. A full
    table refuses new entries: whoever forgot an id too early would take it for new.
    """

    __slots__ = ("age", "count", "entries_max", "generations", "timeouts")

    state_type = ForgetfulState

    def __init__(self, entries_max: int, timeouts: int, count: int = 2) -> None:
        self.entries_max, self.timeouts, self.count = entries_max, timeouts, count
        self.generations: list[dict[K, V]] = [{} for _ in range(count)]
        self.age = 0

    def __len__(self) -> int:
        return sum(map(len, self.generations))

    def __bool__(self) -> bool:
        return any(self.generations)

    def __contains__(self, name: K) -> bool:
        for generation in self.generations:  # noqa: SIM110 - any() costs twice, and it is asked often
            if name in generation:
                return True
        return False

    def __iter__(self) -> Iterator[K]:
        """All names, the older ones first."""
        for generation in reversed(self.generations):
            yield from generation

    @property
    def full(self) -> bool:
        """Is there no room for another entry?"""
        return len(self) >= self.entries_max

    def get(self, name: K) -> V | None:
        """The entry of that name, if it is not forgotten."""
        for generation in self.generations:
            if name in generation:
                return generation[name]
        return None

    def setdefault(self, name: K, value: V) -> V | None:
        """The entry of that name, kept from now on if there was none; None if the table is full."""
        generations, size = self.generations, 0
        for generation in generations:
            if name in generation:
                return generation[name]
            size += len(generation)
        if size >= self.entries_max:
            return None
        if len(generations) != self.count:
            self.repair()
            generations = self.generations
        generations[0][name] = value
        return value

    def put(self, name: K, value: V) -> bool:
        """Keep an entry; False, and nothing kept, if the table is full."""
        generations, size = self.generations, 0
        for generation in generations:
            size += len(generation)
        if size >= self.entries_max:
            return False
        if len(generations) != self.count:
            self.repair()
            generations = self.generations
        generations[0][name] = value
        return True

    def pop(self, name: K) -> V | None:
        """Take the entry of that name out."""
        for generation in self.generations:
            if name in generation:
                return generation.pop(name)
        return None

    def forget(self) -> None:
        """Forget the oldest generation and begin a new one."""
        self.repair()
        self.age = 0
        self.generations = [{}, *self.generations[:-1]]

    def on_timeout(self) -> None:
        """Time passed: after `timeouts` of them the oldest generation is forgotten."""
        self.age += 1
        if not 0 <= self.age < self.timeouts:
            self.forget()

    def repair(self) -> None:
        """As many generations as there must be, whatever a fault made of them."""
        if len(self.generations) != self.count:
            padded = [*self.generations, *({} for _ in range(self.count))]
            self.generations = padded[: self.count]
