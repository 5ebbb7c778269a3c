"""What clients ask of members about batches that they commit: one round of answers a question.

A node asks the members, waits for all of them, for a while, and hands on what they said. What
follows from it is the client's business: it can go on at any other node.
"""

from collections.abc import Callable

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId, is_node_id
from planaria.core.node import Command
from planaria.core.topics import check_topic
from planaria.network.client.messages import AskBatch, BatchIs, MemberHas
from planaria.network.gate.ring import Memberships
from planaria.network.gate.session import Session
from planaria.protocols.skipring.batches import Consult, Consulted
from planaria.protocols.skipring.deposits import DepositAnswered
from planaria.protocols.skipring.directory import Seek
from planaria.records.manifest import Manifest, decode_manifest

ASKED_MAX = 64  # members
ANSWER_SECONDS = 2.0  # for which a member may be silent; then the others' answers are all
MEMBERS_SECONDS = 10.0  # for which members are looked for
SOON_SECONDS = 0.02  # after which it is looked whether a supervisor has named members


class Round:
    """One question, and who is still to answer it."""

    __slots__ = ("answers", "asked", "manifest", "message", "session", "since", "waiting")

    def __init__(self, session: Session, message: AskBatch, manifest: Manifest, now: float) -> None:
        self.session, self.message, self.manifest, self.since = session, message, manifest, now
        self.answers: dict[NodeId, MemberHas] = {}
        self.waiting: dict[NodeId, None] | None = None  # None while members are looked for
        self.asked = 0


class Settling:
    """All rounds that are not over."""

    def __init__(
        self,
        memberships: Memberships,
        command: Callable[[Command], None],
        clock: Callable[[], float],
        later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        self.memberships, self._command, self._clock, self._later = (
            memberships, command, clock, later,
        )  # fmt: skip
        self._rounds: dict[Round, None] = {}
        self._looking = False  # is it about to be looked who the members are?

    def __len__(self) -> int:
        return len(self._rounds)

    def ask(self, session: Session, message: AskBatch) -> None:
        """Ask members; raises UsageError if this is no manifest of the client's, or none of this
        topic, or whom and what it names cannot be."""
        check_topic(message.topic)
        manifest = decode_manifest(message.manifest)
        if manifest is None:
            raise UsageError("this is no manifest: is the client of another version?")
        if manifest.publisher != session.publisher:
            raise UsageError(
                f"a manifest of publisher {manifest.publisher}: this client publishes as "
                f"{session.publisher}, the handle of its id"
            )
        _check(message, manifest)
        one = Round(session, message, manifest, self._clock())
        self._rounds[one] = None
        self._begin(one)

    def on_answer(self, effect: Consulted) -> None:
        """A member says what it has."""
        said = effect.answer
        parts = (said.staged, said.settled, said.pieces, said.rows)
        has = MemberHas(said.sender, said.batch, said.last, said.rival, *parts)
        self._answered(said.topic, said.key, said.sender, has)

    def on_refusal(self, effect: DepositAnswered) -> None:
        """Somebody is no member: what it would say does not count."""
        if effect.reason:
            self._answered(effect.topic, effect.key, effect.member, None)

    def on_timeout(self) -> None:
        """Time passed: wait no longer for who is silent."""
        self._look()
        for one in list(self._rounds):
            if one.waiting is not None and self._clock() - one.since > ANSWER_SECONDS:
                self._end(one)

    def gone(self, session: Session) -> None:
        """A client is gone: it asks again elsewhere."""
        self._rounds = {one: None for one in self._rounds if one.session is not session}

    def _look_soon(self) -> None:
        """Look again in a moment: one timer for all rounds, however often they are looked at."""
        if not self._looking:
            self._looking = True
            self._later(SOON_SECONDS, self._look_now)

    def _look_now(self) -> None:
        self._looking = False
        self._look()

    def _look(self) -> None:
        """Members may be known by now."""
        for one in [it for it in self._rounds if it.waiting is None]:
            self._begin(one)

    def _begin(self, one: Round) -> None:
        """Ask, as soon as members are known."""
        message, now = one.message, self._clock()
        members: list[NodeId] | tuple[int, ...] = message.members
        if not members:
            members, count, settled = self.memberships.candidates(message.topic)
            if (count is None or not settled) and now - one.since < MEMBERS_SECONDS:
                self._command(Seek(message.topic))
                self._look_soon()
                return
        asked = tuple(dict.fromkeys(members))[:ASKED_MAX]
        one.waiting, one.asked, one.since = dict.fromkeys(asked), len(asked), now
        record = one.manifest.record
        self._command(Consult(message.topic, record, asked, message.settle, message.spread))
        if not asked:
            self._end(one)

    def _answered(self, topic: str, key: bytes, member: NodeId, has: MemberHas | None) -> None:
        for one in list(self._rounds):
            mine = one.message.topic == topic and one.manifest.record.key == key
            if mine and one.waiting is not None and member in one.waiting:
                del one.waiting[member]
                if has is None:
                    one.asked -= 1
                else:
                    one.answers[member] = has
                if not one.waiting:
                    self._end(one)

    def _end(self, one: Round) -> None:
        if one in self._rounds:
            del self._rounds[one]
            answers = list(one.answers.values())
            one.session.answer(BatchIs(one.message.request, answers, one.asked))


def _check(message: AskBatch, manifest: Manifest) -> None:
    """Raises UsageError for nodes that cannot be, and parts that the manifest has not."""
    portion = manifest.portions.get(message.topic)
    if portion is None:
        raise UsageError(f"this manifest publishes nothing on {message.topic!r}")
    if len(message.members) > ASKED_MAX:
        raise UsageError(f"{len(message.members)} members: at most {ASKED_MAX} can be asked")
    if not all(is_node_id(it) for it in (*message.members, *message.spread)):
        raise UsageError("members are named by their handles, numbers of 63 bits")
    for parts in message.spread.values():
        if len(parts) > len(portion.parts) or not all(0 <= it < len(portion.parts) for it in parts):
            raise UsageError(f"parts of {message.topic!r}: from 0 to {len(portion.parts) - 1}")
