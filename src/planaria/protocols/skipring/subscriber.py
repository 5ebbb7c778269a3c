"""The subscriber's part of the skip ring for one topic (paper, section 3.2, Algorithm 4), amended.

The rules are those of docs/overlays/ring.md: the supervisor alone writes label and ring
neighbours; peers compare what they hear with what they have, and whoever sees a contradiction
asks. Shortcuts are established bottom up by introductions. While no supervisor answers, peers
repair the ring among themselves (`orphan`).
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from planaria.core.ids import NodeId, mixed
from planaria.core.message import Message
from planaria.core.node import Send
from planaria.protocols.publications.antientropy_messages import Digest
from planaria.protocols.ring.messages import Check, Introduce, Remove
from planaria.protocols.skipring.inquiry import DUE_MAX, PATIENCE
from planaria.protocols.skipring.messages import (
    WINDOW_MAX,
    GetConfiguration,
    Greeting,
    IntroduceShortcut,
    Moved,
    Ref,
    RemoveConnections,
    SetData,
    Unsubscribe,
    Wake,
)
from planaria.protocols.skipring.orphan import Orphan, OrphanState
from planaria.protocols.skipring.pace import Pace, PaceState
from planaria.protocols.skipring.place import SUM_AGE_MAX
from planaria.protocols.skipring.sums import children, parent, place_sum

SILENCE_MAX = 8  # timeouts without a CHECK before a ring neighbour is missed (E21)


class SubscriberState(OrphanState):
    """All that one member of one topic's skip ring remembers."""

    missing: list[int]
    silence: tuple[int, int]
    spread_pause: int
    pace: PaceState


