"""Algorithm 4: the subscriber's part of BuildSR, and leaving (section 4.1).

Kind readings: 'update shortcuts' passes a reference on that has no slot any more (E17 says how);
'update left, right, ring' makes a predecessor that is not below the own label the ring edge, and
a successor that is not above it.
"""

from random import Random

from planaria.core import node as core
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Command, Effects
from planaria.core.state import State
from planaria.literal.skipring.amendments import E13_TEXT, E14_TEXT
from planaria.literal.skipring.labels import Endless, chain, inverse, position
from planaria.literal.skipring.messages import (
    Check,
    GetConfiguration,
    Introduce,
    IntroduceShortcut,
    Linearize,
    Ref,
    RemoveConnections,
    SetData,
    Subscribe,
    Unsubscribe,
)
from planaria.literal.skipring.ring import OPPOSITE, SIDES, RingNode

SILENCE_MAX = 4  # E21: so many timeouts without a CHECK, and a ring neighbour is not believed


class SubscriberState(State):
    """The variables of the text, what the amendments add, and counts for whoever measures."""

    label: str | None
    left: Ref | None
    right: Ref | None
    ring: Ref | None
    shortcuts: dict[str, int | None]
    silence: dict[int, int]
    wants: bool
    deepest: int | None
    hung: bool
    sent: int
    timeouts: int


