"""One end of a link: how far it is, what was last heard, what the other end is still to get."""

from msgspec import Struct, field

from planaria.protocols.mobile.dissemination import Outbox
from planaria.protocols.mobile.messages import RECEIPT_MAX, Item, receipt

SERIALS = 256
ACKS = 8  # beats that say a receipt; if all are lost, the items come again
# Timeouts without a beat in order until an old one is believed: it is our memory that is wrong.
# Counted in beats it was not enough: what a slowed node had said long ago may come in one heap.
STALE_MAX = 6

ASKED, UP, CLOSING = "asked", "up", "closing"


class Link(Struct):
    """This node's end of a link. ASKED is the paper's 'forming'; UP may still lack a direction."""

    state: str = ASKED
    quiet: int = 0  # timeouts since the peer was last heard
    heard: int | None = None
    stale: int = 0  # timeouts since one of its beats came in order
    ack: int | None = None
    acks: int = 0  # beats that still say it
    replayed: bool = False
    outbox: Outbox = field(default_factory=Outbox)

    def repair(self, *, known: bool) -> bool:
        """Counters, and numbers that are said, in their range.

        False if there is no such state, or the orientation does not know a link that is up.
        """
        if self.quiet < 0:
            self.quiet = 0
        if self.stale < 0:
            self.stale = 0
        if self.heard is not None and not 0 <= self.heard < SERIALS:
            self.heard %= SERIALS
        if self.ack is not None and not 0 <= self.ack <= RECEIPT_MAX:
            self.ack = None
        if not 0 <= self.acks <= ACKS:
            self.acks = min(max(self.acks, 0), ACKS)
        return (self.state == UP and known) or self.state in (ASKED, CLOSING)

    def in_order(self, serial: int) -> bool:
        """Is this beat newer than the last? Old words about an orientation must stay old."""
        if self.heard is not None and not reached(serial, self.heard) and self.stale <= STALE_MAX:
            return False
        self.heard, self.stale = serial, 0
        return True

    def got(self, serial: int, items: tuple[Item, ...]) -> None:
        """Items came with the beat `serial`: acknowledge them from now on, for a while."""
        if items:
            self.ack = receipt(serial, (item.id for item in items))
            self.acks = ACKS

    def acknowledge(self) -> int | None:
        """What the next beat acknowledges."""
        self.acks -= 1
        return self.ack if self.acks >= 0 else None


def reached(serial: int, first: int) -> bool:
    """Is `serial` as late as `first`, or later? In the circle of serials half of them are."""
    return (serial - first) % SERIALS < SERIALS // 2
