"""Messages that leave their hearer as it is, such as questions: when they are heard is no matter.

If a node answers a message in the same way and stays as it is, now and whatever else it hears until
nothing is in flight, then hearing it now leads to the same states without messages as hearing it at
any other time: it commutes with everything. So it is heard at once, and no other order is tried.

That it is so is found out afterwards: of every message that was heard at once the answer in all
states that its hearer came to by further messages is compared. And nothing that it yields may have
met its equal in flight, since of two equal messages one is heard.
"""

from planaria.core.errors import UsageError
from planaria.verify.space import TIMEOUT, Raised, Space

Input = tuple[int, tuple[int, ...]]  # a message, and what is in flight to its hearer after it


class Passing:
    """Which messages of a space were heard at once, and whether that was right."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.kinds = () if space.schedule.fifo else space.model.passing
        self.heard: dict[tuple[int, int], set[int]] = {}  # node and message: in which of its states
        self.merged: set[int] = set()  # messages that met their equal in flight

    def pick(self, at: int, own: int, inputs: list[Input]) -> Input | None:
        """One of these that may be heard at once, as far as is known."""
        for input in inputs:
            message = input[0]
            if isinstance(self.space.messages[message][2], self.kinds) and self._idle(
                at, own, message
            ):
                self.heard.setdefault((at, message), set()).add(own)
                return input
        return None

    def _idle(self, at: int, own: int, message: int) -> bool:
        try:
            outcomes = self.space.step(at, own, message)
        except Raised:
            return False
        return len(outcomes) == 1 and outcomes[0][0] == own

    def confirm(self) -> None:
        """Raise UsageError if something was heard at once for which there was a better time."""
        after = self._after()
        for (at, message), owns in self.heard.items():
            ((_, yields),) = self.space.step(at, min(owns), message)
            for own in _closed(owns, after[at]):
                if self.space.step(at, own, message) != ((own, yields),):
                    raise UsageError(f"not the same at any time: {self.space.messages[message]}")
            for it in self.merged.intersection((message, *yields)):
                raise UsageError(f"twice in flight: {self.space.messages[it]}")

    def _after(self) -> list[dict[int, set[int]]]:
        """Of each node where messages lead from each of its states."""
        after: list[dict[int, set[int]]] = [{} for _ in range(self.space.n)]
        for (at, own, input), outcomes in self.space.steps.items():
            if input != TIMEOUT:
                after[at].setdefault(own, set()).update(it for it, _ in outcomes)
        return after


def _closed(states: set[int], after: dict[int, set[int]]) -> set[int]:
    found, fresh = set(states), states
    while fresh:
        fresh = {it for own in fresh for it in after.get(own, ())} - found
        found |= fresh
    return found
