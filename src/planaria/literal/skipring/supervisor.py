"""Algorithm 3: the supervisor's part of BuildSR, with the failure detector of section 3.3."""

from random import Random

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Command, Effects, LinkDown, Send
from planaria.core.node import Node as CoreNode
from planaria.core.state import State
from planaria.literal.skipring.amendments import E6_TEXT
from planaria.literal.skipring.labels import inverse, label, position
from planaria.literal.skipring.messages import (
    GetConfiguration,
    Ref,
    SetData,
    Subscribe,
    Unsubscribe,
)


class Undefined(Exception):
    """The text asks for something that does not exist, so the action goes no further."""


class SupervisorState(State):
    """The database, whose turn it is, whom the failure detector suspects, and counts."""

    database: dict[str, int | None]
    next: int
    suspects: list[int]
    requests: int
    timeouts: int
    undefined: int


class Supervisor(CoreNode):
    """Keeps the database, answers requests, configures one subscriber per timeout.

    Failed sends are its failure detector's sensor. A crash is noticed `detection` timeouts later
    on average; a node that speaks is no longer suspected.
    """

    state_type = SupervisorState

    def __init__(
        self, id: NodeId, rng: Random, amendments: frozenset[str], detection: float = 1.0
    ) -> None:
        super().__init__(id)
        self.database: dict[str, NodeId | None] = {}
        self.next = 0
        self.amendments = amendments
        self.detection = detection
        self.suspects: list[NodeId] = []
        self.requests = 0
        self.timeouts = 0
        self.undefined = 0
        self._rng = rng
        self._out: list[Send] = []

    # Inputs

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """A request; where the text does not say what to do, nothing more is done."""
        try:
            match message:
                case Subscribe(node):
                    self.requests += 1
                    self._trust(node)
                    self.subscribe(node)
                case Unsubscribe(node):
                    self._trust(node)
                    self.unsubscribe(node)
                case GetConfiguration(node, asker):
                    self.requests += 1
                    self._trust(asker)
                    self.get_configuration(node, asker)
        except Undefined:
            self.undefined += 1
        return self._drain()

    def on_timeout(self) -> Effects:
        """TIMEOUT, after the failure detector."""
        self.timeouts += 1
        try:
            self.detect_failures()
            self.timeout()
        except Undefined:
            self.undefined += 1
        return self._drain()

    def on_command(self, command: Command) -> Effects:
        """A send failed: perhaps that node has crashed."""
        if isinstance(command, LinkDown) and command.peer not in self.suspects:
            self.suspects.append(command.peer)
        return self._drain()

    # Algorithm 3

    def timeout(self) -> None:
        """TIMEOUT: repair the database, configure the next subscriber."""
        self.check_labels()
        if not self.database:
            if "E16" in self.amendments:
                return
            raise Undefined  # next + 1 mod 0
        self.next = (self.next + 1) % len(self.database)
        node = self.database.get(label(self.next))
        if node is None:
            raise Undefined
        self.get_configuration(node, self.id)

    def subscribe(self, node: NodeId) -> None:
        """SUBSCRIBE(v)."""
        if node in self.database.values():
            self.get_configuration(node, node)
        else:
            self._insert(node)

    def unsubscribe(self, node: NodeId) -> None:
        """UNSUBSCRIBE(v): the holder of the last label takes over the label of v."""
        self.check_multiple_copies(node)
        bits = self._label_of(node)
        if bits is not None:
            if len(self.database) > 1 and inverse(bits) != len(self.database) - 1:
                self._replace(bits)
            else:
                del self.database[bits]
            self._compact()
        if bits is not None or "E7" in self.amendments:
            self._send(node, SetData(None, None, None))

    def get_configuration(self, node: NodeId, asker: NodeId) -> None:
        """GETCONFIGURATION(u).

        E6: the prose inserts an unrecorded node whoever asks, which brings back the dead; the
        pseudocode inserts nobody. Amended: a node that asks for itself is inserted.
        """
        self.check_multiple_copies(node)
        bits = self._label_of(node)
        if bits is not None:
            pred, succ = self._around(bits)
            self._send(node, SetData(pred, bits, succ))
        elif ("E6" in self.amendments and asker == node) or self._reads(E6_TEXT, "E6"):
            self._insert(node)
        else:
            self._send(node, SetData(None, None, None))

    def check_multiple_copies(self, node: NodeId) -> None:
        """CHECKMULTIPLECOPIES(v): keep the first entry of v (the prose says: the lowest)."""
        copies = [bits for bits, owner in self.database.items() if owner == node]
        for bits in copies[1:]:
            del self.database[bits]
        if copies[1:]:
            self._compact()

    def check_labels(self) -> None:
        """CHECKLABELS: drop empty tuples, then fill each hole from the highest label.

        E8: l is invertible on its image only, so there may be no tuple (l(j), w) with j > i.
        Amended: a label outside the image counts as higher than all others.
        """
        for bits in [bits for bits, owner in self.database.items() if owner is None]:
            del self.database[bits]
        for index in range(len(self.database)):
            if label(index) in self.database:
                continue
            ranks = {bits: self._rank(bits) for bits in self.database}
            highest = max(ranks, key=lambda bits: (ranks[bits], bits))
            if ranks[highest] <= index:
                raise Undefined
            self.database[label(index)] = self.database.pop(highest)

    def detect_failures(self) -> None:
        """Section 3.3: a subscriber that is noticed to have crashed leaves the database."""
        for node in list(self.suspects):
            if self._rng.random() * self.detection < 1:
                self._trust(node)
                self.database = {b: owner for b, owner in self.database.items() if owner != node}
                self._compact()

    # What the text leaves to the reader

    def _insert(self, node: NodeId) -> None:
        """Give `node` the label l(n).

        E9: with a hole in the database l(n) may exist, and its owner is overwritten. Amended:
        holes are filled first.
        """
        self._compact()
        bits = label(len(self.database))
        self.database[bits] = node
        pred, succ = self._around(bits)
        self._send(node, SetData(pred, bits, succ))

    def _replace(self, bits: str) -> None:
        """Move the holder of the last label to `bits`.

        E10: the text takes the neighbours before the move, so that w may be told that w, at its
        old label, is its neighbour. Amended: after the move.
        """
        before = self._around(bits)
        last = label(len(self.database) - 1)
        successor = self.database.pop(last, None)
        if successor is None:
            raise Undefined
        self.database[bits] = successor
        pred, succ = self._around(bits) if "E10" in self.amendments else before
        self._send(successor, SetData(pred, bits, succ))

    def _around(self, bits: str) -> tuple[Ref | None, Ref | None]:
        """Predecessor and successor in the ring; tuples without a subscriber are passed over.

        E15: the only subscriber is its own neighbour. Amended: it has none.
        """
        line = [other for other, owner in self.database.items() if owner is not None]
        line.sort(key=lambda other: (position(other), other))
        if len(line) == 1 and "E15" in self.amendments:
            return None, None
        here = line.index(bits)
        pred, succ = line[here - 1], line[(here + 1) % len(line)]
        return self._ref(pred), self._ref(succ)

    def _compact(self) -> None:
        """E9 amended: no hole survives a removal, none is there at an insertion."""
        if "E9" in self.amendments:
            self.check_labels()

    def _rank(self, bits: str) -> float:
        index = inverse(bits)
        if index is not None:
            return index
        return float("inf") if "E8" in self.amendments else -1

    def _label_of(self, node: NodeId) -> str | None:
        return next((bits for bits, owner in self.database.items() if owner == node), None)

    def _ref(self, bits: str) -> Ref | None:
        owner = self.database[bits]
        return None if owner is None else Ref(bits, owner)

    def _reads(self, reading: str, erratum: str) -> bool:
        return reading in self.amendments and erratum not in self.amendments

    def _trust(self, node: NodeId) -> None:
        if node in self.suspects:
            self.suspects.remove(node)

    def _send(self, target: NodeId, message: Message) -> None:
        self._out.append(Send(target, message))

    def _drain(self) -> Effects:
        out, self._out = self._out, []
        return out
