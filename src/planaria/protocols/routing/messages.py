"""Messages between brokers. The id of the sender may be false; so may all the rest."""

from typing import Annotated

from msgspec import Meta

from planaria.core.ids import NodeId
from planaria.core.message import Message, defined_in
from planaria.filters.filters import Filter
from planaria.filters.values import Value

LEASES_MAX = 256  # in one message: some 50 kB of ordinary filters, far below a frame
STAMPS = 1 << 32  # numbers of messages go round; half of them is a longer time than a lease
SESSIONS = 1 << 32  # drawn anew for each link: two in a row are the same once in as many
ACKNOWLEDGED_MAX = 1_024  # ids or stamps in one message
BEATS_MAX = 32  # that a broker remembers and shows to a new neighbour

LEASE_ID_MAX = 2**63 - 1
ID_BYTES = 16

LeaseId = Annotated[int, Meta(ge=0, le=LEASE_ID_MAX)]
Stamp = Annotated[int, Meta(ge=0, lt=STAMPS)]
Session = Annotated[int, Meta(ge=0, lt=SESSIONS)]
NotificationId = Annotated[bytes, Meta(min_length=ID_BYTES, max_length=ID_BYTES)]
Leases = Annotated[tuple[tuple[LeaseId, Filter], ...], Meta(max_length=LEASES_MAX)]
Ids = Annotated[tuple[NotificationId, ...], Meta(max_length=ACKNOWLEDGED_MAX)]
Stamps = Annotated[tuple[Stamp, ...], Meta(max_length=ACKNOWLEDGED_MAX)]
Beats = Annotated[tuple[NotificationId, ...], Meta(max_length=BEATS_MAX)]


class Update(Message, frozen=True, tag="routing.update"):
    """Whoever wants what behind `sender`: new or renewed leases, and cancelled ones, in one step.

    A `session` that the receiver has not seen says that the sender has just brought the link up
    and knows nothing of the receiver. `asks`: acknowledge the stamp.
    """

    sender: NodeId
    stamp: Stamp
    leases: Leases
    cancels: tuple[LeaseId, ...] = ()
    session: Session = 0
    asks: bool = False


class Notify(Message, frozen=True, tag="routing.notify"):
    """A notification on its way through the tree.

    `age` is how many timeouts brokers have kept it: what is old is not kept or replayed again, or
    it could outlive the ids that brokers remember. `after` is the id that the sender's queue for
    this link had before it, empty if there was none. `gap`: stands for so many that were given up.
    """

    sender: NodeId
    id: NotificationId
    attributes: dict[str, Value]
    payload: bytes = b""
    age: Annotated[int, Meta(ge=0, lt=1 << 31)] = 0
    after: Annotated[bytes, Meta(max_length=ID_BYTES)] = b""
    gap: Annotated[int, Meta(ge=0, lt=1 << 31)] = 0


class Received(Message, frozen=True, tag="routing.received"):
    """The sender holds these notifications, and has taken the updates with these stamps."""

    sender: NodeId
    session: Session
    ids: Ids = ()
    stamps: Stamps = ()


class Beat(Message, frozen=True, tag="routing.beat"):
    """The root of the sender's tree drew `id`: whoever hears of it is in that tree now."""

    sender: NodeId
    id: NotificationId


class Acquainted(Message, frozen=True, tag="routing.acquainted"):
    """To a new neighbour: the beats that reached the sender within a period of the memory.

    `settled`: it has been hearing beats for longer than that.
    """

    sender: NodeId
    beats: Beats
    settled: bool = False


MESSAGES = defined_in(globals())
