"""Which events a process had: remembered for as long as a copy can travel, refused when full.

Two generations of ids: after `MEMORY` intervals the younger becomes the older, and the older is
forgotten. So nothing is forgotten that is younger than `MEMORY` intervals, and nothing kept for
twice as long, whatever a fault put in.
"""

from msgspec import Struct, field

from planaria.protocols.gossip.messages import EVENT_HOPS_MAX, SLOWEST

MEMORY = EVENT_HOPS_MAX * SLOWEST  # intervals: no copy of an event travels for longer
SEEN_MAX = 65_536  # events remembered, 10 MB: 102 an interval for ever


class EventMemory(Struct):
    """The ids of events that a process had, and how many copies it had no room to remember."""

    young: dict[bytes, None] = field(default_factory=dict)
    old: dict[bytes, None] = field(default_factory=dict)
    turn: int = 0  # intervals since the generations last changed
    refused: int = 0  # copies in this interval

    def has(self, msg_id: bytes) -> bool:
        """Did I have the event in the last `MEMORY` intervals?"""
        return msg_id in self.young or msg_id in self.old

    @property
    def full(self) -> bool:
        """Is there no room for another event? Whoever forgot one would deliver it again."""
        return len(self.young) + len(self.old) >= SEEN_MAX

    def add(self, msg_id: bytes) -> None:
        """Remember an event."""
        self.young[msg_id] = None

    def refuse(self) -> None:
        """Count a copy that cannot be remembered and so is not accepted."""
        self.refused += 1

    def on_timeout(self) -> int:
        """Forget what no copy can still be travelling of; how many copies were refused since."""
        self.turn = self.turn + 1 if 0 <= self.turn < MEMORY else 0
        if self.turn == MEMORY:
            self.young, self.old, self.turn = {}, self.young, 0
        refused, self.refused = max(0, self.refused), 0
        return refused
