"""What one look at a live network shows: its nodes and topics, and one overlay of it drawn."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from planaria.core.ids import NodeId
from planaria.network.client.overlays import RING
from planaria.network.doctor import Finding
from planaria.network.overlays.registry import PARTS
from planaria.network.status import Status
from planaria.network.survey import Parts, Survey
from planaria.protocols.skipring.subscriber import SubscriberState
from planaria.web.clients import client_views
from planaria.web.frames import DOUBTS, OK, ONCE, SILENT, Frame, NodeView, TopicView
from planaria.web.pictures.overlays import picture_of
from planaria.web.pictures.picture import (
    LINK,
    MEMBER,
    OVER,
    Picture,
    Place,
    circle_places,
)
from planaria.web.pictures.ring import ring_picture

TOPICS_MAX = 200  # that a page lists
LINES_MAX = 4_000  # that it draws: a browser without a GPU takes 30 ms for so many
# What the table of topics calls all of an overlay that can be drawn as one.
ALL = {"gossip": "all groups", "content": "all brokers"}

Looks = tuple[Survey | None, Survey]
Chosen = tuple[str, str]  # an overlay and a topic
Broken = tuple[Sequence[Finding], Sequence[Finding]]  # in this look; of these, before it too


def drawn(
    frame: Frame,
    looks: Looks,
    chosen: Chosen,
    broken: Broken,
    names: Mapping[NodeId, str],
    places: Mapping[NodeId, Place],
) -> Frame:
    """The frame with the nodes that were seen or are missed, and the lines of one topic."""
    before, survey = looks
    overlay, topic = chosen
    silent = {one.node: one for one in survey.silent if one.node is not None}
    ids = sorted({*survey.nodes, *silent})
    picture = _picture(survey, ids, chosen, names, places)
    wrong, sure = (_by_node(found, overlay) for found in broken)
    nodes = []
    for id in ids:
        if id in survey.nodes:
            old = None if before is None else before.nodes.get(id)
            was = None if old is None else old.status
            node = _node(was, survey.nodes[id].status, overlay, wrong.get(id, []), id in sure)
        else:
            name = names.get(id, f"{id:016x}"[:8])
            figures = {"address": ", ".join(silent[id].addresses)}
            doubts = [silent[id].reason]
            node = NodeView(str(id), name, 0, 0, SILENT, doubts=doubts, figures=figures)
        nodes.append(_placed(node, id, picture))
    numbers = {id: at for at, id in enumerate(ids)}
    edges = edges_of(picture, numbers)
    return replace(
        frame,
        overlay=overlay,
        topic=topic,
        nodes=nodes,
        edges=edges[:LINES_MAX],
        hidden=max(0, len(edges) - LINES_MAX),
        ends=ends_of(picture, numbers),
        regions=picture.regions,
        wide=picture.wide,
        pulses=_pulses(looks, numbers, nodes),
        clients=client_views(survey, numbers),
    )


def _by_node(found: Sequence[Finding], overlay: str) -> dict[NodeId, list[str]]:
    """What is wrong at each node, as far as it concerns the overlay."""
    wrong: dict[NodeId, list[str]] = {}
    for one in found:
        if one.node is not None and _concerns(one, overlay):
            wrong.setdefault(one.node, []).append(f"{one.invariant}: {one.detail}")
    return wrong


def edges_of(picture: Picture, numbers: Mapping[NodeId, int]) -> list[tuple[int, int, str]]:
    """The lines between nodes that are drawn, the most telling first."""
    found = [
        (numbers[a], numbers[b], kind)
        for (a, b), kind in picture.lines.items()
        if a in numbers and b in numbers
    ]
    return sorted(found, key=lambda it: (-OVER.index(it[2]), it))


def ends_of(picture: Picture, numbers: Mapping[NodeId, int]) -> list[tuple[int, int, str]]:
    """The words beside the ends of lines."""
    return sorted(
        (numbers[a], numbers[b], words)
        for (a, b), words in picture.ends.items()
        if a in numbers and b in numbers
    )


def _picture(
    survey: Survey,
    ids: Sequence[NodeId],
    chosen: Chosen,
    names: Mapping[NodeId, str],
    places: Mapping[NodeId, Place],
) -> Picture:
    overlay, topic = chosen

    def named(id: NodeId) -> str:
        return names.get(id, f"{id:016x}"[:8])

    if overlay != RING:
        nodes = survey.nodes.items()
        states = {id: seen.parts[overlay] for id, seen in nodes if overlay in seen.parts}
        return picture_of(
            ids, states, named, "" if topic == ALL.get(overlay) else topic, before=places
        )
    members: dict[NodeId, SubscriberState] = {}
    for id, seen in survey.nodes.items():
        peer = seen.topics.get(topic, Parts()).peer
        if peer is not None and topic in peer.topics:
            members[id] = peer.topics[topic].subscriber
    if members:
        return ring_picture(ids, members, named)
    found = Picture(places=circle_places(ids))
    for id, seen in survey.nodes.items():
        for link in seen.status.links:
            found.join(id, link.peer, LINK)
    return found


def _concerns(one: Finding, overlay: str) -> bool:
    """Is a finding about the overlay that is drawn, or about nodes as such?"""
    about = one.invariant.partition(" ")[0]
    if about in PARTS:
        return about == overlay
    return one.topic is None or overlay == RING


def _placed(node: NodeView, id: NodeId, picture: Picture) -> NodeView:
    x, y = picture.places[id]
    role = picture.roles.get(id, node.role)
    figures = {**picture.figures.get(id, {}), **node.figures}
    return replace(node, x=x, y=y, role=role, mark=picture.marks.get(id, ""), figures=figures)


def _node(
    was: Status | None, status: Status, overlay: str, wrong: list[str], sure: bool
) -> NodeView:
    """A node that answers; what one look saw, or the node alone doubts, is not sure."""
    store = "in memory" if status.store is None else f"{status.store.bytes:,} bytes"
    memory = status.process.resident_bytes
    figures = {
        "id": status.id,
        "address": ", ".join(status.listen),
        "topics": f"{status.totals.topics:,}",
        "publications": f"{status.totals.publications:,}",
        **{name: _through(status, name) for name in status.overlays},
        "links": f"{status.links_total} ({status.links_busy} full)",
        "clients": _clients(status),
        "queues": f"{status.queues.messages} messages, {status.queues.link_bytes:,} bytes",
        "dropped": f"{status.drops} messages, {status.malformed} malformed",
        "store": store,
        "memory": "?" if memory is None else f"{memory >> 20} MiB",
        "up": f"{status.uptime:,.0f} s",
        "version": status.version,
    }
    others = [f"{name}: " for name in (RING, *PARTS) if name != overlay]
    here = [it for it in status.doubts if not it.startswith(tuple(others))]
    doubts = [*wrong, *(it for it in here if it not in wrong)]
    role = "supervisor" if status.supervises and overlay == RING else MEMBER
    name = status.name or status.id[:8]
    state = DOUBTS if sure else ONCE if doubts else OK
    arrived = 0 if was is None else max(0, _come(status, overlay) - _come(was, overlay))
    return NodeView(str(status.handle), name, 0, 0, state, role, "", arrived, doubts, figures)


def _through(status: Status, overlay: str) -> str:
    it = status.overlays[overlay]
    return f"{it.received:,} received, {it.forwarded:,} forwarded, {it.deliveries:,} delivered"


def _clients(status: Status) -> str:
    apart = [f"{it.clients} in {name}" for name, it in status.overlays.items() if it.clients]
    return f"{status.clients}" + (f" ({', '.join(apart)})" if apart else "")


def _come(status: Status, overlay: str) -> int:
    """The publications that have come to a node: held, or in an overlay that holds none, seen."""
    if overlay == RING:
        return status.totals.publications
    its = status.overlays.get(overlay)
    return 0 if its is None else its.received + its.published


def _pulses(
    looks: Looks, numbers: Mapping[NodeId, int], nodes: Sequence[NodeView]
) -> list[tuple[int, int]]:
    """Links that carried something since the look before, to nodes to which something came."""
    before, survey = looks
    if before is None:
        return []
    found = []
    for id, seen in survey.nodes.items():
        old = before.nodes.get(id)
        was = {} if old is None else {it.peer: it.carried for it in old.status.links}
        for link in seen.status.links:
            there = numbers.get(link.peer)
            if there is not None and nodes[there].arrived and link.carried > was.get(link.peer, 0):
                found.append((numbers[id], there))
    return sorted(found)


def topic_views(
    survey: Survey, broken: Sequence[Finding], laid_down: Mapping[str, str]
) -> Iterable[TopicView]:
    """All topics of all overlays, as many as a page lists."""
    wrong = {one.topic for one in broken}
    every = [seen.status for seen in survey.nodes.values()]
    for name in survey.topics()[:TOPICS_MAX]:
        its = [status.topics[name] for status in every if name in status.topics]
        members = sum(it.member for it in its)
        most = max((it.publications for it in its), default=0)
        charter = max((it.charter for it in its), default=0)
        kept = laid_down.get(name, "")
        yield TopicView(name, members, most, charter, name not in wrong, RING, kept)
    for overlay, part in PARTS.items():
        awake = [status.overlays[overlay] for status in every if overlay in status.overlays]
        legitimate = not any(it.invariant.startswith(f"{overlay} ") for it in broken)
        if awake and overlay in ALL:
            yield TopicView(ALL[overlay], len(awake), None, 0, legitimate, overlay)
        if part.has_conditions:
            continue  # these are not topics: nodes show who wants what
        for name in sorted({name for it in awake for name in it.topics})[:TOPICS_MAX]:
            members = sum(name in it.topics for it in awake)
            kept = laid_down.get(name.removesuffix("/#"), "")
            yield TopicView(name, members, None, 0, legitimate, overlay, kept)
