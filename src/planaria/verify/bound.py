"""How large a space can be at most: what each node and its channel may hold, whoever else does."""

from collections.abc import Iterator
from math import log10

from msgspec import Struct

from planaria.core.errors import UsageError
from planaria.verify.model import Model, constants
from planaria.verify.space import AGES, TIMEOUT, Raised, Schedule, Space


class Bound(Struct, frozen=True):
    """Every state of each node and every message that there may be, each with every other."""

    locals: list[int]  # states of each node
    messages: int
    rounds: int  # choices of who has had its timeout

    @property
    def digits(self) -> float:
        """The power of ten that the product of all is."""
        return sum(map(log10, self.locals)) + self.messages * log10(2) + log10(self.rounds)


def bound(model: Model, schedule: Schedule, most: int) -> Bound:
    """No more states than these are reached while all is heard before the next timeout.

    The least sets that hold the starts and what any state of a node in them does at a timeout or
    at any message in them, also if the two never meet. The channel is a set: each message is in it
    or is not. Raises UsageError if more than `most` steps must be taken for that.
    """
    with constants(model.constants):
        space = Space(model, schedule)
        if schedule.channel or schedule.fifo or space.shifts:
            raise UsageError(
                "no bound where the channel keeps more, or states are counted from elsewhere"
            )
        owns: list[set[int]] = [set() for _ in range(space.n)]
        inputs: list[set[int]] = [{TIMEOUT} for _ in range(space.n)]
        for first in model.firsts():
            state = space.first(first)
            for at, mine in enumerate(owns):
                mine.add(state[at])
            for flying in state[space.head :]:
                inputs[space.targets[flying // AGES]].add(flying // AGES)
        while fresh := list(_untaken(space, owns, inputs)):
            for step in fresh:
                _take(space, owns, inputs, *step)
                if len(space.steps) > most:
                    raise UsageError(f"more than {most:,} steps of nodes by themselves")
        messages = sum(len(it) - 1 for it in inputs)
        rounds = 2**space.n - 1 if schedule.delay else 1
        return Bound([len(it) for it in owns], messages, rounds)


def _untaken(
    space: Space, owns: list[set[int]], inputs: list[set[int]]
) -> Iterator[tuple[int, int, int]]:
    """Steps of a node in one of its states at one of its inputs that were not taken."""
    for at, (mine, heard) in enumerate(zip(owns, inputs, strict=True)):
        steps = ((at, own, input) for own in mine for input in heard)
        yield from (it for it in steps if it not in space.steps)


def _take(
    space: Space, owns: list[set[int]], inputs: list[set[int]], at: int, own: int, input: int
) -> None:
    """Take a step, and put in what comes of it; of one that raises nothing does."""
    try:
        outcomes = space.step(at, own, input)
    except Raised:
        outcomes = space.steps[at, own, input] = ()
    for after, sends in outcomes:
        owns[at].add(after)
        for it in sends:
            inputs[space.targets[it]].add(it)
