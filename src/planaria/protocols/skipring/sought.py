"""Who is in one topic, as far as supervisors have told a node that is not in it."""

from planaria.core.ids import NodeId
from planaria.core.state import State, Stateful

REFRESH = 8  # timeouts after which members are asked for anew
RETRY = 2  # timeouts without an answer, after which one supervisor more is asked
LOOKED_MAX = 120  # timeouts for which members are asked for after somebody looked
ASKED_MAX = 64  # supervisors of one topic that are asked at a time
NEVER = -1


class SoughtState(State):
    """Some members, their number and if it is certain; when all was told, asked for, looked at."""

    members: list[int]
    count: int
    answered: int
    asked: int
    looked: int
    tries: int
    settled: bool = False


class Sought(Stateful):
    """The members of one topic."""

    __slots__ = ("answered", "asked", "count", "looked", "members", "settled", "tries")
    state_type = SoughtState

    def __init__(self, turn: int = 0) -> None:
        self.members: list[NodeId] = []
        self.count = 0
        self.settled = False  # may there be no more than that?
        self.answered = NEVER  # the turn of the last answer
        self.asked = NEVER
        self.looked = turn
        self.tries = 0  # questions since the last answer

    @property
    def found(self) -> tuple[list[NodeId], int] | None:
        """Some members and their number, if that is known."""
        return None if self.answered == NEVER else (list(self.members), self.count)

    def repair(self, turn: int) -> None:
        """No turn is later than this one."""
        if not NEVER <= self.answered <= turn:
            self.answered = NEVER
        self.asked = NEVER if self.asked < NEVER else min(self.asked, turn)
        self.looked = min(max(self.looked, 0), turn)
        self.tries = min(max(self.tries, 0), ASKED_MAX)

    def fresh(self, turn: int) -> bool:
        """Has somebody looked lately?"""
        return turn - self.looked <= LOOKED_MAX

    def asks(self, turn: int) -> bool:
        """May a question leave in this turn? One is enough."""
        return self.asked != turn

    def due(self, turn: int) -> bool:
        """Is it time to ask, anew or again?"""
        if self.asked == NEVER:
            return True
        if self.tries:
            return turn - self.asked >= RETRY
        return not self.settled or turn - self.asked >= REFRESH

    def ask(self, turn: int) -> int:
        """Note a question; returns how many supervisors to put it to."""
        self.asked = turn
        self.tries = min(self.tries + 1, ASKED_MAX)
        return self.tries

    def learn(
        self, turn: int, members: list[NodeId], count: int, *, settled: bool, first: bool
    ) -> None:
        """Take an answer. 'Nobody' counts if the supervisor that should know says so, or if that
        one has not answered and nobody else knows of members."""
        if not self.tries or (not count and not first and (self.tries < 2 or self.members)):
            return
        self.members, self.count, self.answered = members, max(count, len(members)), turn
        self.settled, self.tries = settled, 0
