"""Reads the status off a running node, and changes nothing.

It shows at most `TOPICS_SHOWN` topics and `CONTACTS_SHOWN` contacts, those with doubts first, so
that a status always fits a frame; whoever wants all topics asks for those after a name.
"""

import os
from bisect import bisect_left
from collections.abc import Iterator
from heapq import nsmallest
from typing import Any, Protocol

from planaria import __version__
from planaria.network.connection import VERSIONS
from planaria.network.doubts import member_doubts, stalled, store_doubts, supervisor_doubts
from planaria.network.evidence import Evidence
from planaria.network.host import Host
from planaria.network.identity import handle_of
from planaria.network.status import (
    ClientStatus,
    ContactStatus,
    LinkStatus,
    OverlayStatus,
    ProcessStatus,
    Queues,
    Settled,
    Status,
    StoreStatus,
    SupervisorStatus,
    TopicStatus,
    Totals,
)
from planaria.network.store.database import Database
from planaria.protocols.skipring.charters import Charters
from planaria.protocols.skipring.membership import Membership
from planaria.protocols.skipring.peer import Peer
from planaria.protocols.skipring.supervisor import Supervisor
from planaria.records.index import Index
from planaria.records.record import RECORD_KEY_BITS, TIME_MAX
from planaria.records.sums import KEY_MASK
from planaria.records.window import LIMIT_MAX

TOPICS_SHOWN = 1000  # of about 300 bytes each
CONTACTS_SHOWN = 1000
LINKS_SHOWN = 1000
DOUBTS_SHOWN = 20
SETTLED_SECONDS = 16  # what is older than one or two of these must be the same at all members
NUMBER_MAX = 1 << 53  # a fault may leave any number in memory; JSON's readers know these


class Ring(Protocol):
    """The protocol parts of a node."""

    @property
    def peer(self) -> Peer:
        """Its part as a member."""

    @property
    def supervisor(self) -> Supervisor | None:
        """Its part as a supervisor."""

    @property
    def charters(self) -> Charters:
        """What is laid down for topics."""


