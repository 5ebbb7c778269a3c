"""What a node shows to clients: topics, charters, how it is, its state.

Each client hears of those topics alone on which it has some right at this node. A state is shown
when it is known that the client may see it.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import Random
from typing import Any

from msgspec import json
from msgspec.structs import replace

from planaria.core.errors import UsageError
from planaria.core.state import encode_state
from planaria.core.topics import check_filter, matches
from planaria.network.client.messages import (
    AskCharters,
    AskState,
    AskStatus,
    AskTopics,
    ChartersAre,
    StateIs,
    StatusIs,
    TopicsAre,
)
from planaria.network.doubts import doubts_of_store
from planaria.network.gate.others import Others
from planaria.network.gate.queries import Queries
from planaria.network.gate.session import Session
from planaria.network.gate.warden import Warden
from planaria.network.overlays.registry import PARTS
from planaria.network.rights import SUPERVISE
from planaria.network.status import ClientStatus, OverlayStatus, Shown, Status
from planaria.protocols.publications.retention import Retention
from planaria.protocols.skipring.history import History
from planaria.protocols.skipring.membership import Membership, MembershipState
from planaria.protocols.skipring.peer import PeerState
from planaria.protocols.skipring.supervisor import SupervisorState
from planaria.records.memory import MemoryStore

TOPICS_SECONDS = 5.0  # for all supervisors to name their topics; then what is known is told
CHARTERS_PAGE = 128  # charters in one answer, and two more: at most half a mebibyte

Hears = Callable[[str], bool]


class Showing:
    """Shows clients what there is, as far as they may see it."""

    def __init__(
        self,
        queries: Queries,
        status: Callable[[str | None], Any],
        clock: Callable[[], float],
        soon: Callable[[Callable[[], None]], object],
        warden: Warden,
    ) -> None:
        self._queries, self.memberships = queries, queries.memberships
        self._status, self._clock, self._soon, self._warden = status, clock, soon, warden

    def ask_topics(self, session: Session, message: AskTopics) -> None:
        """The topics of a pattern, when all supervisors have told theirs."""
        pattern = check_filter(message.pattern)
        directory, patience = self.memberships.ring.directory, self._clock() + TOPICS_SECONDS

        def attempt() -> bool:
            found = {*directory.topics(pattern), *self.memberships.matching(pattern)}
            if not directory.complete(pattern) and self._clock() < patience:
                return False
            heard = [topic for topic in found if self._warden.may_hear(session, topic)]
            session.answer(TopicsAre(message.request, sorted(heard)))
            return True

        self._queries.attempt(session, message.request, attempt)

    def ask_charters(self, session: Session, message: AskCharters) -> None:
        """The charters that this node keeps; a supervisor keeps all."""
        pattern, charters = check_filter(message.pattern), self.memberships.ring.charters
        found: list[bytes] = []
        for name in charters.names():
            hidden = not self._warden.may_hear(session, name)
            if name <= message.after or hidden or not matches(pattern, name):
                continue
            found += charters.kept[name]
            if len(found) >= CHARTERS_PAGE:
                session.answer(ChartersAre(message.request, found, name))
                return
        session.answer(ChartersAre(message.request, found))

    def ask_status(self, session: Session, message: AskStatus) -> None:
        """How this node is; of the topics after a name, the first page that has one to tell."""
        self._show(session, message.request, message.after)

    def _show(self, session: Session, request: int, after: str | None) -> None:
        """Look at one page: others have their turn before the next."""
        if session.closed:
            return
        status = visible = self._status(after)
        if self._warden.restricts(session) and isinstance(status, Status | Shown):
            visible = heard(status, partial(self._warden.may_hear, session))
        if isinstance(visible, Status):
            may_watch = partial(self._warden.may_watch, session)
            visible = replace(visible, connected=[*watched(visible.connected, may_watch)])
        if isinstance(visible, Shown) and status.topics and not visible.topics:
            # None at all would say that there are no more.
            self._soon(partial(self._show, session, request, max(status.topics)))
        else:
            session.answer(StatusIs(request, json.encode(visible)))

    def ask_state(self, session: Session, message: AskState) -> None:
        """One topic's state, for whoever judges the whole network; without publications."""
        allowed = partial(self._may_look, session, [message.topic])
        self._when(session, message.request, allowed, lambda: self._state(message))

    def ask_part(self, session: Session, message: AskState, others: Others | None) -> None:
        """What this node's part in another overlay is like, of all its topics in one.

        Raises UsageError if the client may not look into all of them at this node.
        """
        self._warden.check_pattern(session, SUPERVISE, "#")

        def answer() -> StateIs:
            part = None if others is None else others.state(message.overlay)
            return StateIs(message.request, [], None, None, part)

        def allowed() -> bool:
            names = [] if others is None else others.names(message.overlay)
            return self._may_look(session, names)

        self._when(session, message.request, allowed, answer)

    def _when(
        self,
        session: Session,
        request: int,
        allowed: Callable[[], bool],
        answer: Callable[[], StateIs],
    ) -> None:
        def attempt() -> bool:
            if not allowed():
                return False
            session.answer(answer())
            return True

        self._queries.attempt(session, request, attempt)

    def _may_look(self, session: Session, topics: Sequence[str]) -> bool:
        """May a client look into all of these? False: that is not known yet. Raises UsageError."""
        verdicts = [self._warden.refusal(session, SUPERVISE, topic) for topic in topics]
        refusal = next(filter(None, verdicts), None)
        if refusal is not None:
            raise UsageError(refusal)
        return None not in verdicts

    def _state(self, message: AskState) -> StateIs:
        ring, topic = self.memberships.ring, message.topic
        membership = ring.peer.topics.get(topic)
        peer = {} if membership is None else {topic: _without_history(membership)}
        supervisor = None
        if ring.supervisor is not None:
            whole = ring.supervisor
            served, moved_to = whole.topics.get(topic), whole.moved.get(topic)
            state = SupervisorState(
                {} if served is None else {topic: served.state()},  # type: ignore[dict-item]
                {} if moved_to is None else {topic: moved_to},
                whole.turn, whole.budget.state(), whole.requests, whole.sent,  # type: ignore[arg-type]
                whole.unsettled, whole.absent,
            )  # fmt: skip
            supervisor = encode_state(state)
        peers = encode_state(PeerState(peer))
        known = list(ring.peer.supervisors)
        return StateIs(message.request, known, peers, supervisor)


