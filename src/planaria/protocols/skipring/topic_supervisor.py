"""The supervisor's part for one topic (paper, sections 3.1, 3.3, 4.1; Algorithm 3), amended.

It answers requests and hands out one configuration per timeout. Beyond the paper, silent in
legitimate states: it configures the neighbours that a change touches (S1), never sends more than
a stated number of configurations per timeout, tells its load along (pacing), removes members that
neighbours miss and that do not answer (3.3), compares sums of subtrees (digest), and has everybody
woken when a ring comes back that it does not know (spread).
"""

from planaria.core.ids import NodeId
from planaria.core.node import Send
from planaria.core.state import State, Stateful
from planaria.protocols.skipring.budget import Budget
from planaria.protocols.skipring.database import MEMBERS_MAX, Database, DatabaseState
from planaria.protocols.skipring.labels import length
from planaria.protocols.skipring.messages import (
    WINDOW_MAX,
    GetConfiguration,
    SetData,
    Unsubscribe,
)
from planaria.protocols.skipring.pace import REST_MAX, Pace, PaceState
from planaria.protocols.skipring.sums import children, place_sum

RATE_MIN = 64  # configurations per timeout that even a small topic may use
SIZE_FACTOR_MAX = 2  # claims of askers count up to so many times the members that are recorded
CLAIM_STEPS = 4  # in which the claimed length of labels moves by one bit
CLAIM_MAX = CLAIM_STEPS * WINDOW_MAX
SPREAD_TIMEOUTS = 4  # for which an unknown ring has everybody woken: it takes two to be heard of
DOUBTS_MAX = 8  # members with wrong labels within about two timeouts: no two exchanged make more
SHARES = 8  # of every so many configurations one is for those who are right, two for the wrong
PATIENCE = 10  # timeouts for an accused member to answer: two slow messages and a little
VERSION_MODULUS = 1 << 62  # versions fit the wire; a wrap costs one subscriber a few timeouts
RECOUNT_EVERY = 64  # timeouts between two recomputations of all sums: a corrupt one must not last
SETTLE_TIMEOUTS = 16  # within which whoever lost its supervisor asks: 8 to notice, 8 to be woken
UNHEARD_MAX = 64  # timeouts without a request of label 0, which asks every other time


