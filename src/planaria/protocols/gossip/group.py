"""One group of a process: its two tables, and whether it has been found."""

from msgspec import Struct

from planaria.core.ids import NodeId
from planaria.protocols.gossip.links import Links
from planaria.protocols.gossip.membership import Membership

SETTLE = 8  # intervals to look for one's group before one is believed to be alone in it


class Group(Struct):
    """One group that the process is in: its view, its supertopic table, how long it has been."""

    membership: Membership
    links: Links
    intervals: int = 0

    def belongs(self, me: NodeId, topic: str) -> None:
        """Whatever its tables say: they are those of `me` in the group of `topic`."""
        self.membership.me = self.links.me = me
        self.membership.group = self.links.topic = topic

    @property
    def settled(self) -> bool:
        """Has the group been found, or been given up?"""
        return bool(self.membership.view) or self.intervals >= SETTLE
