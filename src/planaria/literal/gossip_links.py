"""Supertopic links of daMulticast as printed (paper 2, Figures 4 and 6), for tests and reports.

Each erratum can be amended by name: `start` (l.22: search for super(T_i), not for T_i), `stop`
(l.31: stop when the contacts found are of super(T_i)), `root` (l.24: nothing above the root),
`narrow` (l.34: do not widen again at once, and MERGE drops the farther), `again` (an enlarged
initMsg is not 'the same message'), `empty` (Figure 6 l.12: restart when no entry is alive).
"""

from collections.abc import Sequence

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import NOTHING, Effect, Effects, Node, Send

HOPS_MAX = 6  # 'initMsg has not expired'


class ReqContact(Message, frozen=True, tag="literal.gossip.reqcontact"):
    """REQCONTACT."""

    origin: NodeId
    init: tuple[str, ...]
    hops: int


class AnsContact(Message, frozen=True, tag="literal.gossip.anscontact"):
    """ANSCONTACT: the contacts, their topic, and the topic T_x of the answerer."""

    contacts: tuple[NodeId, ...]
    topic: str
    answerer: str


def above(topic: str) -> str:
    """super(T_i); the root `.` has none."""
    if topic == ".":
        raise ValueError("super(root)")
    return topic.rpartition(".")[0] or "."


class LiteralLinkProcess(Node):
    """A process in group `topic` (written `.a.b`); `alive` says who is up, for CHECK."""

    def __init__(
        self,
        id: NodeId,
        topic: str,
        neighbourhood: Sequence[NodeId],
        amended: Sequence[str] = (),
        tau: int = 1,
    ) -> None:
        super().__init__(id)
        self.topic, self.neighbourhood, self.amended, self.tau = topic, neighbourhood, amended, tau
        self.stable: dict[NodeId, str] = {}
        self.dead: list[NodeId] = []
        self.init: tuple[str, ...] = ()
        self.searching = True
        self.asked: list[NodeId] = []
        self._served: list[tuple[NodeId, tuple[str, ...]]] = []

    def on_timeout(self) -> Effects:
        """Task FIND_SUPER_CONTACT if started, then KEEP_TABLE_UPDATED."""
        if self.searching:
            return self._find_super_contact()
        return self._keep_table_updated()

    def _find_super_contact(self) -> Effects:
        if not self.init:
            if "start" not in self.amended:
                self.init = (self.topic,)
            elif self.topic == ".":
                self.searching = False
                return NOTHING
            else:
                self.init = (above(self.topic),)
        elif not ("narrow" in self.amended and self.stable):
            last = self.init[-1]
            if not ("root" in self.amended and last == "."):
                self.init = (*self.init, above(last))
        return [Send(to, ReqContact(self.id, self.init, 0)) for to in self.neighbourhood]

    def _keep_table_updated(self) -> Effects:
        alive = [id for id in self.stable if id not in self.dead]
        if not self.stable or ("empty" in self.amended and not alive):
            self.stable, self.init, self.searching = {}, (), True
            return NOTHING
        if len(alive) <= self.tau:
            self.asked += alive  # NEWPROCESS goes to those that are up
        return NOTHING

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """Figure 4, lines 4 and 30."""
        if isinstance(message, ReqContact):
            return self._on_request(message)
        if isinstance(message, AnsContact):
            self._on_answer(message)
        return NOTHING

    def _on_request(self, message: ReqContact) -> Effects:
        seen = (message.origin, message.init if "again" in self.amended else ())
        if seen in self._served:
            return NOTHING
        self._served.append(seen)
        if self.topic in message.init:
            answer: Effect = Send(message.origin, AnsContact((self.id,), self.topic, self.topic))
            return [answer]
        if "stop" in self.amended:  # the answerer need not be a superprocess itself
            for id, topic in self.stable.items():
                if topic in message.init:
                    return [Send(message.origin, AnsContact((id,), topic, self.topic))]
        if message.hops >= HOPS_MAX:
            return NOTHING
        onward = ReqContact(message.origin, message.init, message.hops + 1)
        return [Send(to, onward) for to in self.neighbourhood]

    def _on_answer(self, message: AnsContact) -> None:
        if "stop" in self.amended:
            done = self.topic != "." and message.topic == above(self.topic)
        else:
            done = message.answerer == self.topic
        if done:
            self.searching = False
        else:
            found = message.topic if "stop" in self.amended else message.answerer
            self.init = tuple(each for each in self.init if not _includes(each, found))
        if "narrow" in self.amended:
            held = [topic for topic in self.stable.values() if _includes(topic, message.topic)]
            self.stable = {id: topic for id, topic in self.stable.items()
                           if topic not in held or topic == message.topic}  # fmt: skip
        for id in message.contacts:
            if id != self.id:
                self.stable[id] = message.topic


def _includes(general: str, special: str) -> bool:
    return general == "." or special == general or special.startswith(general + ".")