def rate_of(size: int) -> int:
    """Configurations per timeout for so many members: all of them within about log n timeouts."""
    return max(RATE_MIN, size // max(1, size.bit_length()))


class TopicSupervisorState(State):
    """Database, round robin, queues, suspicions, and the load that is told along."""

    database: DatabaseState
    next: int
    version: int
    calm: int
    requests: int
    requests_before: int
    claimed: int
    spread: int
    doubts: int
    probes: dict[int, bool]
    outbox: dict[int, bool]
    answers: dict[int, bool]
    suspects: dict[int, int]
    unheard: int
    sent: int
    pace: PaceState
    unsettled: int = 0


class TopicSupervisor(Stateful):
    """Database, round robin, outbox and suspicions of one topic."""

    __slots__ = (
        "answers",
        "budget",
        "calm",
        "claimed",
        "database",
        "doubts",
        "id",
        "next",
        "outbox",
        "pace",
        "probes",
        "requests",
        "requests_before",
        "sent",
        "spread",
        "suspects",
        "topic",
        "unheard",
        "unsettled",
        "version",
    )
    state_type = TopicSupervisorState

    def __init__(
        self, topic: str, id: NodeId, budget: Budget | None = None, pace_max: int = 1
    ) -> None:
        self.topic, self.id = topic, id
        self.pace = Pace(pace_max)
        self.budget = budget or Budget()
        self.database = Database()
        self.next = 0
        self.version = 0
        self.calm = 0
        self.requests = 0
        self.requests_before = 0
        self.claimed = 0  # the length of labels that askers claim, in steps
        self.spread = 0  # timeouts left in which everybody is to be woken
        self.doubts = 0  # members that lately had other labels than recorded
        # Whom to configure, and whether to ask for an answer: the accused, those who are wrong, and
        # those who asked and are right.
        self.probes: dict[NodeId, bool] = {}
        self.outbox: dict[NodeId, bool] = {}
        self.answers: dict[NodeId, bool] = {}
        self.suspects: dict[NodeId, int] = {}  # timeouts left to answer
        self.unheard = 0  # timeouts since label 0 asked
        self.sent = 0  # configurations since the last timeout
        self.unsettled = 0  # timeouts left in which members may ask that I should know

    @property
    def size(self) -> int:
        """How many members there may be: those recorded, or more if the askers' labels say so.

        After a wiped database the labels know the size long before the database does. They may be
        corrupt, so they count up to a factor.
        """
        n = max(len(self.database), len(self.outbox))
        bits, steps = divmod(min(max(self.claimed, 0), CLAIM_MAX), CLAIM_STEPS)
        claimed = ((CLAIM_STEPS + steps) << bits) // CLAIM_STEPS
        return max(n, min(SIZE_FACTOR_MAX * n, claimed))

    @property
    def rate(self) -> int:
        """At most so many configurations per timeout."""
        return rate_of(self.size)

    @property
    def queued(self) -> int:
        """How many configurations wait to be sent."""
        return len(self.probes) + len(self.outbox) + len(self.answers)

    @property
    def window(self) -> int:
        """Over how many timeouts those whom a configuration wakes should spread their requests.

        Never over more than log n: were all members to ask, they would ask at the rate.
        """
        load = max(self.requests, self.requests_before) + self.queued
        longest = min(WINDOW_MAX, self.size.bit_length())
        return max(1, min(longest, 1 + 4 * load // self.rate))

    def on_get_configuration(self, message: GetConfiguration) -> list[Send]:
        """SUBSCRIBE and GETCONFIGURATION: record the asker itself (E6), then configure it."""
        asker = message.sender
        self.make_up()
        self.requests += 1
        self._note_claim(message.label)
        self.suspects.pop(asker, None)
        if asker in self.database:
            self._answer(message)
            self._compare_sums(message)
        elif len(self.database) < MEMBERS_MAX:
            self._recognise(message.label)
            if message.label is not None:
                self.unsettle(SETTLE_TIMEOUTS)  # it was a member before: others may have been, too
            self._changed(self.database.insert(asker))
        if self.database.label_of(asker) == 0:
            self.unheard = 0
        for missed in message.missing:
            if missed != asker:
                self._suspect(missed)
        return self.flush()

    def on_unsubscribe(self, message: Unsubscribe) -> list[Send]:
        """UNSUBSCRIBE: forget the leaver and always permit it to go (E7)."""
        leaver = message.sender
        self.make_up()
        self._forget(leaver)
        return [Send(leaver, self._bottom()), *self.flush()]

    def on_link_down(self, peer: NodeId) -> list[Send]:
        """A send to `peer` failed: a suspect need not be waited for, another becomes one."""
        self.make_up()
        if peer in self.suspects:
            self.suspects[peer] = min(self.suspects[peer], 1)
        else:
            self._suspect(peer)
        return self.flush()

    def on_timeout(self) -> list[Send]:
        """TIMEOUT: repair the database, judge suspects, configure the next one in turn."""
        self.make_up()
        self.sent = 0
        self.requests, self.requests_before = 0, self.requests
        self.calm = max(self.calm, 0) + 1
        self.unsettled = min(max(self.unsettled, 1), SETTLE_TIMEOUTS + 1) - 1
        if self.database.repair():
            self.unsettle(SETTLE_TIMEOUTS)
            self._changed([id for id in self.database.entries if id is not None])
        if self.calm % RECOUNT_EVERY == 0:
            self.database.recount()
        self.spread = min(max(self.spread, 1), SPREAD_TIMEOUTS + 1) - 1
        self.doubts = min(max(self.doubts, 0), DOUBTS_MAX) // 2
        self._judge_suspects()
        self._doubt_the_unheard()
        n = len(self.database)
        if self.pace.on_timeout(doubt=self._doubtful) and n:
            self.next = (self.next + 1) % n
            self._configure_owner(self.next)
        sends = self.flush()
        if self.pace.left > 1 and self._content:
            self.pace.lie_down(RECOUNT_EVERY - 1 - self.calm % RECOUNT_EVERY)
        return sends

    def make_up(self) -> None:
        """Let the intervals pass in which this topic rested: nobody asked in them."""
        passed = self.pace.make_up()
        if passed:
            self.sent = self.requests = self.requests_before = 0
            self.calm += passed
            self.unheard += passed

    @property
    def _content(self) -> bool:
        """Is there nothing to do before the next turn, however long that is?"""
        near = UNHEARD_MAX * self.pace.longest - REST_MAX <= self.unheard
        return not (self._doubtful or self.unsettled or near)

    def unsettle(self, timeouts: int) -> None:
        """For so long there may be members that are not recorded."""
        self.unsettled = max(self.unsettled, timeouts)
        self.pace.rest = 0

    @property
    def _doubtful(self) -> bool:
        """Is there a reason to configure somebody in every interval?"""
        return bool(self.suspects or self.queued or self.spread or self.doubts) or self.calm <= 1

    def configuration(self, id: NodeId, *, probe: bool = False) -> SetData:
        """What `id` should know: its label and ring neighbours, or that it is not a member."""
        label = self.database.label_of(id)
        if label is None:
            return self._bottom()
        beside = self.database.neighbours(label)
        pred, succ = beside or (None, None)
        version, window, spread = self.version, self.window, self.spread > 0
        return SetData(self.topic, self.id, version, label, pred, succ, window, probe, spread)

    def _bottom(self) -> SetData:
        version, window = self.version % VERSION_MODULUS, self.window
        return SetData(self.topic, self.id, version, None, None, None, window, False)

    def _note_claim(self, label: int | None) -> None:
        """Follow the length of label that a third of the askers exceed: in a ring, log n."""
        if label is not None:
            claim = CLAIM_STEPS * min(length(label), WINDOW_MAX)
            self.claimed = min(max(self.claimed, 0), CLAIM_MAX)
            self.claimed += 2 if claim > self.claimed else -1 if claim < self.claimed else 0

    def _recognise(self, label: int | None) -> None:
        """One asks that is not recorded: does it come from a ring of which I know less than half?

        Then all of it must ask, so it is told along. One who joins has no label, and whoever was
        removed by mistake had one that is in use again.
        """
        if label is not None and 2 * len(self.database) <= label < MEMBERS_MAX:
            self.spread = SPREAD_TIMEOUTS

    def _answer(self, message: GetConfiguration) -> None:
        """Configure a recorded asker; if it is right already, after those who are not."""
        asker, label = message.sender, self.database.label_of(message.sender)
        beside = None if label is None else self.database.neighbours(label)
        queued = asker in self.probes or asker in self.outbox
        if label is None or message.place != place_sum(label, *(beside or (None, None))):
            if message.label != label and not queued and self.calm >= SPREAD_TIMEOUTS:
                self._doubt()
            self._enqueue(asker)
        elif not queued:
            self.answers[asker] = False

    def _doubt(self) -> None:
        """A member has another label than recorded, and nothing changed lately. Two may have been
        exchanged; when it is many, all must ask."""
        self.doubts = min(max(self.doubts, 0), DOUBTS_MAX) + 1
        if self.doubts > DOUBTS_MAX:
            self.spread = SPREAD_TIMEOUTS

    def _enqueue(self, id: NodeId, *, probe: bool = False) -> None:
        """One entry per id, which keeps its place unless it becomes more urgent."""
        self.answers.pop(id, None)
        if probe:
            self.outbox.pop(id, None)
            self.probes[id] = True
        elif id not in self.probes:
            self.outbox.setdefault(id, False)

    def _next(self) -> tuple[NodeId, bool] | None:
        """Whom to configure next: the accused first, for the dead are in everybody's way, then
        who is wrong, then who is right; but each kind has its share, so nobody waits for ever."""
        turn = self.sent % SHARES
        kept = self.answers if turn == 0 else self.outbox if turn < 3 else self.probes
        for lane in (kept, self.probes, self.outbox, self.answers):
            if lane:
                id = next(iter(lane))
                return id, lane.pop(id)
        return None

    def _configure_owner(self, label: int, *, probe: bool = False) -> None:
        id = self.database.owner(label)
        if id is not None:
            self._enqueue(id, probe=probe)

    def flush(self) -> list[Send]:
        """Send what the rate and the process's budget allow, computed when it is sent."""
        sends: list[Send] = []
        rate = self.rate
        left = self.budget.left(rate)
        while self.sent < rate and len(sends) < left and (found := self._next()):
            id, probe = found
            if id in self.database:
                self.sent += 1
                self.version = (self.version + 1) % VERSION_MODULUS
                sends.append(Send(id, self.configuration(id, probe=probe)))
        self.budget.spent += len(sends)
        if self.pace.rest and not self._content:
            self.pace.rest = 0
        return sends

    def _changed(self, touched: list[NodeId]) -> None:
        """The database changed: configure those it touches (S1), distrust sums for a while."""
        self.calm = 0
        for id in touched:
            self._enqueue(id)

    def _forget(self, id: NodeId) -> None:
        for table in (self.suspects, self.probes, self.outbox, self.answers):
            table.pop(id, None)
        if id in self.database:
            self._changed(self.database.remove(id))

    def _suspect(self, id: NodeId) -> None:
        """Somebody misses `id`: ask it, and give it time to answer (3.3)."""
        if id in self.database and id not in self.suspects:
            self.suspects[id] = PATIENCE
            self._enqueue(id, probe=True)

    def _judge_suspects(self) -> None:
        """Remove who did not answer. Patience does not run while the question is in the queue."""
        for id, patience in list(self.suspects.items()):
            if id in self.probes or self.outbox.get(id):
                continue
            patience = min(patience, PATIENCE) - 1
            if id not in self.database or patience < 0:
                self._forget(id)
                continue
            self.suspects[id] = patience
            if patience == PATIENCE // 2:
                self._enqueue(id, probe=True)

    def _doubt_the_unheard(self) -> None:
        """Label 0 asks every other time; silent for long it is suspected, then twice as many
        whenever the next owner of label 0 does not answer either (H5).

        Without it a database of the dead alone would stay, where nobody tells of failed sends:
        there is no neighbour to miss them.
        """
        unheard_max = UNHEARD_MAX * self.pace.longest
        self.unheard = min(max(self.unheard, 0) + 1, unheard_max + (PATIENCE + 1) * 64)
        rounds, rest = divmod(self.unheard - unheard_max, PATIENCE + 1)
        if rounds >= 0 and not rest:
            for id in self.database.entries[: 1 << rounds]:
                if id is not None:
                    self._suspect(id)

    def _compare_sums(self, message: GetConfiguration) -> None:
        """Walk down to a member that is not what it is recorded as, one level per answer."""
        label = self.database.label_of(message.sender)
        climb = self.database.longest_label() + 6  # the time sums need to get to the top
        if label is None or label != message.label or self.calm < climb:
            return
        for child, seen in zip(children(label), message.children, strict=True):
            recorded = None if child is None else self.database.sum_of(child)
            if child is not None and None not in (recorded, seen) and recorded != seen:
                self._configure_owner(child, probe=True)