class Running(Protocol):
    """What is asked of a node that runs."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def host(self) -> Host:
        """Its driver."""

    @property
    def ring(self) -> Ring:
        """Its protocol."""

    @property
    def database(self) -> Database | None:
        """Its store; None: it keeps everything in memory."""

    @property
    def http(self) -> str | None:
        """Where it answers HTTP."""

    @property
    def clients(self) -> int:
        """How many clients are connected."""

    def connected(self) -> list[ClientStatus]:
        """Those of them that came first."""

    def overlays(self) -> dict[str, OverlayStatus]:
        """Its parts in other overlays than `ring`, those that are awake."""

    @property
    def started(self) -> float:
        """When it started, by the monotonic clock."""


def status_of(node: Running, evidence: Evidence, *, now: float, time: float) -> Status:
    """The status of `node` when the monotonic clock says `now` and the wall clock `time`."""
    host, supervisor = node.host, node.ring.supervisor
    topics = dict(topic_statuses(node.ring, evidence))
    doubts = [*store_doubts(node.database)]
    doubts += [f"{topic}: {doubt}" for topic, its in topics.items() for doubt in its.doubts]
    overlays = node.overlays()
    doubts += [f"{name}: {doubt}" for name, its in overlays.items() for doubt in its.doubts]
    links = link_statuses(host, now)
    oldest = max((its.evidence_intervals for its in topics.values()), default=0)
    held = sum(link.unacknowledged for link in links)
    return Status(
        **who(node),
        time=time,
        uptime=now - node.started,
        interval=host.interval,
        pace=node.ring.peer.pace_max,
        supervises=supervisor is not None,
        supervisors=supervisor_statuses(node),
        legitimate=not doubts,
        doubts=doubts[:DOUBTS_SHOWN],
        evidence_age=host.interval * oldest,
        topics=worst_first(topics),
        totals=totals_of(topics),
        links=links[:LINKS_SHOWN],
        links_total=len(links),
        links_busy=sum(link.busy for link in links),
        clients=node.clients,
        connected=node.connected(),
        contacts=contact_statuses(host),
        contacts_total=len(host.contacts),
        queues=Queues(host.queued, held, pending_bytes(node.database)),
        drops=host.dropped,
        malformed=host.malformed,
        late=host.late,
        requests=number(supervisor.requests) if supervisor else 0,
        answers=number(supervisor.sent) if supervisor else 0,
        overlays=overlays,
        store=store_status(node.database),
        process=process_status(),
    )


def who(node: Running) -> dict[str, Any]:
    """Name, addresses and version of a node, and until when its certificate is good."""
    host, credentials = node.host, node.host.credentials
    return {
        "id": host.hello.id.hex(),
        "handle": host.node.id,
        "name": node.name,
        "cluster": host.hello.cluster,
        "version": __version__,
        "wire": VERSIONS,
        "listen": host.hello.addresses,
        "http": node.http,
        "secure": credentials is not None,
        "certificate_expires": credentials.identity.expires if credentials else None,
    }


def topic_statuses(ring: Ring, evidence: Evidence) -> Iterator[tuple[str, TopicStatus]]:
    """Every topic that a node is a member of, or serves, or both."""
    for topic in topic_names(ring):
        yield topic, topic_status(ring, evidence, topic, ring.peer.topics.get(topic))


def topic_names(ring: Ring) -> list[str]:
    """Their names, each once."""
    databases = ring.supervisor.topics if ring.supervisor else {}
    return [*dict.fromkeys((*ring.peer.topics, *databases))]


def topics_after(ring: Ring, evidence: Evidence, after: str) -> dict[str, TopicStatus]:
    """As many as a status shows of those that follow a name, in the order of names."""
    names = nsmallest(TOPICS_SHOWN, (name for name in topic_names(ring) if name > after))
    return {
        topic: topic_status(ring, evidence, topic, ring.peer.topics.get(topic)) for topic in names
    }


def topic_status(
    ring: Ring, evidence: Evidence, topic: str, membership: Membership | None
) -> TopicStatus:
    """One topic."""
    served = ring.supervisor.topics.get(topic) if ring.supervisor else None
    doubts = [*supervisor_doubts(served)] if served else []
    members = len(served.database) if served else None
    charter = ring.charters.best(topic)
    version = 0 if charter is None else charter.version
    if membership is None:
        return TopicStatus(
            served=served is not None,
            members=members,
            charter=version,
            legitimate=not doubts,
            doubts=doubts,
        )
    one, holdings = membership.subscriber, membership.history.holdings
    doubts = [*member_doubts(membership), *doubts]
    index = holdings.store.index
    present = membership.history.horizon.present
    return TopicStatus(
        member=one.member,
        label=None if one.label is None else number(one.label),
        alarmed=one.alarmed,
        leaving=one.leaving,
        served=served is not None,
        supervisor=one.inquiry.supervisor,
        legitimate=not doubts,
        doubts=doubts,
        evidence_intervals=number(evidence.age(topic, membership)),
        configured_intervals=number(one.inquiry.version_age),
        publications=number(index.publications),
        records=len(index.shown),
        bytes=number(index.bytes),
        members=members,
        charter=version,
        settled=[*settled(index, present)],
    )


def settled(index: Index, present: int) -> Iterator[Settled]:
    """The last two parts of the past on which members must agree, whenever they are asked.

    Two, and aligned, so that nodes that are asked a few seconds apart have one in common. A window
    that counts publications begins where the oldest one is.
    """
    order, window = index.order, index.window
    since = window.lo
    if order and (window.limit < LIMIT_MAX or window.per_publisher is not None):
        since = order[0] >> RECORD_KEY_BITS
    everything = index.sums.digest(0, TIME_MAX).keys
    for steps in (1, 2):
        cut = (present // SETTLED_SECONDS - steps) * SETTLED_SECONDS
        if cut > 0:
            at = bisect_left(order, cut << RECORD_KEY_BITS)
            keys = everything - sum(place & KEY_MASK for place in order[at:]) & KEY_MASK
            yield Settled(number(since), cut, at, f"{keys >> RECORD_KEY_BITS - 64:016x}")


def totals_of(topics: dict[str, TopicStatus]) -> Totals:
    """All topics together."""
    found = topics.values()
    return Totals(
        topics=len(topics),
        doubtful=sum(not it.legitimate for it in found),
        publications=sum(it.publications for it in found),
        records=sum(it.records for it in found),
        bytes=sum(it.bytes for it in found),
        members=sum(it.members or 0 for it in found),
    )


def worst_first(topics: dict[str, TopicStatus]) -> dict[str, TopicStatus]:
    """As many as a status shows, in the order of names; if not all, those with doubts above all."""
    names = sorted(topics)
    if len(names) > TOPICS_SHOWN:
        names = sorted(names, key=lambda name: topics[name].legitimate)[:TOPICS_SHOWN]
    return {name: topics[name] for name in sorted(names)}


def supervisor_statuses(node: Running) -> list[SupervisorStatus]:
    """The supervisors that a node knows."""
    host, found = node.host, []
    for handle in node.ring.peer.supervisors:
        contact = host.contacts.get(handle)
        alive = True if handle == host.node.id or handle in host.links else None
        found.append(SupervisorStatus(handle, contact.addresses if contact else (), alive))
    return found


def link_statuses(host: Host, now: float) -> list[LinkStatus]:
    """The links of a host; `now` by the loop's clock, which is the monotonic one."""
    found = []
    for peer, connection in host.links.items():
        contact, link = host.contacts.get(peer), connection.link
        address = contact.addresses[0] if contact else None
        held, silent = link.control.bytes + link.bulk.bytes, max(0.0, now - connection.heard)
        carried = link.bulk.acknowledged
        found.append(LinkStatus(peer, address, link.busy, held, round(silent, 3), carried))
    return found


def contact_statuses(host: Host) -> list[ContactStatus]:
    """The nodes of which a host heard last."""
    known = list(host.contacts)[-CONTACTS_SHOWN:]
    return [ContactStatus(handle_of(it.id), it.id.hex(), it.addresses) for it in known]


def pending_bytes(database: Database | None) -> int:
    """Bytes that are not on disk yet."""
    return database.writer.pending_bytes if database and database.writer else 0


def store_status(database: Database | None) -> StoreStatus | None:
    """The store; None: there is none on disk."""
    if database is None:
        return None
    return StoreStatus(
        path=str(database.path),
        bytes=sum(it.stat().st_size for it in database.path.iterdir() if it.is_file()),
        pending_bytes=pending_bytes(database),
        stalled=stalled(database),
        damaged=database.damaged,
    )


def process_status() -> ProcessStatus:
    """This process."""
    times = os.times()
    resident = descriptors = None
    if os.path.isdir("/proc/self/fd"):
        with open("/proc/self/statm") as file:
            resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        descriptors = len(os.listdir("/proc/self/fd")) - 1  # without the one that lists them
    return ProcessStatus(os.getpid(), times.user + times.system, resident, descriptors)


def number(value: int) -> int:
    """A number that JSON's readers know, whatever a fault made of it."""
    return max(-NUMBER_MAX, min(value, NUMBER_MAX))
