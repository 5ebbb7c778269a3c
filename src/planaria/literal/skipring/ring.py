"""Algorithms 1 and 2: BuildList and the extended BuildRing, executed by a subscriber.

Kind readings of what is not defined: a missing neighbour is infinitely far away; every other
comparison with bottom is false; nothing is sent to bottom; the flag missing in Algorithm 2, line 22
is LIN; line 24 stands beside line 18, and line 41 belongs to line 17.
"""

from random import Random

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Node, Send
from planaria.literal.skipring.amendments import E11_EMPTY
from planaria.literal.skipring.labels import position
from planaria.literal.skipring.messages import (
    Check,
    Flag,
    Introduce,
    Linearize,
    Ref,
    RemoveConnections,
)

SIDES = ("left", "right")  # 'analogously for right' of the pseudocode
OPPOSITE = {"left": "right", "right": "left"}


class RingNode(Node):
    """The ring variables of a subscriber and the procedures that sort them."""

    def __init__(self, id: NodeId, rng: Random, amendments: frozenset[str]) -> None:
        super().__init__(id)
        self.label: str | None = None
        self.left: Ref | None = None
        self.right: Ref | None = None
        self.ring: Ref | None = None
        self.shortcuts: dict[str, NodeId | None] = {}
        self.amendments = amendments
        self.rng = rng
        self._out: list[Send] = []

    @property
    def me(self) -> Ref:
        """This node as the pseudocode's tuple."""
        if self.label is None and self._reads(E11_EMPTY, "E11"):
            return Ref("", self.id)
        return Ref(self.label, self.id)

    # Algorithm 1

    def build_list_timeout(self) -> None:
        """BUILDLISTTIMEOUT: check each neighbour, take one on the wrong side in hand again."""
        for side in SIDES:
            known = self.neighbour(side)
            if known is None:
                continue
            if self.reaches(side, known, self.me):
                self.send(known.id, Check(self.me, known.label, "LIN"))
            else:
                self.send(self.id, Linearize(known))
                setattr(self, side, None)

    def check(self, sender: Ref, label: str | None, flag: Flag) -> None:
        """CHECK(sender, label, flag): correct a false label, else get acquainted.

        E11: a node without a label answers with a reference that has none. Amended: it asks to be
        forgotten.
        """
        if self.label is None and "E11" in self.amendments:
            self.send(sender.id, RemoveConnections(self.id))
        elif self.label != label:
            self.send(sender.id, Introduce(self.me, flag))
        else:
            self.introduce(sender, flag)

    def linearize(self, v: Ref) -> None:
        """LINEARIZE(v): keep the nearest on each side, delegate the others."""
        if self.ignores(v):
            return
        if self.label is None:
            self.send(v.id, RemoveConnections(self.id))
        elif v.id in [known.id for known in (self.left, self.right) if known is not None]:
            self._correct_label(v)
        else:
            for side in SIDES:
                self._delegate_or_adopt(side, v)

    def _correct_label(self, v: Ref) -> None:
        """Algorithm 1, lines 17-22: a neighbour has another label than was thought, or so one says.

        E22: a false label on the wrong side is sent to oneself again, and while the true one comes
        in between, this never ends. Amended: the owner is asked, as in E17.
        """
        for side in SIDES:
            known = self.neighbour(side)
            if known is None or known.id != v.id or known.label == v.label:
                continue
            if self.reaches(side, v, self.me):
                setattr(self, side, v)
            else:
                self._doubt(v, Linearize(v))
                setattr(self, side, None)

    def _doubt(self, v: Ref, again: Message) -> None:
        """Look at `v` again later, or (E22 amended) ask it for its label."""
        if "E22" in self.amendments:
            self.send(v.id, Check(self.me, v.label, "LIN"))
        else:
            self.send(self.id, again)

    def _delegate_or_adopt(self, side: str, v: Ref) -> None:
        """Algorithm 1, lines 24-28, for one side."""
        known = self.neighbour(side)
        if known is not None and self.reaches(side, v, known):
            self.send(known.id, Linearize(v))
        elif self.reaches(side, v, self.me) and (known is None or self.beyond(side, known, v)):
            if known is not None:
                self.send(v.id, Linearize(known))
            setattr(self, side, v)

    # Algorithm 2

    def build_ring_timeout(self) -> None:
        """BUILDRINGTIMEOUT: the ends of the line look for each other."""
        if self.ring is None:
            for side in SIDES:
                other = self.neighbour(OPPOSITE[side])
                if self.neighbour(side) is None and other is not None:
                    self.send(other.id, Introduce(self.me, "CYC"))
        elif self.label is None:
            self.send(self.ring.id, RemoveConnections(self.id))
            self.ring = None
        else:
            self._keep_ring(self.ring)
        self.build_list_timeout()

    def _keep_ring(self, ring: Ref) -> None:
        """Algorithm 2, lines 9-13: only an end of the line may have a ring edge."""
        for side in SIDES:
            known = self.neighbour(side)
            if known is not None and self.beyond(OPPOSITE[side], ring, self.me):
                self.send(known.id, Introduce(ring, "CYC"))
                self.ring = None
        if self.ring is None:
            return
        for side in SIDES:
            if self.neighbour(side) is None and self.beyond(OPPOSITE[side], ring, self.me):
                self.send(ring.id, Check(self.me, ring.label, "CYC"))

    def introduce(self, c: Ref, flag: Flag) -> None:
        """INTRODUCE(c, flag)."""
        if self.ignores(c):
            return
        if self.label is None:
            self.send(c.id, RemoveConnections(self.id))
            return
        if self.ring is not None and self.ring.id == c.id and self.ring.label != c.label:
            if self._same_side(self.ring, c):
                self.ring = c
            else:
                self._doubt(c, Introduce(c, "LIN"))
                self.ring = None
        if flag == "LIN":
            self.linearize(c)
        elif self.ring is None:
            self._find_end(c)
        elif self._same_side(self.ring, c):
            self._contest_ring(self.ring, c)
        else:
            self.send(self.id, Introduce(c, "LIN"))
            self.send(self.id, Introduce(self.ring, "LIN"))
            self.ring = None

    def _find_end(self, c: Ref) -> None:
        """Algorithm 2, lines 26-29: one end takes the other as ring edge, others pass it on."""
        for side in SIDES:
            if not self.beyond(OPPOSITE[side], c, self.me):
                continue
            known = self.neighbour(side)
            if known is None:
                self.ring = c
            else:
                self.send(known.id, Introduce(c, "CYC"))

    def _contest_ring(self, ring: Ref, c: Ref) -> None:
        """Algorithm 2, lines 31-34: the farther one is the ring edge.

        E1: line 34 introduces u.ring to w, which is u.ring itself, also when it was c already.
        Amended: the loser is told, if there is one.
        """
        farther = ring if c == ring or self._distance(ring) >= self._distance(c) else c
        nearer = c if farther == ring else ring
        self.ring = farther
        if nearer != farther:
            self.send(self.id, Introduce(nearer, "LIN"))
        if "E1" not in self.amendments:
            self.send(farther.id, Introduce(farther, "LIN"))
        elif nearer != farther:
            self.send(nearer.id, Introduce(farther, "LIN"))

    # Forgetting

    def remove_connections(self, node: NodeId) -> None:
        """REMOVECONNECTIONS(u), never defined: forget u wherever it is stored."""
        for name in ("left", "right", "ring"):
            known = self.neighbour(name)
            if known is not None and known.id == node:
                setattr(self, name, None)
        for bits, owner in self.shortcuts.items():
            if owner == node:
                self.shortcuts[bits] = None

    def drop_own_references(self) -> None:
        """E2 amended: no variable refers to the node itself, no neighbour lacks a label (E11)."""
        for name in ("left", "right", "ring"):
            known = self.neighbour(name)
            if known is not None and self.ignores(known):
                setattr(self, name, None)
        if "E2" in self.amendments:
            for bits, owner in self.shortcuts.items():
                if owner == self.id:
                    self.shortcuts[bits] = None

    def ignores(self, v: Ref) -> bool:
        """E2: nothing keeps a node from being its own neighbour. E11: nor one without a label.

        Amended: such a reference is dropped on receipt.
        """
        own = v.id == self.id and "E2" in self.amendments
        return own or (v.label is None and "E11" in self.amendments)

    # Order

    def reaches(self, side: str, a: Ref, b: Ref) -> bool:
        """Is `a` at `b` or beyond it on `side`? (a <= b for left, a >= b for right)"""
        if a.label is None or b.label is None:
            return False
        first, second = self._key(a), self._key(b)
        return first <= second if side == "left" else first >= second

    def beyond(self, side: str, a: Ref, b: Ref) -> bool:
        """Is `a` strictly beyond `b` on `side`?"""
        if a.label is None or b.label is None:
            return False
        first, second = self._key(a), self._key(b)
        return first < second if side == "left" else first > second

    def _same_side(self, a: Ref, b: Ref) -> bool:
        return any(self.beyond(s, a, self.me) and self.beyond(s, b, self.me) for s in SIDES)

    def _key(self, ref: Ref) -> tuple[int, int]:
        """E3: labels alone do not order nodes, two may be equal. Amended: the id decides."""
        return position(ref.label or ""), ref.id if "E3" in self.amendments else 0

    def _distance(self, ref: Ref) -> tuple[int, int]:
        place, tie = self._key(ref)
        mine, own_tie = self._key(self.me)
        return abs(place - mine), abs(tie - own_tie)

    # Plumbing

    def neighbour(self, name: str) -> Ref | None:
        """The variable `left`, `right` or `ring`."""
        known: Ref | None = getattr(self, name)
        return known

    def _reads(self, reading: str, erratum: str) -> bool:
        """Is `erratum` left as it is, and read this other way?"""
        return reading in self.amendments and erratum not in self.amendments

    def send(self, target: NodeId, message: Message) -> None:
        """A remote call, also of oneself."""
        self._out.append(Send(target, message))
