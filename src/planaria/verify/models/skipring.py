"""The supervised skip ring: real peers and supervisors of one topic, without publications."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from planaria.core.ids import NodeId
from planaria.core.node import Node, Subscribe
from planaria.core.overlay import Violation
from planaria.core.state import State, encode_state
from planaria.protocols.skipring.database import Database
from planaria.protocols.skipring.inquiry import InquiryState
from planaria.protocols.skipring.legitimacy import TopicJudge, topic_violations
from planaria.protocols.skipring.membership import MembershipState
from planaria.protocols.skipring.messages import Ref
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.protocols.skipring.peer import Peer, PeerState
from planaria.protocols.skipring.placement import preference
from planaria.protocols.skipring.supervisor import Supervisor, SupervisorState
from planaria.protocols.skipring.topic_supervisor import (
    SHARES,
    TopicSupervisor,
    TopicSupervisorState,
)
from planaria.verify.coins import Coins
from planaria.verify.model import Constants, Flying, Model

TOPIC = "t"
HERE = "planaria.protocols.skipring"
DEAD = 7
# Small, and in the order of the real ones: who has asked asks again, a window later, within half
# its patience, and who gave up a dead supervisor is heard before label 0 is doubted.
ANSWER = 4  # patience of a supervisor with a suspect
UNHEARD = 5
SILENT = 2
VERSIONS = (1, 99)  # one that there is, and one beyond all that there are
PATIENCES = ("inquiry:PATIENCE", "subscriber:PATIENCE", "legitimacy:PATIENCE")
SMALL = {
    "inquiry:ROUNDS_MAX": 1,
    "inquiry:RETRY": 2,
    "inquiry:DUE_MAX": 2,
    "subscriber:DUE_MAX": 2,
    "inquiry:VERSION_AGE_MAX": 2,
    "subscriber:SILENCE_MAX": SILENT,
    "subscriber:SUM_AGE_MAX": 2,
    "place:SUM_AGE_MAX": 2,
    "topic_supervisor:PATIENCE": ANSWER,
    "legitimacy:ANSWER_PATIENCE": ANSWER,
    "topic_supervisor:VERSION_MODULUS": 4,
    "topic_supervisor:SPREAD_TIMEOUTS": 1,
    "topic_supervisor:RECOUNT_EVERY": 1,
    "topic_supervisor:UNHEARD_MAX": UNHEARD,
    "supervisor:MOVED_AGE_MAX": 1,
}
CALM = 9  # timeouts after which all rules take a database for calm
FOREVER = 1 << 30


class SkipRingModel(Model):
    """n peers of one topic, with one supervisor, two, or (`second`) two of which the first is dead.

    Peers believe any label, any neighbours, alive or dead, any wait; the database is any list. Two
    peers or more have the same neighbour on both sides, but with `any` any two. With `leavers` the
    first peer leaves.
    """

    name = "ring"
    messages = RingOverlay.messages
    starts = ("one", "two", "second", "leavers", "any")

    def __init__(self, n: int, start: str = "one") -> None:
        super().__init__(n, start)
        count = 2 if start in ("two", "second") else 1
        self.order = preference(TOPIC, [100 + it for it in range(count)])
        self.alive = self.order[1:] if start == "second" else self.order

    @property
    def constants(self) -> Constants:
        """From two peers on versions are all equal, and neither digest nor doubt of label 0 come:
        what they repair is repaired without them, or is a case of one peer."""
        off = {"topic_supervisor:VERSION_MODULUS": 1, "topic_supervisor:UNHEARD_MAX": FOREVER}
        window = self.n  # bits of the longest label
        values = dict.fromkeys(PATIENCES, 2 * (1 + window)) | SMALL | ({} if self.n == 1 else off)
        return {f"{HERE}.{name}": value for name, value in values.items()}

    @property
    def covered(self) -> str:
        """The starts, in one sentence."""
        both = ", the same on both sides" if self.n > 1 and self.start != "any" else ""
        return (
            f"{self.n} peers of any label of 0..{self.n} or none, any neighbours of the living and "
            f"one that died{both}, calm or without an answer for any time, "
            f"{'one of them leaving, ' if self.start == 'leavers' else ''}"
            f"any list of up to {self.n + 1} of them as database"
        )

    def nodes(self, coins: Coins) -> list[Node]:
        """The peers, then the supervisors that live."""
        peers: list[Node] = [Peer(id, self.order, coins) for id in range(self.n)]
        return [*peers, *(Supervisor(id, self.order) for id in self.alive)]

    def choices(self) -> dict[NodeId, list[State]]:
        """Every place of a peer, every database of a supervisor."""
        peers = {id: list(self._peers(id)) for id in range(self.n)}
        return peers | {id: list(self._supervisors(id)) for id in self.alive}

    def _peers(self, id: NodeId) -> Iterator[State]:
        others = [it for it in (*range(self.n), DEAD) if it != id]
        labels = [None, *range(self.n + 1)]
        refs: list[Ref | None] = [None, *((label, it) for it in others for label in range(self.n))]
        leaving = (True,) if self.start == "leavers" and not id else (False,)
        versions = VERSIONS if self.n == 1 else (0,)
        waits = [(None, 0, 0), (None, -1, 0), (1, 9, 9)]
        for label, pred, succ, wait, leaves in product(labels, refs, refs, waits, leaving):
            if label is None and (pred, succ) != (None, None):
                continue  # repaired before anything else happens
            if self.start != "any" and self.n > 1 and (wait[1] < 0 or pred != succ):
                continue
            for contact, version in product(range(len(self.order)), versions):
                inquiry = (*wait, contact, version)
                yield self._peer(id, label, pred, succ, inquiry, leaving=leaves)

    def _peer(
        self,
        id: NodeId,
        label: int | None,
        pred: Ref | None,
        succ: Ref | None,
        inquiry: tuple[int | None, int, int, int, int],
        *,
        leaving: bool,
    ) -> State:
        peer = Peer(id, self.order, Coins())
        peer.on_command(Subscribe(TOPIC))
        membership = peer.topics[TOPIC]
        membership.awaited = False
        one = membership.subscriber
        one.label, one.pred, one.succ, one.leaving = label, pred, succ, leaving
        one.inquiry.load(InquiryState(inquiry[0], inquiry[1], inquiry[3], inquiry[4], inquiry[2]))
        return peer.state()

    def _supervisors(self, id: NodeId) -> Iterator[State]:
        known = [*range(self.n), DEAD]
        lists: list[list[Any]] = [[], [None], [0, 0]]
        lists += [list(it) for size in range(1, self.n + 2) for it in product(known, repeat=size)]
        lists = [it for it in lists if len(set(it)) == len(it) or it == [0, 0]]
        for entries in lists:
            for suspect in ({}, {0: 0}, {DEAD: 9}):
                if suspect and (id != self.alive[0] or not set(suspect) & set(entries)):
                    continue
                supervisor = Supervisor(id, self.order)
                served = TopicSupervisor(TOPIC, id, supervisor.budget)
                served.database = Database()
                served.database.load(_database(entries))
                served.suspects = dict(suspect)
                if entries:
                    supervisor.topics[TOPIC] = served
                yield supervisor.state()

    def plain(self, state: State) -> State:
        """Totals, and load that is too little for any rule to read, count for nothing."""
        if isinstance(state, SupervisorState):
            state.requests = state.sent = state.turn = 0
            state.unsettled, state.absent = 0, {}  # told to publishers, read by no rule
            state.budget.spent = 0
            for served in state.topics.values():
                self._plain_topic(served)
        else:
            assert isinstance(state, PeerState)
            for membership in state.topics.values():
                _plain_membership(membership)
        return state

    def _plain_topic(self, served: TopicSupervisorState) -> None:
        served.calm = min(served.calm, CALM if self.n == 1 else 2)
        served.requests = served.requests_before = served.claimed = served.unsettled = 0
        served.sent %= SHARES
        served.suspects = {id: max(it, -1) for id, it in served.suspects.items()}
        period = ANSWER + 1
        while served.unheard > UNHEARD + 3 * period:
            served.unheard -= period  # all that are recorded are doubted by then, once in a period
        if self.n > 1:
            served.unheard = 0

    def violations(
        self, states: Mapping[NodeId, State], channel: Sequence[Flying]
    ) -> list[Violation]:
        """As the product judges a topic."""
        flying = [(target, message) for _, target, message in channel]
        return topic_violations(TOPIC, self.order, states, flying)

    def outline(self, state: State) -> Any:
        """Of a supervisor what it records; of a peer whether it wants the topic."""
        if isinstance(state, SupervisorState):
            served = state.topics.get(TOPIC)
            return None if served is None else encode_state(served.database)
        assert isinstance(state, PeerState)
        return TOPIC in state.topics and not state.topics[TOPIC].subscriber.leaving

    def hopeless(self, states: Mapping[NodeId, State]) -> bool:
        """Is the database wrong? Of anything else the judge says nothing then."""
        return bool(TopicJudge(TOPIC, self.order, states).database())


def _database(entries: list[Any]) -> Any:
    """A list that nothing beside it has been derived from."""
    database = Database()
    state = database.state()
    state.entries = entries
    return state


def _plain_membership(membership: MembershipState) -> None:
    """Tables of broadcasts that are empty have no age; a long silence is a long silence."""
    broadcast = membership.history.broadcast
    broadcast.seen.age = broadcast.handed.age = broadcast.busy.age = 0
    membership.former.left = {}  # read by broadcasts, of which there are none here
    one = membership.subscriber
    before, after = one.silence
    one.silence = (min(before, SILENT + 1), min(after, SILENT + 1))
