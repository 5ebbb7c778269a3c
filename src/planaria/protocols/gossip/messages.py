"""Messages of the gossip overlay. Ages are counted in intervals since somebody heard the process.

Every message that names a process says in which group it is believed to be; both may be false.
"""

from typing import Annotated

from msgspec import Meta

from planaria.core.ids import NODE_ID_MAX, NodeId
from planaria.core.message import Message, defined_in
from planaria.core.topics import LEVELS_MAX, TOPIC_BYTES_MAX

AGE_MAX = 64  # older news of a process is no news: what nobody renews dies out within this time
SLOWEST = 5  # intervals that a fair scheduler takes for a message at most; in flight no age grows
ENTRIES_MAX = 64  # of one list in a message, but for the sketch
SKETCH_SIZE = 128  # hashes of a sketch: 9 % error, 0.09 in ln S, and g of 5 relays off by half
EVENT_HOPS_MAX = 64  # an event goes no further: two for each of the most levels a topic can have
SEQUENCE_MAX = 2**63 - 1  # fits a signed 64-bit column of a trace
NEIGHBOURHOOD = "+"  # the group of all processes; no topic is called so

Age = Annotated[int, Meta(ge=0, le=AGE_MAX)]
GroupName = Annotated[str, Meta(max_length=TOPIC_BYTES_MAX)]
Entries = Annotated[tuple[tuple[NodeId, Age], ...], Meta(max_length=ENTRIES_MAX)]
Hash = Annotated[int, Meta(ge=0, le=NODE_ID_MAX)]
Hashes = Annotated[tuple[tuple[Hash, Age], ...], Meta(max_length=SKETCH_SIZE)]
Ids = Annotated[tuple[NodeId, ...], Meta(max_length=ENTRIES_MAX)]
Contact = tuple[NodeId, GroupName, Age]  # a process and the topic it is interested in
Contacts = Annotated[tuple[Contact, ...], Meta(max_length=ENTRIES_MAX)]
Hops = Annotated[int, Meta(ge=0, le=ENTRIES_MAX)]


class GossipMessage(Message, frozen=True):
    """Base of the messages about a group."""

    group: GroupName


class Shuffle(GossipMessage, frozen=True, tag="gossip.shuffle"):
    """Some of my view, my sketch of the group's size, and my supertopic table (section V-A.2).

    `swapped` is None in a request; in an answer it lists what the answerer took over, so that
    entries move instead of multiplying.
    """

    sender: NodeId
    entries: Entries
    sketch: Hashes  # of ids
    contacts: Contacts
    swapped: Ids | None


class Subscription(GossipMessage, frozen=True, tag="gossip.subscription"):
    """`subject` joins the group; forwarded until somebody keeps it ([10])."""

    subject: NodeId
    hops: Hops


class Unsubscription(GossipMessage, frozen=True, tag="gossip.unsubscription"):
    """`subject` leaves the group and hands on some of its view."""

    subject: NodeId
    heirs: Entries


class Gone(GossipMessage, frozen=True, tag="gossip.gone"):
    """`subject` says that it is not in the group: forget it there."""

    subject: NodeId


class ContactCheck(GossipMessage, frozen=True, tag="gossip.check"):
    """Are you alive and in `group`? CHECK and NEWPROCESS in one: `need` others would be welcome."""

    sender: NodeId
    need: Hops


class Superprocesses(GossipMessage, frozen=True, tag="gossip.superprocesses"):
    """I, `sender`, am in `group`, and so are `others` (NEWPROCESS, Figure 6)."""

    sender: NodeId
    others: Entries


class Search(Message, frozen=True, tag="gossip.search"):
    """Who knows a process interested in one of `wanted`? Tell `origin` (REQCONTACT, Figure 4)."""

    origin: NodeId
    wanted: Annotated[tuple[GroupName, ...], Meta(max_length=LEVELS_MAX)]
    hops: Hops


class Found(Message, frozen=True, tag="gossip.found"):
    """Processes interested in a topic that was searched for (ANSCONTACT, Figure 4)."""

    contacts: Contacts


class Event(GossipMessage, frozen=True, tag="gossip.event"):
    """A publication on `topic` on its way through `group`, which includes it (Figure 7).

    `hops` counts the processes that sent it on, `sender` being the last.
    """

    topic: GroupName
    msg_id: Annotated[bytes, Meta(max_length=32)]
    payload: bytes
    publisher: NodeId
    sequence: Annotated[int, Meta(ge=0, le=SEQUENCE_MAX)]
    sender: NodeId
    hops: Annotated[int, Meta(ge=0, le=EVENT_HOPS_MAX)]


def speaker(message: Message) -> NodeId | None:
    """In whose name a message speaks: it counts only if it comes from there. None: in nobody's."""
    match message:
        case Shuffle(sender=id) | ContactCheck(sender=id) | Superprocesses(sender=id):
            return id
        case Gone(subject=id) | Unsubscription(subject=id) | Subscription(subject=id, hops=0):
            return id
    return None


MESSAGES = defined_in(globals())
