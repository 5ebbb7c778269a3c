"""A node's part in `mobile`: anonymous topics among nodes that are neighbours of each other.

Whoever was named as a neighbour, or speaks as one over its link, is in reach. A node carries each
topic that a neighbour takes part in, whether anybody here reads it or not: else the members of a
topic would need a path of members between them, and to pass a topic on would be to read it.
"""

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from random import Random

from msgspec.structs import replace

from planaria.core.composite import Part
from planaria.core.errors import PlanariaError, UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effects, LinkUp, Publish, Send, Subscribe
from planaria.core.overlay import Violation
from planaria.core.state import State
from planaria.network.client.events import NOBODY
from planaria.network.client.publishing import TOKEN_HEADER
from planaria.network.overlays.part import LivePart, Publications
from planaria.network.status import OverlayTopic
from planaria.protocols.mobile.dissemination import Dissemination, Outbox
from planaria.protocols.mobile.layer import LayerState
from planaria.protocols.mobile.legitimacy import LayerJudge
from planaria.protocols.mobile.link import UP
from planaria.protocols.mobile.messages import (
    PAYLOAD_BYTES_MAX,
    Beat,
    LinkUpKo,
    MobileMessage,
    RequestLinkDown,
    RequestLinkUp,
)
from planaria.protocols.mobile.node import LAYERS_MAX, MobileNode, MobileState
from planaria.protocols.mobile.overlay import MobileOverlay, members
from planaria.records.record import INCARNATION_BYTES, Draft, Record, seal

PADDING = 256  # bytes: publications that take less of them look alike
UNSENT_MAX = 512  # publications of a topic that wait here; a turn takes 64 to each neighbour
HEAD_BYTES = 128  # of a record around one payload, at most


