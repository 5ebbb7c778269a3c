"""What a process of the gossip overlay remembers. Groups and their tables are their own states."""

from planaria.core.state import State
from planaria.protocols.gossip.group import Group
from planaria.protocols.gossip.membership import Membership
from planaria.protocols.gossip.memory import EventMemoryState


class Waiting(State):
    """An event of this process that waits for its group to be found."""

    topic: str
    msg_id: bytes
    payload: bytes
    sequence: int


class GossipNodeState(State):
    """The wishes of the application, the groups that follow from them, and the events it had.

    `joining` are the subscriptions of which the application was not yet told that they are in
    force, `refused` the copies in this interval that there was no room to remember.
    """

    subscribed: list[str]
    publishing: list[str]
    joining: list[str]
    groups: dict[str, Group]
    neighbours: Membership
    memory: EventMemoryState
    refused: int
    outbox: list[Waiting]
    published: int
    parasites: int
