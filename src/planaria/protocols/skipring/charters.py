"""The charters at one node: supervisors keep all, members those of their topics.

Soft state that only grows in rank: whoever has a charter tells a supervisor its rank again and
again, and the lower of two is replaced. What a fault leaves is verified again, a little at each
timeout, and dropped if nobody entitled signed it.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from random import Random

from msgspec import field

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId, is_node_id
from planaria.core.message import Message
from planaria.core.node import Command, Effect, Persist, Send
from planaria.core.state import State, Stateful
from planaria.core.topics import above
from planaria.protocols.skipring.charter import (
    HASH_BYTES,
    NO_RANK,
    VOID,
    Charter,
    Judge,
    Judged,
    Rank,
    nobody,
    rank_of,
    voided_since,
    voiding_name,
)
from planaria.protocols.skipring.charter_messages import (
    CHARTERS_MAX,
    HINTS_MAX,
    AskCharters,
    CharterHints,
    CharterNews,
    ChartersFound,
    SeekCharters,
)
from planaria.protocols.skipring.peer import FOREVER, Peer

NAMES_MAX = 1 << 16  # topics with a charter: as many as one supervisor serves
KEPT_MAX = 3  # versions of one topic: what an operator may want to go back to
AUDIT_SLICE = 4  # names verified again at each timeout
SOUGHT_MAX = 3  # supervisors that are asked at once: the first answer will do
PUSH_MAX = 64  # supervisors that are told of a new charter at once; the others ask
LEARNING = 16  # timeouts in which other supervisors have told a new one what they keep


class LayDown(Command, frozen=True, gc=False):
    """Obey this charter and tell all; refused with UsageError if nobody entitled signed it."""

    sealed: bytes


class SeekOverlays(Command, frozen=True, gc=False):
    """Ask supervisors what is laid down for these topics; `LaidDown` tells."""

    topics: tuple[str, ...]


class LaidDown(Effect, frozen=True, gc=False):
    """What a supervisor keeps of what was sought: these charters, and none of the others."""

    topics: tuple[str, ...]
    charters: tuple[Charter, ...]


class ChartersState(State):
    """Sealed charters by topic, the highest first, and whose turn it is to be told or verified."""

    kept: dict[str, list[bytes]] = field(default_factory=dict)
    hinted: int = 0
    audited: int = 0


class Charters(Stateful):
    """The charters at one node; `judge` says what sealed bytes lay down.

    It keeps those of the topics that `peer` is a member of, and has the peer obey them. With
    `everything`, as at a supervisor, it keeps those of all topics; with `inherits`, those of the
    topics above its own as well.
    """

    __slots__ = (
        "_above", "_company", "_inherits", "_judge", "_judged", "_learning", "_peer",
        "_revocations", "_rng", "audited", "everything", "hinted", "id", "kept",
    )  # fmt: skip
    state_type = ChartersState

    def __init__(
        self,
        id: NodeId,
        peer: Peer,
        rng: Random,
        judge: Judge,
        *,
        everything: bool,
        inherits: bool = False,
    ) -> None:
        self.id, self.everything, self._inherits = id, everything, inherits
        self._above: frozenset[str] = frozenset()  # topics above own ones, as of the last timeout
        self.kept: dict[str, list[bytes]] = {}
        self.hinted = self.audited = 0
        self._peer, self._rng, self._judge = peer, rng, judge
        self._revocations: tuple[Rank, list[bytes]] = (NO_RANK, [])  # all, as of the last timeout
        self._judged: dict[bytes, Judged] = {}  # what was verified of what is kept, by its bytes
        self._learning, self._company = 0, False

    def learn_first(self, *, company: bool) -> None:
        """This node is new: until others had the time to tell what they keep, it keeps not all.

        `company`: there are others, though none of them was met yet.
        """
        self._learning, self._company = LEARNING, company

    @property
    def complete(self) -> bool:
        """Does it keep all charters that there are, as far as it can know?"""
        if not self._learning:
            return self.everything
        return self.everything and not (self._company or self._others)

    @property
    def _others(self) -> list[NodeId]:
        """The other supervisors that are known; memory can hold anything."""
        return [id for id in self._peer.supervisors if is_node_id(id) and id != self.id]

    def best(self, topic: str) -> Charter | None:
        """The charter that counts."""
        return next((it.charter for it in self._valid(topic)), None)

    def versions(self, topic: str) -> list[Charter]:
        """The last ones, the one that counts first."""
        return [it.charter for it in self._valid(topic)]

    def sealed(self, topic: str) -> bytes | None:
        """The one that counts, as it travels."""
        for data in self.kept.get(topic, []):
            judged = self._admitted(data)
            if judged is not None and judged.charter.topic == topic:
                return data
        return None

    def names(self) -> list[str]:
        """The topics that have a charter here."""
        return sorted(name for name in self.kept if not name.startswith(VOID) and self.best(name))

    def revocation(self, id: bytes) -> Charter | None:
        """The record that revokes a certificate; None if there is none."""
        for data in self.kept.get(VOID + id.hex(), []):
            found = self._verified(data)
            if found is not None and voiding_name(found.charter) == id:
                return found.charter
        return None

    def revoked_since(self, id: bytes) -> int | None:
        """From which second on a certificate is revoked; None if it is not."""
        found = self.revocation(id)
        return None if found is None else voided_since(found)

    @property
    def revocations(self) -> Rank:
        """The same wherever the same certificates are revoked, as of the last timeout."""
        return self._revocations[0]

    def everything_kept(self) -> list[bytes]:
        """All that is kept, for a store."""
        return [data for datas in self.kept.values() for data in datas]

    def resume(self, data: bytes) -> bool:
        """Take what a store had; False if it is no charter any more. Nobody is told.

        What this node is a member of is not known yet; the audit drops what it does not want.
        """
        judged = self._judged.get(data) or self._judge(data)
        if judged is None or self._voiding(judged):
            return False
        self._add(data, judged)
        return True

    def lay_down(self, data: bytes) -> list[Effect]:
        """Take a charter from an admin, obey it, and tell supervisors at once.

        Raises UsageError if it is not admitted.
        """
        judged = self._judge(data)
        if judged is None or self._voiding(judged):
            raise UsageError("this charter is not signed by an admin of this cluster, or is void")
        if self._keeps(judged.charter.topic):
            self._add(data, judged)
        news = [Send(id, CharterNews(self.id, [data])) for id in self._others[:PUSH_MAX]]
        return [*news, *self.obey([*self._peer.topics])]

    def on_message(self, message: Message, sender: NodeId) -> list[Effect]:
        """Hints, questions and charters; each speaks for itself alone."""
        if getattr(message, "sender", None) != sender:
            return []
        if isinstance(message, CharterHints):
            return [*self._compare(message)]
        if isinstance(message, AskCharters):
            return [*self._news(sender, [self.sealed(topic) for topic in message.topics])]
        if isinstance(message, CharterNews):
            void = self._news(sender, [self._heard(data) for data in message.sealed])
            return [*void, *self.obey([*self._peer.topics])]
        if isinstance(message, SeekCharters) and self.complete:
            kept = [data for it in message.topics if (data := self.sealed(it)) is not None]
            return [Send(sender, ChartersFound(self.id, message.topics, kept))]
        if isinstance(message, ChartersFound) and sender in self._peer.supervisors:
            return [self._found(message)]
        return []

    def seek(self, topics: Sequence[str]) -> list[Effect]:
        """Ask supervisors for charters of topics in which this node takes no part."""
        if self.complete:
            return [self._laid_down(topics)]
        asked = self._rng.sample(self._others, min(SOUGHT_MAX, len(self._others)))
        return [Send(id, SeekCharters(self.id, list(topics)[:HINTS_MAX])) for id in asked]

    def _laid_down(self, topics: Sequence[str]) -> LaidDown:
        found = [self.best(topic) for topic in topics]
        return LaidDown(tuple(topics), tuple(it for it in found if it is not None))

    def _found(self, message: ChartersFound) -> LaidDown:
        """What was signed by somebody entitled; nothing of it is kept."""
        judged = [self._judge(data) for data in message.sealed]
        good = [it for it in judged if it is not None and not self._voiding(it)]
        charters = [it.charter for it in good if it.charter.topic in message.topics]
        return LaidDown(tuple(message.topics), tuple(charters))

    def on_timeout(self) -> list[Effect]:
        """Verify a few again, obey them, and tell a supervisor the ranks of some."""
        if self._inherits:
            self._above = above(tuple(self._peer.topics))
        self._learning = max(0, self._learning - 1)
        audited = _turn([*self.kept], self.audited, AUDIT_SLICE)
        for name in audited:
            self._audit(name)
        self.audited %= NAMES_MAX
        self.audited += sum(name in self.kept for name in audited)
        self._revocations = self._revoked()
        names = [*dict.fromkeys([*self.kept, *self._peer.topics, *sorted(self._above)])]
        turned = _turn(names, self.hinted, HINTS_MAX - 1)
        self.hinted = (self.hinted + HINTS_MAX - 1) % max(1, len(names))
        return [*self.obey(turned), *self._hint(turned)]

    def obey(self, topics: Iterable[str]) -> list[Effect]:
        """Have the peer keep of these topics what is laid down for them, or what it was told."""
        effects: list[Effect] = []
        for topic in topics:
            membership, best = self._peer.topics.get(topic), self.best(topic)
            if membership is None:
                continue
            present = self._peer.retention.get(topic, FOREVER)
            wanted = present if best is None else best.retention
            if membership.history.horizon.retention != wanted:
                effects += membership.history.retain(wanted)
        return [*effects, Persist()] if effects else []

    def load(self, state: State) -> None:
        """Take any state; what is no charter is not admitted, and dropped by the audit."""
        super().load(state)
        self._judged = {}

    # Comparing

    def _hint(self, names: Sequence[str]) -> list[Send]:
        ranks = [(name, *self._rank(name)) for name in names]
        own = self._peer.topics
        hints = [it for it in ranks if it[1] or it[0] in own or it[0] in self._above]
        if self._judge is not nobody:
            hints.append((VOID, *self._revocations[0]))
        if not hints or not self._others:
            return []
        return [Send(self._rng.choice(self._others), CharterHints(self.id, hints))]

    def _compare(self, message: CharterHints) -> list[Send]:
        """Send what is higher here, ask for what is higher there."""
        higher: list[bytes | None] = []
        lower: list[str] = []
        for name, *rank in message.hints:
            if name == VOID:
                higher += self._unheard(tuple(rank))
                continue
            mine = self._rank(name)
            if mine > tuple(rank):
                higher.append(self.sealed(name))
            elif mine < tuple(rank) and self._keeps(name):
                lower.append(name)
        asked = [Send(message.sender, AskCharters(self.id, lower))] if lower else []
        return [*self._news(message.sender, higher), *asked]

    def _unheard(self, rank: tuple[object, ...]) -> list[bytes]:
        """All revocations, for one that has others than a supervisor."""
        mine, sealed = self._revocations
        return sealed if self.everything and mine != rank else []

    def _revoked(self) -> tuple[Rank, list[bytes]]:
        """All revocations that count, and what is the same wherever the same are known."""
        names = sorted(name for name in self.kept if name.startswith(VOID))
        found = [(name, data) for name in names if (data := self.sealed(name)) is not None]
        said = b"".join(b"%b%d%b" % (name.encode(), *self._rank(name)) for name, _ in found)
        digest = blake2b(said, digest_size=HASH_BYTES).digest() if found else b""
        return (len(found), digest), [data for _, data in found]

    def _news(self, target: NodeId, found: Sequence[bytes | None]) -> list[Send]:
        sealed = [data for data in found if data is not None]
        return [
            Send(target, CharterNews(self.id, sealed[at : at + CHARTERS_MAX]))
            for at in range(0, len(sealed), CHARTERS_MAX)
        ]

    def _rank(self, name: str) -> Rank:
        best = self.best(name)
        return NO_RANK if best is None else rank_of(best)

    def _keeps(self, name: str) -> bool:
        if self.everything or name.startswith(VOID):
            return True
        return name in self._peer.topics or name in self._above

    # Keeping

    def _heard(self, data: bytes) -> bytes | None:
        """Take a charter that another has; if it is void, that one must hear so."""
        judged = self._judged.get(data) or self._judge(data)
        if judged is None:
            return None
        void = self._voiding(judged)
        if void is None and self._keeps(judged.charter.topic):
            self._add(data, judged)
        return void

    def _add(self, data: bytes, judged: Judged) -> None:
        """Keep a charter in its place among the last of its topic, if there is room."""
        name = judged.charter.topic
        room = NAMES_MAX if not name.startswith(VOID) else 2 * NAMES_MAX
        if name in self.kept or len(self.kept) < room:
            self._judged[data] = judged
            self._keep(name, [data, *self.kept.get(name, [])])

    def _keep(self, name: str, found: Sequence[bytes]) -> None:
        """Keep the highest of those that are admitted, one of each rank; forget the others."""
        ranked: dict[Rank, bytes] = {}
        for data in found:
            judged = self._admitted(data)
            if judged is not None and judged.charter.topic == name:
                ranked.setdefault(rank_of(judged.charter), data)
        kept = [ranked[rank] for rank in sorted(ranked, reverse=True)[:KEPT_MAX]]
        for data in (*found, *self.kept.get(name, [])):
            if data not in kept:
                self._judged.pop(data, None)
        if kept:
            self.kept[name] = kept  # in its place, so that each has its turn
        else:
            self.kept.pop(name, None)

    def _audit(self, name: str) -> None:
        """Verify what is kept of a topic anew; what nobody wants here is not kept."""
        found = self.kept.get(name, [])
        for data in found:
            self._judged.pop(data, None)
        self._keep(name, found if self._keeps(name) else [])

    def _valid(self, name: str) -> Iterable[Judged]:
        for data in self.kept.get(name, []):
            judged = self._admitted(data)
            if judged is not None and judged.charter.topic == name:
                yield judged

    def _admitted(self, data: bytes) -> Judged | None:
        """What kept bytes lay down, if somebody entitled signed them and nobody voided that."""
        judged = self._verified(data)
        return None if judged is None or self._voiding(judged) else judged

    def _verified(self, data: bytes) -> Judged | None:
        """What kept bytes lay down; verified once, until the audit."""
        judged = self._judged.get(data) or self._judge(data)
        if judged is not None:
            self._judged[data] = judged
        return judged

    def _voiding(self, judged: Judged) -> bytes | None:
        """The record that voids a charter, if there is one."""
        if judged.charter.topic.startswith(VOID):
            return None
        for data in self.kept.get(VOID + judged.admin.hex(), []):
            found = self._verified(data)
            since = None if found is None else voided_since(found.charter)
            if since is not None and judged.charter.time >= since:
                return data
        return None


def _turn(names: list[str], start: int, count: int) -> list[str]:
    """So many names from a place on, the first after the last."""
    start %= max(1, len(names))
    return [*names[start : start + count], *names[: max(0, start + count - len(names))]][:count]