class MobilePart(LivePart):
    """`near` are the neighbours that were named to this node, or that it discovered; None: all
    to which it has a link."""

    overlay = "mobile"
    kinds = MobileOverlay.messages
    state_type = MobileState
    invariants = ("links", "view", "level", "acyclic", "exclusive", "order")
    anonymous = True
    carries = True
    durable = True
    # Every topic costs one of 64 places at all nodes within reach, so it is not kept for long: ten
    # minutes are many times the 128 intervals (64 s) for which a publication is handed to nodes
    # that come later. Who publishes less often joins again; a carrier comes back when it is asked.
    release_seconds = 600.0
    full = (
        f"{LAYERS_MAX} topics are carried in this part of the network, by all nodes within reach: "
        f"one is free {release_seconds / 60:.0f} minutes after it was last used"
    )
    node: MobileNode

    def __init__(self, id: NodeId, rng: Random) -> None:
        Part.__init__(self, MobileNode(id, rng, padding=PADDING), self.kinds)
        self.near: set[NodeId] | None = None
        self._room: dict[str, tuple[int, int]] = {}  # by topic: at its time, for so many
        self._goodbyes: set[str] = set()  # layers that a neighbour has left

    @staticmethod
    def copies(message: Message) -> int:
        """A beat may carry some, and mostly carries none."""
        return len(message.items) if isinstance(message, Beat) else 0

    def admits(self, message: Message, sender: NodeId | None) -> bool:
        """A hop speaks for itself alone; who speaks to a neighbour is one, and is carried for."""
        assert isinstance(message, MobileMessage)
        if sender is None or message.sender != sender:
            return False
        if sender not in self.node.reach:
            self.node.on_command(LinkUp(sender))
        if isinstance(message, RequestLinkDown) and message.layer in self.node.layers:
            self._goodbyes.add(message.layer)
        if isinstance(message, RequestLinkUp) and message.layer not in self.node.layers:
            try:
                self.node.on_command(Subscribe(message.layer))
            except PlanariaError:
                return True  # the node says no
        return True

    def links_to(self, peer: NodeId) -> bool:
        """Those that were named; others show by speaking that they are neighbours."""
        return self.near is None or peer in self.near

    def greets(self, peer: NodeId) -> Effects:
        """That it is a neighbour, by a word that changes nothing else: no layer is called so."""
        return [Send(peer, LinkUpKo("", self.node.id))]

    def joins(self, topic: str) -> str | None:
        """Only members of a layer speak in it."""
        return topic

    def has_room(self, topic: str) -> bool:
        """Not while so many wait for a turn or a neighbour: relays that get more forget some.

        Who has no neighbour keeps what it can, and then refuses.
        """
        layer = self.node.layers.get(topic)
        if layer is None or not layer.neighbours():
            return True
        now, room = self._room.get(topic, (-1, 0))
        if now != layer.news.now:
            now, room = layer.news.now, UNSENT_MAX - layer.news.unsent(layer.outboxes())
            self._room = {it: at for it, at in self._room.items() if it in self.node.layers}
            self._room[topic] = (now, room)
        return room > 0

    def published(self, topic: str, record: Record) -> Publications:
        """Each publication by itself, with nothing of its publisher and its time."""
        now, room = self._room.get(topic, (-1, 0))
        self._room[topic] = (now, room - record.count)
        for one in record.publications(record.first, record.end):
            if one.key is not None or any(name != TOKEN_HEADER for name, _ in one.headers):
                raise UsageError("mobile has no keys and headers, which may name a publisher")
            if len(one.payload) > PAYLOAD_BYTES_MAX - HEAD_BYTES:
                most = PAYLOAD_BYTES_MAX - HEAD_BYTES
                raise UsageError(f"payload of {len(one.payload)} bytes: in mobile at most {most}")
            name = record.key + one.sequence.to_bytes(8, "big")
            start = blake2b(name, digest_size=INCARNATION_BYTES).digest()
            sealed = seal((NOBODY, start), 0, [Draft(one.payload)], time=0)
            yield Publish(topic, sealed.data), sealed

    def resume(self) -> None:
        """The links are gone with the process."""
        self.node.reach = {}

    def leaving(self) -> bool:
        """Has it a neighbour that has not let it go?"""
        return any(it.leaving is not None and it.links for it in self.node.layers.values())

    def let_go(self) -> set[str]:
        """The layers that neighbours said goodbye in, but for those with something to hand on."""
        left, self._goodbyes = self._goodbyes, set()
        layers = self.node.layers
        return {it for it in left if it in layers and not layers[it].news.store}

    def wishes(self) -> list[str]:
        """All topics that it carries."""
        return [topic for topic, layer in self.node.layers.items() if layer.leaving is None]

    @staticmethod
    def bound(n: int, delay: float) -> int:
        """That of the simulator, for the widest and the densest network of so many nodes."""
        return round(60 + 8 * n * (1 + delay))

    def judged(self) -> State:
        """Links and heights, and no publication."""
        found = self.node.state()
        layers = {topic: _bare(layer) for topic, layer in found.layers.items()}
        return MobileState(found.reach, layers)

    @staticmethod
    def violations(states: Mapping[NodeId, State]) -> list[Violation]:
        """Every layer's, where members that reach each other should have a link; but for what is on
        its way, which nobody sees."""
        reach = {id: it.reach for id, it in states.items() if isinstance(it, MobileState)}
        wanted = {
            id: [peer for peer in near if id in reach.get(peer, ())] for id, near in reach.items()
        }
        topics = {topic for it in states.values() for topic in getattr(it, "layers", ())}
        found: list[Violation] = []
        for topic in sorted(topics):
            judged = LayerJudge().violations(topic, members(states, topic), wanted, [])
            found += [replace(it, detail=f"{topic}: {it.detail}") for it in judged]
        return found

    def doubts(self) -> Iterator[str]:
        """Links that are being made or ended."""
        for topic, layer in self.node.layers.items():
            forming = [peer for peer, link in layer.links.items() if link.state != UP]
            if layer.leaving is not None:
                yield f"{topic}: wants to leave and has not been let go"
            elif forming:
                yield f"{topic}: {len(forming)} links are being made or ended"

    def topics(self) -> dict[str, OverlayTopic]:
        """The layers; nobody knows how many there are in one."""
        return {
            topic: OverlayTopic(None, len(layer.neighbours()))
            for topic, layer in self.node.layers.items()
        }

    def neighbours(self) -> list[NodeId]:
        """Those in reach."""
        return sorted(self.node.reach)


def _bare(layer: LayerState) -> LayerState:
    links = {peer: replace(link, outbox=Outbox()) for peer, link in layer.links.items()}
    return replace(layer, links=links, news=Dissemination().state())
