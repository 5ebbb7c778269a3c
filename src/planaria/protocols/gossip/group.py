"""One group of a process: its two tables, and whether it has been found."""

from collections.abc import Mapping, Sequence

from planaria.core.ids import NodeId
from planaria.core.state import State
from planaria.protocols.gossip.hierarchy import Hierarchy, group_of
from planaria.protocols.gossip.links import Links
from planaria.protocols.gossip.membership import Membership

ALONE_AFTER = 8  # intervals to look for one's group before one is believed to be alone in it


class Group(State):
    """One group that the process is in: its view, its supertopic table, how long it has been."""

    membership: Membership
    links: Links
    intervals: int = 0

    def belongs(self, me: NodeId, topic: str) -> None:
        """Whatever its tables say: they are those of `me` in the group of `topic`."""
        self.membership.me = self.links.me = me
        self.membership.group = self.links.topic = topic

    @property
    def is_found(self) -> bool:
        """Do I know another member, or have I looked long enough to believe that there is none?"""
        return bool(self.membership.view) or self.intervals >= ALONE_AFTER

    def is_joined(self, hierarchy: Hierarchy) -> bool:
        """Is the process where the legitimate state wants it, as far as it can know?"""
        return self.is_found and self.links.are_found(hierarchy)


def in_force(
    patterns: Sequence[str], groups: Mapping[str, Group], hierarchy: Hierarchy
) -> list[str]:
    """Those of `patterns` for which the process has joined each group that they are about."""
    found = []
    for pattern in patterns:
        topic = group_of(pattern)
        about = [group for own, group in groups.items() if hierarchy.includes(own, topic)]
        if about and all(group.is_joined(hierarchy) for group in about):
            found.append(pattern)
    return found