class Subscriber(RingNode):
    """A subscriber of the one topic there is; `supervisor` is hard-coded, as in the paper."""

    state_type = SubscriberState

    def __init__(
        self, id: NodeId, rng: Random, amendments: frozenset[str], supervisor: NodeId
    ) -> None:
        super().__init__(id, rng, amendments)
        self.supervisor = supervisor
        self.wants = True  # what the application said; only amendment E7 looks at it
        self.silence: dict[NodeId, int] = {}
        # ceil(log n), which the text uses and never tells a node; tests may set it (E4).
        self.deepest: int | None = None
        self.hung = False
        self.sent = 0
        self.timeouts = 0

    # Inputs

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """A remote call, from whomever; who is caught in an endless loop hears nothing."""
        if self.hung:
            return ()
        self.repair()
        match message:
            case Check(asker, label, flag):
                self.silence[asker.id] = 0
                self.check(asker, label, flag)
            case Linearize(node):
                self.linearize(node)
            case Introduce(node, flag):
                self.introduce(node, flag)
            case RemoveConnections(node):
                self.remove_connections(node)
            case IntroduceShortcut(node):
                self.introduce_shortcut(node)
            case SetData(pred, label, succ):
                self.set_data(pred, label, succ)
        return self._drain()

    def on_timeout(self) -> Effects:
        """TIMEOUT."""
        if self.hung:
            return ()
        self.timeouts += 1
        self.repair()
        try:
            self.build_ring_timeout()
            self.update_shortcuts()
            self.ask()
            self.introduce_level()
        except Endless:
            self.hung = True
        return self._drain()

    def on_command(self, command: Command) -> Effects:
        """Subscribe, or ask to leave. A failed send is no news: only the supervisor detects."""
        if isinstance(command, core.Subscribe):
            self.wants = True
        elif isinstance(command, core.Unsubscribe):
            self.wants = False
            self.send(self.supervisor, Unsubscribe(self.id))
        return self._drain()

    def repair(self) -> None:
        """E12: the text computes with the label ''. Amended: such an own label is no label."""
        if "E12" in self.amendments and self.label is not None and inverse(self.label) is None:
            self.label = None
        self.drop_own_references()

    # Algorithm 4, TIMEOUT

    def ask(self) -> None:
        """Lines 4-11: actions (i), (ii) and (iv).

        E7: a node that was let go has no label, so it subscribes again. Amended: it remembers
        that it left, and repeats UNSUBSCRIBE while it has a label.
        """
        if "E7" in self.amendments and not self.wants:
            if self.label is not None:
                self.send(self.supervisor, Unsubscribe(self.id))
        elif self.label is None:
            self.send(self.supervisor, Subscribe(self.id))
        elif self._missed_a_neighbour():
            self.send(self.supervisor, GetConfiguration(self.id, self.id))
        else:
            for probability in self.request_probabilities():
                if self.rng.random() < probability:
                    self.send(self.supervisor, GetConfiguration(self.id, self.id))

    def request_probabilities(self) -> list[float]:
        """Action (iv) for the minimal label, else action (ii); the prose runs both.

        E14: 1/(2^k k^2) makes one request or more per interval for every n >= 2. Amended: half.
        E19: 'thinks that its label is minimal' read as label '0'. Amended: no left neighbour.
        E12: with the label '' action (ii) divides by zero; read charitably, it is not run.
        """
        k = len(self.label or "")
        second = 1.0 / (2 ** (k + 1 if "E14" in self.amendments else k) * k * k) if k else 0.0
        minimal = self.left is None if "E19" in self.amendments else self.label == "0"
        if not minimal:
            return [second]
        return [1 / 2, second] if self._reads(E14_TEXT, "E14") else [1 / 2]

    def _missed_a_neighbour(self) -> bool:
        """E21: a crashed neighbour of an unrecorded node is never noticed.

        Amended: a ring neighbour whose CHECK stays away is a reason to ask.
        """
        present = [known.id for known in (self.left, self.right, self.ring) if known is not None]
        self.silence = {id: self.silence.get(id, 0) + 1 for id in present}
        return "E21" in self.amendments and max(self.silence.values(), default=0) > SILENCE_MAX

    def update_shortcuts(self) -> None:
        """Line 3: exactly the labels of section 3.2.2, references kept where there are any."""
        expected = [bits for side in SIDES for bits in self._chain(side)]
        old = self.shortcuts
        self.shortcuts = {bits: old.get(bits) for bits in expected}
        for bits, owner in old.items():
            if owner is not None and bits not in self.shortcuts:
                self._pass_on(Ref(bits, owner))

    def introduce_level(self) -> None:
        """Lines 12-14: introduce the two neighbours on the level of the own label.

        E20: the labels 0 and 1 have one level-1 neighbour, which is introduced to itself.
        Amended: there must be two.
        """
        pair = self._level_pair()
        if pair is None or ("E20" in self.amendments and pair[0].id == pair[1].id):
            return
        self.send(pair[0].id, IntroduceShortcut(pair[1]))
        self.send(pair[1].id, IntroduceShortcut(pair[0]))

    def _level_pair(self) -> tuple[Ref, Ref] | None:
        """The neighbours on level |label|.

        E4: they are looked for in the shortcuts, or on the ring if |label| = ceil(log n). A node
        that is not told n takes the ring if it has no shortcuts. Amended: side by side.
        """
        if self.label is None:
            return None
        if "E4" in self.amendments:
            found: list[Ref | None] = [self._level_neighbour(side) for side in SIDES]
        elif self._deepest_level():
            found = [self._beside(side) for side in SIDES]
        else:
            k = len(self.label)
            near = [Ref(b, v) for b, v in self.shortcuts.items() if len(b) <= k and v is not None]
            found = [near[0], near[-1]] if near else []
        pair = [ref for ref in found if ref is not None]
        return (pair[0], pair[1]) if len(pair) == 2 else None

    def _deepest_level(self) -> bool:
        if self.deepest is not None:
            return len(self.label or "") == self.deepest
        return not self.shortcuts

    def _level_neighbour(self, side: str) -> Ref | None:
        """E4 amended: the end of the chain of this side, or the ring neighbour if it has none."""
        labels = self._chain(side)
        if not labels:
            return self._beside(side)
        owner = self.shortcuts.get(labels[-1])
        return None if owner is None else Ref(labels[-1], owner)

    def _beside(self, side: str) -> Ref | None:
        """The ring neighbour on `side`, stored in `ring` at the ends of the line."""
        known = self.neighbour(side)
        if known is not None:
            return known
        closes = self.ring is not None and self.beyond(OPPOSITE[side], self.ring, self.me)
        return self.ring if closes else None

    def _chain(self, side: str) -> list[str]:
        beside = self._beside(side)
        if self.label is None or beside is None or beside.label is None:
            return []
        return chain(self.label, beside.label)

    # Algorithm 4, remote calls

    def set_data(self, pred: Ref | None, label: str | None, succ: Ref | None) -> None:
        """SETDATA(pred, label, succ)."""
        if "E7" in self.amendments and not self.wants and label is not None:
            self.send(self.supervisor, Unsubscribe(self.id))
            if self.label is None:
                return
        self.label = label
        self.repair()
        pred, succ = (None if ref is None or self.ignores(ref) else ref for ref in (pred, succ))
        before = {"left": self.left, "right": self.right, "ring": self.ring}
        after = self._placed(pred, succ)
        self._report(before, pred, succ)
        for name, ref in after.items():
            setattr(self, name, ref)
        if self.label is None:
            self.shortcuts = {}
        if "E18" not in self.amendments:
            self._linearize_displaced(before, after)

    def _placed(self, pred: Ref | None, succ: Ref | None) -> dict[str, Ref | None]:
        """'Update left, right, ring with respect to pred, succ and label' (line 20)."""
        after: dict[str, Ref | None] = {"left": None, "right": None, "ring": None}
        if self.label is None:
            return after
        for side, ref in (("left", pred), ("right", succ)):
            if ref is not None:
                after[side if self.reaches(side, ref, self.me) else "ring"] = ref
        return after

    def _report(self, before: dict[str, Ref | None], pred: Ref | None, succ: Ref | None) -> None:
        """Lines 18-19, action (iii): ask the supervisor about a closer old neighbour.

        E13: `<` in the pseudocode and `<=` in the prose, both by linear distance, which is wrong
        for the ring edge. Amended: every displaced neighbour is reported.
        """
        for name, old in before.items():
            if old is None:
                continue
            if "E13" in self.amendments:
                reported = old.id not in [ref.id for ref in (pred, succ) if ref is not None]
            else:
                proposed = pred if self._faces_pred(name, old) else succ
                reported = self._closer(old, proposed)
            if reported:
                self.send(self.supervisor, GetConfiguration(old.id, self.id))

    def _faces_pred(self, name: str, old: Ref) -> bool:
        return name == "left" or (name == "ring" and self.beyond("right", old, self.me))

    def _closer(self, old: Ref, proposed: Ref | None) -> bool:
        if proposed is None or self.label is None:
            return True
        here = position(self.label)
        mine = abs(position(old.label or "") - here)
        theirs = abs(position(proposed.label or "") - here)
        if self._reads(E13_TEXT, "E13"):
            return proposed.id != old.id and mine <= theirs
        return mine < theirs

    def _linearize_displaced(
        self, before: dict[str, Ref | None], after: dict[str, Ref | None]
    ) -> None:
        """E18: whether an old neighbour is kept is not said; the kind reading linearizes it.

        Amended: it is dropped, for the supervisor was told (E13).
        """
        kept = [ref.id for ref in after.values() if ref is not None]
        for old in before.values():
            if old is not None and old.id not in kept:
                self.linearize(old)

    def introduce_shortcut(self, ref: Ref) -> None:
        """INTRODUCESHORTCUT(l, v).

        E5: line 26 stands beside line 24, so a reference that was right is linearized in every
        interval. Amended: only one that was replaced.
        """
        if self.ignores(ref):
            return
        bits = ref.label
        if bits is None or bits not in self.shortcuts:
            self._pass_on(ref)
            return
        old = self.shortcuts[bits]
        self.shortcuts[bits] = ref.id
        if old is not None and (old != ref.id or "E5" not in self.amendments):
            self._pass_on(Ref(bits, old))

    def _pass_on(self, ref: Ref) -> None:
        """A shortcut reference that has no slot.

        E17: it is linearized with a label known to be contested. Amended: its owner is asked
        whether that label is right.
        """
        if "E17" in self.amendments and self.label is not None:
            if not self.ignores(ref):
                self.send(ref.id, Check(self.me, ref.label, "LIN"))
        else:
            self.linearize(ref)

    def _drain(self) -> Effects:
        out, self._out = self._out, []
        self.sent += len(out)
        return out
