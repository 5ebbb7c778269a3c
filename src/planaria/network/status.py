"""How a node is, as one typed value: what `/status`, `planaria top` and `doctor` read."""

from datetime import datetime

from msgspec import Struct

from planaria.core.ids import NodeId


class Settled(Struct, frozen=True):
    """What is held of the seconds from `since` to before `cut`, on which members must agree."""

    since: int
    cut: int
    records: int
    digest: str


class TopicStatus(Struct, frozen=True):
    """One topic at one node. `members` is known to the supervisor that serves it.

    `charter` is the version that is obeyed; 0: there is none.
    """

    member: bool = False
    label: int | None = None
    alarmed: bool = False
    leaving: bool = False
    served: bool = False
    supervisor: NodeId | None = None
    legitimate: bool = True
    doubts: list[str] = []
    evidence_intervals: int = 0
    configured_intervals: int = 0
    publications: int = 0
    records: int = 0
    bytes: int = 0
    members: int | None = None
    charter: int = 0
    settled: list[Settled] = []


class Shown(Struct, frozen=True):
    """Some of the topics of a node, in the order of names; none: there are no more."""

    topics: dict[str, TopicStatus]


class SupervisorStatus(Struct, frozen=True):
    """A supervisor that a node knows; `alive` is None where it has no link to it."""

    handle: NodeId
    addresses: tuple[str, ...] = ()
    alive: bool | None = None


class LinkStatus(Struct, frozen=True):
    """A link to another node; bytes not yet acknowledged, seconds since it was heard of.

    `carried` are the messages of the kinds that carry publications which have arrived there.
    """

    peer: NodeId
    address: str | None
    busy: bool
    unacknowledged: int
    silent: float
    carried: int = 0


class FollowedStatus(Struct, frozen=True):
    """What a client follows; `behind` are the publications held here that it was not sent yet.

    None: they are too many streams to count. `lost` are those for which there was no room, in an
    overlay that keeps none.
    """

    pattern: str
    overlay: str = "ring"
    where: str | None = None
    behind: int | None = 0
    lost: int = 0


class PublishedStatus(Struct, frozen=True):
    """What a client has published through this node since it connected, in one stream."""

    topic: str
    stream: str
    overlay: str = "ring"
    publications: int = 0


class ClientStatus(Struct, frozen=True):
    """A client that is connected; `name` is that of its certificate, None where there are none.

    `seconds` since it came, `sent` and `received` as its node counts bytes; of what it follows and
    publishes some are listed, and all counted.
    """

    id: str
    name: str | None
    address: str
    seconds: float
    sent: int
    received: int
    unacknowledged: int = 0
    requests: int = 0
    unanswered: int = 0
    follows: list[FollowedStatus] = []
    follows_total: int = 0
    publishes: list[PublishedStatus] = []
    publishes_total: int = 0


class ContactStatus(Struct, frozen=True):
    """A node that this one has heard of; it may be gone."""

    handle: NodeId
    id: str
    addresses: tuple[str, ...]


class Queues(Struct, frozen=True):
    """What waits: messages for nodes that are dialled, bytes for links, bytes for the disk."""

    messages: int = 0
    link_bytes: int = 0
    store_bytes: int = 0


class Totals(Struct, frozen=True):
    """All topics together, also those that a status does not show."""

    topics: int = 0
    doubtful: int = 0
    publications: int = 0
    records: int = 0
    bytes: int = 0
    members: int = 0

    @property
    def legitimate(self) -> bool:
        """Is nothing known to be wrong with any?"""
        return not self.doubtful


class OverlayTopic(Struct, frozen=True):
    """What a node takes part in: how many there are, as far as it knows, and whom it knows."""

    members: int | None = None
    neighbours: int = 0


class OverlayStatus(Struct, frozen=True):
    """A node's part in an overlay other than `ring`.

    `lost` counts what clients did not get because they were too slow; no store could help them.
    `received` and `forwarded` are copies, from and to other nodes, whoever wants them.
    """

    topics: dict[str, OverlayTopic] = {}
    neighbours: list[NodeId] = []
    legitimate: bool = True
    doubts: list[str] = []
    clients: int = 0
    published: int = 0
    deliveries: int = 0
    lost: int = 0
    received: int = 0
    forwarded: int = 0


class StoreStatus(Struct, frozen=True):
    """The store on disk; `stalled` says why it cannot write."""

    path: str
    bytes: int
    pending_bytes: int
    stalled: str | None
    damaged: bool


class ProcessStatus(Struct, frozen=True):
    """The process; None where the system does not tell."""

    pid: int
    cpu_seconds: float
    resident_bytes: int | None = None
    descriptors: int | None = None


class Status(Struct, frozen=True, kw_only=True):
    """A node, as it knows itself."""

    id: str
    handle: NodeId
    name: str
    cluster: str
    version: str
    wire: tuple[int, ...]
    listen: tuple[str, ...]
    http: str | None
    secure: bool
    certificate_expires: datetime | None
    time: float
    uptime: float
    interval: float
    pace: int  # intervals between two words of a calm topic, at most
    supervises: bool
    supervisors: list[SupervisorStatus]
    legitimate: bool
    doubts: list[str]
    evidence_age: float
    topics: dict[str, TopicStatus]
    totals: Totals
    links: list[LinkStatus]
    links_total: int
    links_busy: int
    clients: int
    connected: list[ClientStatus] = []  # of them the first, for who may supervise everything
    contacts: list[ContactStatus]
    contacts_total: int
    queues: Queues
    drops: int
    malformed: int
    late: int
    deliveries: int = 0
    requests: int
    answers: int
    overlays: dict[str, OverlayStatus] = {}  # those beside `ring` in which it is awake
    store: StoreStatus | None
    process: ProcessStatus
