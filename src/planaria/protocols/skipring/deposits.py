"""Deposits: whoever publishes for others asks members of the topic to hold a record, and counts.

A copy is a member that answered `Held` after its commit; a record that was refused, is expired or
merely passed by is none. A repeated deposit is answered again and delivers nothing twice, so that
whoever hears no answer asks again, or asks another. Members remember nothing of a deposit.
"""

from collections.abc import Sequence

from planaria.core.ids import NodeId
from planaria.core.node import Command, Effect, Send
from planaria.protocols.skipring.deposit_messages import Deposit, Held, NotHeld
from planaria.records.record import Record

ANSWER_SECONDS = 2.0  # after which another member is asked, and the same one later again
PATIENCE_SECONDS = 10.0  # after which too few copies are `full`: try again

# Why a member does not hold a record.
STRANGER = "stranger"  # it is no member, not yet or not any more
MALFORMED = "malformed"
EXPIRED = "expired"  # older than what the topic keeps
FULL = "full"  # its store takes nothing now
CROWDED = "crowded"  # the topic has too many open streams
TAKEN = "taken"  # a batch that another manifest has
FORGED = "forged"  # its publisher did not sign it, or may not publish
VOLATILE = "volatile"  # it was to be on disk, and this member keeps nothing there
REASONS = (STRANGER, MALFORMED, EXPIRED, FULL, CROWDED, TAKEN, FORGED, VOLATILE)
FINAL = (MALFORMED, CROWDED, TAKEN, FORGED)  # any other member would say the same


class Entrust(Command, frozen=True):
    """Deposit a record at these members, of which this node may be one itself.

    Each answer is a `DepositAnswered`; there may be none.
    """

    topic: str
    record: Record
    members: tuple[NodeId, ...]
    spread: bool
    durable: bool = True
    stage: bool = False


class DepositAnswered(Effect, frozen=True, gc=False):
    """Tell whoever entrusted a record what a member said; no `reason`: it holds it."""

    topic: str
    member: NodeId
    key: bytes
    reason: str = ""


def deposit(command: Entrust, sender: NodeId, member: NodeId) -> Send:
    """What goes to another member."""
    how = (command.spread, command.durable, command.stage)
    return Send(member, Deposit(command.topic, sender, command.record.data, *how))


def answer(topic: str, id: NodeId, sender: NodeId, key: bytes, reason: str = "") -> Effect:
    """The word of member `id` to whoever sent a deposit, which may be its own application."""
    if sender == id:
        return DepositAnswered(topic, id, key, reason)
    if reason:
        return Send(sender, NotHeld(topic, id, key, reason))
    return Send(sender, Held(topic, id, key))


def answered(message: Held | NotHeld) -> Effect:
    """The word of another member, for the application that entrusted the record."""
    reason = message.reason if isinstance(message, NotHeld) else ""
    return DepositAnswered(message.topic, message.sender, message.key, reason)


class Copies:
    """Who holds one record by now, whom to ask next, and whether that is enough.

    `now` is any clock that never goes back, in seconds.
    """

    __slots__ = ("asked", "held", "refused", "since", "spreader", "strict", "wanted")

    def __init__(self, wanted: int, now: float, *, strict: bool = False) -> None:
        self.wanted, self.strict, self.since = max(1, wanted), strict, now
        self.asked: dict[NodeId, float] = {}  # when, the last time
        self.held: dict[NodeId, None] = {}
        self.refused: dict[NodeId, str] = {}
        self.spreader: NodeId | None = None  # whoever began the broadcast, or was asked to

    def ask(self, members: Sequence[NodeId], now: float) -> list[tuple[NodeId, bool]]:
        """Whom to ask now, and who of them is to begin the broadcast.

        As many as copies are lacking and not on their way; first whoever was never asked, in the
        order given, then whoever has been silent or unwilling for longest.
        """
        patient = now - ANSWER_SECONDS
        waiting = [one for one, at in self.asked.items() if at > patient and self._open(one)]
        lacking = self.wanted - len(self.held) - len(waiting)
        fresh = [one for one in dict.fromkeys(members) if one not in self.asked]
        again = [
            one
            for one, at in self.asked.items()
            if at <= patient and one in members and one not in self.held
        ]
        chosen = [*fresh, *sorted(again, key=lambda one: self.asked[one])][: max(0, lacking)]
        for one in chosen:
            self.asked[one] = now
            self.refused.pop(one, None)
        if not chosen or not self._unspread(patient, chosen):
            return [(one, False) for one in chosen]
        self.spreader = chosen[0]
        return [(one, one == self.spreader) for one in chosen]

    def answered(self, member: NodeId, reason: str) -> None:
        """A member said that it holds the record, or why not; who was not asked is not counted."""
        if member not in self.asked:
            return
        if reason:
            self.held.pop(member, None)
            self.refused[member] = reason
        else:
            self.refused.pop(member, None)
            self.held[member] = None

    def enough(self, members: int | None) -> bool:
        """Are these all the copies that were asked for, or that there can be?

        `members` is how many the topic has, None if that is not certain. Those without a disk can
        hold none where it is to be on disk.
        """
        if len(self.held) >= self.wanted:
            return True
        if self.strict or members is None or not self.held:
            return False
        return members <= len(self.held) + len(self._volatile)

    def all_known(self, members: Sequence[NodeId], now: float) -> bool:
        """Has it taken too long to learn how many there are, and do all of these hold it?"""
        can = [one for one in members if one not in self._volatile]
        held = bool(self.held) and all(one in self.held for one in can)
        return held and not self.strict and self._late(now)

    def refusal(self, members: Sequence[NodeId], now: float, count: int | None) -> str | None:
        """Why it is not to be had: a final reason, or FULL if trying on helps nobody now.

        `count` is how many members there are, None if that is not certain. EXPIRED only when it is,
        and all of them still say so after long: one whose memory a fault changed may call any time
        too old until it is repaired. VOLATILE when none of them has a disk.
        """
        final = [reason for reason in self.refused.values() if reason in FINAL]
        if final and (not self.held or TAKEN in final):
            return TAKEN if TAKEN in final else final[0]
        if members and all(self.refused.get(one) == FULL for one in members):
            return FULL
        late, said = self._late(now), {self.refused.get(one) for one in members}
        if said == {EXPIRED} and late and count is not None:
            return EXPIRED
        if said == {VOLATILE} and (late or (count is not None and count <= len(self._volatile))):
            return VOLATILE
        return FULL if late and not self.strict else None

    @property
    def _volatile(self) -> list[NodeId]:
        return [one for one, reason in self.refused.items() if reason == VOLATILE]

    def _late(self, now: float) -> bool:
        return now - self.since > PATIENCE_SECONDS

    def _open(self, member: NodeId) -> bool:
        return member not in self.held and member not in self.refused

    def _unspread(self, patient: float, chosen: Sequence[NodeId]) -> bool:
        """Is nobody about to broadcast it? Who is asked again is told to again."""
        one = self.spreader
        if one is None or one in self.refused or one in chosen:
            return True
        return one not in self.held and self.asked[one] <= patient
