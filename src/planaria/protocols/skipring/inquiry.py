"""When to ask which supervisor, and whose answer to obey: pacing and failover of one subscriber."""

from collections.abc import Sequence
from random import Random

from planaria.core.ids import NodeId, is_node_id
from planaria.core.state import State, Stateful
from planaria.protocols.skipring.messages import WINDOW_MAX, SetData

PATIENCE = 24  # timeouts to wait for an answer, which a loaded supervisor may queue
DUE_MAX = 12  # timeouts within which an alarmed one asks, or within its window if that is longer
RETRY = 8  # timeouts after which a routine request without an answer is asked again
ROUNDS_MAX = 2  # rounds of all supervisors without an answer before peers help themselves
VERSION_AGE_MAX = 8  # timeouts for which an older configuration is refused as late


class InquiryState(State):
    """When to ask next, since when there is no answer, whom to ask, and the last one's version."""

    due: int | None
    waiting: int
    contact: int
    version: int
    version_age: int


class Inquiry(Stateful):
    """The alarm of one subscriber, and its dealings with the supervisors of its topic.

    `supervisors` are in the topic's order of preference.
    """

    __slots__ = ("_rng", "contact", "due", "supervisors", "version", "version_age", "waiting")
    state_type = InquiryState

    def __init__(self, supervisors: Sequence[NodeId], rng: Random) -> None:
        self.supervisors, self._rng = tuple(supervisors), rng
        self.due: int | None = 1  # timeouts until I ask; None: nothing is known to be wrong
        self.waiting = 0  # timeouts since my first unanswered request
        self.contact = 0
        self.version = -1
        self.version_age = VERSION_AGE_MAX  # timeouts since my last configuration

    @property
    def supervisor(self) -> NodeId | None:
        """The supervisor to ask; None while none is known, or what is known cannot be one."""
        known = self.supervisors
        asked = known[self.contact % len(known)] if known else -1
        return asked if is_node_id(asked) else None

    @property
    def waiting_max(self) -> int:
        """Timeouts without an answer after which peers must help themselves."""
        return PATIENCE * ROUNDS_MAX * max(1, len(self.supervisors))

    @property
    def hopeless(self) -> bool:
        """Has no supervisor answered for so long that peers must help themselves?"""
        return self.waiting >= self.waiting_max

    def repair(self) -> None:
        """Put every counter back into its range (H1)."""
        if not 0 <= self.contact < len(self.supervisors):
            self.contact = 0
        if self.waiting:
            self.waiting = min(max(self.waiting, 0), self.waiting_max)
        if not 0 <= self.version_age <= self.waiting_max:
            self.version_age = 0
        if self.due is not None and not 0 <= self.due <= WINDOW_MAX:
            self.due = 0 if self.due < 0 else WINDOW_MAX

    def alarm(self, window: int) -> None:
        """Ask at a random one of the next `window` timeouts, unless I will anyway."""
        window = min(max(window, 1), WINDOW_MAX)
        if self.due is None or self.due > window:
            self.due = self._rng.randrange(window) + 1

    def calm(self) -> None:
        """A supervisor answered: nothing is wrong that I know of."""
        self.due, self.waiting = None, 0

    def on_timeout(self, probability: float, window: int) -> bool:
        """Is this the moment to ask? Once per window if alarmed, else with `probability`.

        The second request comes in the second half of the window: the first one is in a queue.
        """
        self.repair()
        if self.waiting:
            self.wait(1)
        else:
            self.age(1)
        if self.due is None and self.waiting >= RETRY:
            # The supervisor itself may be what is wrong. Asked with half of my patience left, it
            # can answer before I move on; few ask so, they need no window to spread over.
            self.alarm(min(window, DUE_MAX - self.waiting))
        if self.due is None:
            asks = probability > 0 and self._rng.random() < probability
        else:
            self.due = min(self.due, max(window, DUE_MAX)) - 1
            asks = self.due <= 0
        if asks:
            if self.hopeless:  # try one after the other, so that the first to come back is found
                self._try_next()
            self.waiting = max(self.waiting, 1)
            again = window // 2 + self._rng.randrange(window - window // 2) + 1
            self.due = None if self.due is None else again
        return asks

    def wait(self, timeouts: int) -> None:
        """No answer for so much longer: after a while, try the next supervisor.

        Nobody has waited for longer than since its last configuration: a corrupt `waiting` would
        make orphans of members whose request is in a supervisor's queue.
        """
        rounds = self.waiting // PATIENCE
        self.age(timeouts)
        self.waiting = min(self.waiting + timeouts, self.version_age)
        if self.waiting // PATIENCE > rounds:
            self._try_next()

    def _try_next(self) -> None:
        self.contact = (self.contact + 1) % max(1, len(self.supervisors))

    def age(self, timeouts: int) -> None:
        """My last configuration is so much older."""
        self.version_age = min(self.version_age + timeouts, self.waiting_max)

    def prefer(self, supervisors: Sequence[NodeId], window: int) -> None:
        """The set of supervisors changed: go on asking the same one, or begin with the first.

        If another one is closer to the topic now, the one that I ask will say so.
        """
        asked, self.supervisors = self.supervisor, tuple(supervisors)
        if asked in self.supervisors:
            self.contact = self.supervisors.index(asked)
            return
        self.contact = 0
        self.waiting = min(self.waiting, 1)
        self.version_age = max(self.version_age, VERSION_AGE_MAX)
        self.alarm(window)

    def move(self, source: NodeId, to: NodeId) -> bool:
        """The supervisor I ask says that one closer to the topic serves it: ask that one."""
        if source != self.supervisor or to not in self.supervisors[: self.contact]:
            return False
        self.contact = self.supervisors.index(to)
        self.waiting = min(self.waiting, 1)  # it has all the time that the other one had
        self.version_age = max(self.version_age, VERSION_AGE_MAX)
        return True

    def heed(self, message: SetData) -> bool:
        """Obey the supervisor I ask, one closer to the topic, or any other once mine was silent for
        all my patience (H3); but no configuration that a newer one has overtaken.

        Two supervisors that both answer must not pass me to and fro, so the closer one decides. A
        word of one farther away is still a reason to ask: mine may be gone. Both the version I
        remember and its age may be wrong, so an age is the longest it counts.
        """
        if message.supervisor not in self.supervisors:
            return False
        rank = self.supervisors.index(message.supervisor)
        if rank > self.contact and self.waiting < PATIENCE:
            self.alarm(message.window)
            return False
        same = rank == self.contact
        if same and self.version_age < VERSION_AGE_MAX and message.version < self.version:
            self.waiting = 0  # overtaken, and still an answer
            return False
        self.contact, self.version, self.version_age = rank, message.version, 0
        return True