class Subscriber(Orphan):
    """One member, or one that wants to join or leave, of one topic's skip ring."""

    __slots__ = ("missing", "pace", "silence", "spread_pause")
    state_type = SubscriberState

    def __init__(
        self,
        topic: str,
        id: NodeId,
        supervisors: Sequence[NodeId],
        rng: Random,
        pace_max: int = 1,
    ) -> None:
        super().__init__(topic, id, supervisors, rng)
        self.pace = Pace(pace_max)
        self.missing: list[NodeId] = []
        self.silence: tuple[int, int] = (0, 0)
        self.spread_pause = 0  # timeouts for which I pass on no further word that all must ask

    @property
    def alarmed(self) -> bool:
        """Has it seen something wrong that the supervisor has not yet put right?"""
        return self.inquiry.due is not None

    def repair(self) -> None:
        """Put my own variables right: only ring neighbours can be missed."""
        super().repair()
        if self.missing:
            beside = [ref[1] for ref in self.ring]
            self.missing = [id for id in dict.fromkeys(self.missing) if id in beside]
        if not 0 <= self.spread_pause <= WINDOW_MAX:
            self.spread_pause = 0

    # Time

    def on_timeout(
        self, digest: Callable[[], Digest | None] = lambda: None, *, doubt: bool = False
    ) -> list[Send]:
        """TIMEOUT: repair, ask if something is wrong, greet ring neighbours and shortcuts.

        A topic in which nothing happens is calm, unless somebody is in `doubt`.
        """
        self.repair()
        self.age(SUM_AGE_MAX * self.pace.longest)
        self.spread_pause = max(0, self.spread_pause - 1)
        if self.leaving:
            self.inquiry.alarm(1)
            return self._ask_to_leave() if self.inquiry.on_timeout(1.0, 1) else []
        effects: list[Send] = []
        if self.label is not None:
            self._notice_trouble()
        promise = self.pace.on_timeout(doubt=doubt or self.troubled, shown=self.shown())
        if promise:
            effects += self._greet(digest(), promise)
        effects += self._ask_when_due(self.probability if promise else 0.0)
        if self.inquiry.hopeless:
            effects += self.help_ourselves()
        return effects

    def _notice_trouble(self) -> None:
        """Local evidence that something is wrong: implausible gaps (A3), silence (E21).

        A new neighbour may itself still wait for its configuration, for about a window.
        """
        if not self.around.plausible:
            self.inquiry.alarm(self.window)
        patience = SILENCE_MAX * (self.pace.longest - 1)  # with neighbours that are calm
        before, after = (max(silent, -patience) + 1 for silent in self.silence)
        self.silence = (before if self.pred else 0, after if self.succ else 0)
        for ref, silent in zip((self.pred, self.succ), self.silence, strict=True):
            if ref is not None and silent > max(SILENCE_MAX, self.window):
                self._miss(ref[1])

    @property
    def troubled(self) -> bool:
        """Is there a reason to speak in every interval?"""
        return self.alarmed or bool(self.missing or self.inquiry.waiting) or self.orphan is not None

    def shown(self) -> int:
        """One number for my place and my subtree: if it changes, others must hear of it.

        Of what is held they hear by broadcasts, which wake a topic, and soon after by digests.
        """
        if self.label is None or self.pace.longest == 1:
            return 0
        below = sum(total for total, _ in self.child_sums.values())
        return mixed(self.label, *(self.pred or (0, 0)), *(self.succ or (0, 0)), below)

    def _greet(self, digest: Digest | None, promise: int) -> list[Send]:
        """CHECK to both ring neighbours; introduce my two level neighbours to each other."""
        if self.label is None:  # only a member greets
            return []
        me: Ref = (self.label, self.id)
        ring = self.ring[:1] if self.pred == self.succ else self.ring
        effects = [Send(ref[1], Greeting(self.topic, me, ref[0], digest, promise)) for ref in ring]
        left, right = self.level_neighbours()
        above, subtree = parent(self.label), self.subtree()
        ends = ((left, right),) if left == right else ((left, right), (right, left))
        for ref, other in ends:
            if ref is None or ref == self.pred == self.succ:
                continue
            # Labels 0 and 1 have one level neighbour: no introduction to itself (E20).
            shown = None if other is None or other[1] == ref[1] else other
            total = subtree if ref[0] == above else None
            if shown is None and total is None:
                continue
            word = IntroduceShortcut(self.topic, me, shown, total, digest, promise)
            effects.append(Send(ref[1], word))
        return effects

    # Messages

    def on_message(self, message: Message) -> list[Send]:
        """Take any message about my place, however false."""
        handler = _HANDLERS.get(type(message))
        return handler(self, message) if handler else []

    def on_set_data(self, message: SetData) -> list[Send]:
        """SETDATA: the supervisor's word replaces mine; whoever it displaces is woken (A2)."""
        self.repair()
        if not self.inquiry.heed(message):
            # Overtaken, but whoever is asked whether it is alive must say so.
            asked = message.probe and message.supervisor == self.inquiry.supervisor
            return [self._request(message.supervisor)] if asked and not self.leaving else []
        self.inquiry.calm()
        self.orphan = None
        if self.leaving or message.label is None:
            return self._depart(message)
        before = self.neighbours() if message.label != self.label else self.ring
        right = (self.label, self.pred, self.succ) == (message.label, message.pred, message.succ)
        spread = self._spread(message.window, self.window) if message.spread and not right else []
        self.missing = []
        if (self.pred, self.succ) != (message.pred, message.succ):
            self.silence = (0, 0)
        self.label, self.pred, self.succ = message.label, message.pred, message.succ
        self.repair()
        kept = [ref[1] for ref in self.ring]
        woken = dict.fromkeys(ref[1] for ref in before if ref[1] not in kept)
        effects = spread or [Send(id, Wake(self.topic, message.window)) for id in woken]
        if message.probe:
            effects.append(self._request(message.supervisor))
        return effects

    def on_moved(self, message: Moved) -> list[Send]:
        """My supervisor says that a closer one is alive: ask that one."""
        self.repair()
        if self.inquiry.move(message.supervisor, message.to):
            self.inquiry.alarm(self.window)
        return []

    def on_greeting(self, message: Greeting) -> list[Send]:
        """CHECK: fine if both ends agree, else both ask (A1)."""
        self.repair()
        label, sender = message.sender
        if sender == self.id:
            return []
        if not self.member or self.leaving:
            return self._decline(sender)
        self._hear(sender, message.promise)
        if message.believed == self.label and message.sender in (self.pred, self.succ):
            return []
        window = self.window
        self.inquiry.alarm(window)
        effects = [Send(sender, Wake(self.topic, window))]
        if self.orphan is not None:
            effects += self.orphan.learn((label, sender), self.guides())
        return effects

    def on_introduce_shortcut(self, message: IntroduceShortcut) -> list[Send]:
        """INTRODUCESHORTCUT: fill the slot if the sender lies between me and it (H6); two claimants
        both ask (A4).

        Believed from anybody, false shortcuts could introduce each other for ever.
        """
        self.repair()
        label, sender = message.sender
        if sender == self.id:
            return []
        if not self.member or self.leaving:
            return self._decline(sender)
        self._hear(sender, message.promise)
        assert self.label is not None
        if message.subtree is not None and label in children(self.label):
            self.child_sums[label] = (message.subtree, SUM_AGE_MAX * (1 - message.promise))
        if message.ref is None or message.ref[1] == self.id:
            return []
        slot, claimant = message.ref
        if label not in self.ways_to(slot):
            return []
        known = self.shortcuts.get(slot)
        self.shortcuts[slot] = claimant
        if known is None or known == claimant:
            return []
        return [Send(id, Wake(self.topic, self.window)) for id in (known, claimant)]

    def on_wake(self, message: Wake) -> list[Send]:
        """WAKE: somebody saw a contradiction that concerns me, or a supervisor wants us all."""
        self.repair()
        if not self.member:
            return []
        self.inquiry.alarm(message.window)
        return self._spread(message.window, message.hops - 1) if message.hops > 0 else []

    def _spread(self, window: int, hops: int) -> list[Send]:
        """Wake all neighbours and theirs, before I have my own answer; once per window.

        Each of them asks at a moment of its own within log n timeouts.
        """
        if self.spread_pause:
            return []
        self.spread_pause = self.window
        window, hops = max(window, self.window), min(hops, WINDOW_MAX)
        wake = Wake(self.topic, min(window, WINDOW_MAX), hops)
        return [Send(id, wake) for _, id in self.neighbours()]

    def on_remove_connections(self, message: RemoveConnections) -> list[Send]:
        """REMOVECONNECTIONS: forget a node that is not a member, and ask who takes its place."""
        self.repair()
        if self.forget(message.sender):
            self.inquiry.alarm(self.window)
        if self.orphan is not None:
            self.orphan.forget(message.sender)
        return []

    def doubt(self, id: NodeId, label: int | None) -> None:
        """A broadcast was refused: `id` says it is at `label`; if I believe otherwise, ask."""
        self.repair()
        if any(ref[1] == id and ref[0] != label for ref in self.neighbours()):
            self.inquiry.alarm(self.window)

    def on_link_down(self, peer: NodeId) -> list[Send]:
        """A send to `peer` failed: do without the shortcut, miss the ring neighbour."""
        self.repair()
        self.shortcuts = {label: id for label, id in self.shortcuts.items() if id != peer}
        if peer in [ref[1] for ref in self.ring]:
            self._miss(peer)
        if self.orphan is not None:
            self.orphan.forget(peer)
        if peer == self.inquiry.supervisor:
            self.inquiry.wait(PATIENCE)
        return []

    def on_link_up(self, peer: NodeId) -> None:
        """A neighbour that was missed can be reached again: accuse it no more."""
        self.missing = [id for id in self.missing if id != peer]

    def prefer(self, supervisors: Sequence[NodeId]) -> None:
        """The set of supervisors changed: these are they, in my topic's order."""
        self.repair()
        self.inquiry.prefer(supervisors, self.window)
        if self.alarmed:
            self.pace.rest = 0

    def join(self) -> list[Send]:
        """Ask for a place at once: whoever waits for the next timeout waits half an interval."""
        self.repair()
        fresh = not self.member and not self.inquiry.waiting
        return self._ask_when_due(0.0) if fresh else []

    def leave(self) -> list[Send]:
        """Begin to leave; the ring lets me go when the supervisor has forgotten me."""
        self.leaving = True
        self.pace.rest = 0
        return self._ask_to_leave()

    # Asking

    def _miss(self, id: NodeId) -> None:
        if id not in self.missing:
            self.missing = [*self.missing, id]
        self.inquiry.alarm(self.window)

    def _ask_when_due(self, probability: float) -> list[Send]:
        """Actions (i), (ii), (iv): ask when alarmed, else so rarely that all ask less than once.

        One without a label asks at once, then ever more rarely: it does not know how many join
        beside it, and its first request stands in the supervisor's outbox.
        """
        window = self.window
        if not self.member:
            window = min(DUE_MAX, 1 + self.inquiry.waiting)
            if not self.alarmed:
                self.inquiry.alarm(1)
        if not self.inquiry.on_timeout(probability, window):
            return []
        asked = self.inquiry.supervisor
        return [] if asked is None else [self._request(asked)]

    def _request(self, supervisor: NodeId) -> Send:
        sums, label = self.children_sums(), self.label
        place = None if label is None else place_sum(label, self.pred, self.succ)
        request = GetConfiguration(self.topic, self.id, label, sums, self.missing, place)
        return Send(supervisor, request)

    # Leaving

    def _ask_to_leave(self) -> list[Send]:
        asked = self.inquiry.supervisor
        if not self.member or asked is None:
            return []
        return [Send(asked, Unsubscribe(self.topic, self.id))]

    def _depart(self, message: SetData) -> list[Send]:
        """Permission to go, or word that I am not recorded: let go of everybody.

        A leaver that is told a label answers that it leaves (E7); one that wants to stay asks anew.
        """
        if self.leaving and message.label is not None:
            self.label = message.label
            return [Send(message.supervisor, Unsubscribe(self.topic, self.id))]
        gone = RemoveConnections(self.topic, self.id)
        effects = [Send(id, gone) for _, id in self.neighbours()]
        self.vacate()
        self.missing = []
        if not self.leaving:
            self.inquiry.alarm(1)
        return effects

    def _decline(self, sender: NodeId) -> list[Send]:
        """I am not in the ring: whoever believes so must forget me, unless I am about to be (E11).

        The first to be configured know neighbours that are still waiting for their configuration.
        """
        joining = not self.leaving and 0 < self.inquiry.waiting < PATIENCE
        return [] if joining else [Send(sender, RemoveConnections(self.topic, self.id))]

    def _hear(self, sender: NodeId, promise: int) -> None:
        before, after = self.silence
        # From now on SILENCE_MAX times what was promised is too long.
        heard = max(0, self.window - SILENCE_MAX) - SILENCE_MAX * (promise - 1)
        if self.pred and self.pred[1] == sender:
            before = heard
        if self.succ and self.succ[1] == sender:
            after = heard
        self.silence = (before, after)
        if self.orphan is not None and sender in self.orphan.silence:
            self.orphan.silence[sender] = 0  # not everybody has noticed that nobody answers
        if sender in self.missing:
            self.missing = [id for id in self.missing if id != sender]


_HANDLERS: dict[type[Message], Callable[[Subscriber, Any], list[Send]]] = {
    SetData: Subscriber.on_set_data,
    Moved: Subscriber.on_moved,
    Greeting: Subscriber.on_greeting,
    IntroduceShortcut: Subscriber.on_introduce_shortcut,
    Wake: Subscriber.on_wake,
    RemoveConnections: Subscriber.on_remove_connections,
    Check: Subscriber.on_ring_message,
    Introduce: Subscriber.on_ring_message,
    Remove: Subscriber.on_ring_message,
}