def heard(status: Status | Shown, hears: Hears) -> Status | Shown:
    """What of a status somebody may hear."""
    topics = {topic: it for topic, it in status.topics.items() if hears(topic)}
    if isinstance(status, Shown):
        return replace(status, topics=topics)
    overlays = {name: _heard_of(name, it, hears) for name, it in status.overlays.items()}
    store = status.store
    visible = [] if store is None else [*doubts_of_store(store.stalled, store.damaged)]
    visible += [f"{topic}: {doubt}" for topic, it in topics.items() for doubt in it.doubts]
    visible += [f"{name}: {doubt}" for name, it in overlays.items() for doubt in it.doubts]
    return replace(
        status,
        topics=topics,
        overlays=overlays,
        doubts=[doubt for doubt in status.doubts if doubt in visible],
    )


def watched(clients: Iterable[ClientStatus], may_watch: Hears) -> Iterable[ClientStatus]:
    """Who is connected, for who may watch everything; of what each does, what may be watched."""
    for it in clients if may_watch("#") else ():
        follows = [one for one in it.follows if may_watch(one.pattern)]
        publishes = [one for one in it.publishes if may_watch(one.topic)]
        yield replace(it, follows=follows, publishes=publishes)


def _heard_of(overlay: str, status: OverlayStatus, hears: Hears) -> OverlayStatus:
    """The same of an overlay; conditions name no topic, and are for who may hear of all."""
    every = overlay in PARTS and PARTS[overlay].has_conditions
    topics = {name: it for name, it in status.topics.items() if hears("#" if every else name)}
    hidden = [name for name in status.topics if name not in topics]
    doubts = [it for it in status.doubts if not any(it.startswith(f"{one}: ") for one in hidden)]
    return replace(status, topics=topics, doubts=doubts)


def _without_history(membership: Membership) -> MembershipState:
    """A membership's state with an empty history: its place in the ring is what is judged."""
    one = membership.subscriber
    empty = History(one.topic, one.id, Random(0), Retention(), MemoryStore(), ordered=False)
    return MembershipState(one.state(), empty.state(), membership.awaited)  # type: ignore[arg-type]
