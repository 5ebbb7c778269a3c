"""Messages between brokers. The id of the sender may be false; so may all the rest."""

from typing import Annotated

from msgspec import Meta

from planaria.core.ids import NodeId
from planaria.core.message import Message, defined_in
from planaria.filters.filters import Filter
from planaria.filters.values import Value

LEASES_MAX = 256  # in one message: some 50 kB of ordinary filters, far below a frame
STAMPS = 1 << 32  # numbers of messages go round; half of them is a longer time than a lease

LEASE_ID_MAX = 2**63 - 1

LeaseId = Annotated[int, Meta(ge=0, le=LEASE_ID_MAX)]
Stamp = Annotated[int, Meta(ge=0, lt=STAMPS)]
NotificationId = Annotated[bytes, Meta(min_length=16, max_length=16)]
Leases = Annotated[tuple[tuple[LeaseId, Filter], ...], Meta(max_length=LEASES_MAX)]


class Update(Message, frozen=True, tag="routing.update"):
    """Whoever wants what behind `sender`: new or renewed leases, and cancelled ones, in one step.

    `hello` says that the sender has just brought the link up and knows nothing of the receiver.
    """

    sender: NodeId
    stamp: Stamp
    leases: Leases
    cancels: tuple[LeaseId, ...] = ()
    hello: bool = False


class Notify(Message, frozen=True, tag="routing.notify"):
    """A notification on its way through the tree.

    `age` is how many timeouts brokers have kept it: what is old is not kept or replayed again, or
    it could outlive the ids that brokers remember.
    """

    sender: NodeId
    id: NotificationId
    attributes: dict[str, Value]
    payload: bytes = b""
    age: Annotated[int, Meta(ge=0, lt=1 << 31)] = 0


MESSAGES = defined_in(globals())
