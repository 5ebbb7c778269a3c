"""When is a layer legitimate? Judged from the variables alone, by no code of the protocol.

`links`: exactly the links that there should be, at both ends, each with a direction, none that
members still ask for or close, and none about to be dropped for silence.
`acyclic`: the true direction of all links, from both ends' variables, has no cycle.
`level`: of two neighbours the one with the lower lid is as high as the other or one higher. And no
node that takes turns is about to come to the end of its range and start again at 0.
`view`: what a node believes of a neighbour is true, or one step old, and allowed its last turn: of
a higher lid it knows that it is at most one below, of a lower one that it is not below.
`order`: no node waits for a beat that its neighbour has not sent yet.
`exclusive`: no two neighbours both take themselves for a sink.
`spreading`: no publication is still on its way, or owed to a link that came up.
`channel`: no handshake is in flight, and no word that is false or older than what is known.
"""

from collections.abc import Iterable, Mapping

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.overlay import Violation
from planaria.protocols.mobile.heights import HEIGHT_MAX, HeightsState
from planaria.protocols.mobile.layer import SILENCE_MAX, LayerState
from planaria.protocols.mobile.link import SERIALS, STALE_MAX, UP
from planaria.protocols.mobile.messages import (
    Beat,
    LinkUpOk,
    MobileMessage,
    RequestLinkUp,
)

HEADROOM = 64  # turns: what is legitimate stays so for as many intervals, or for 34 years
# Timeouts without a beat of which none is on its way, and of which one is: it comes in time if it
# takes no longer than the slowest scheduler allows.
QUIET_MAX, LATE_MAX = 6, SILENCE_MAX - 4

Layers = Mapping[NodeId, LayerState]
Graph = Mapping[NodeId, list[NodeId]]
Flying = list[tuple[NodeId, Message]]


def linked(layers: Layers) -> list[tuple[NodeId, NodeId]]:
    """All pairs with a link up at both ends, smaller id first."""
    return [
        (a, b)
        for a in layers
        for b, link in layers[a].links.items()
        if a < b and link.state == UP and b in layers and _up(layers[b], a)
    ]


class LayerJudge:
    """What is not legitimate in one layer. Remembers nothing; asked twice it says the same."""

    def violations(
        self,
        topic: str,
        layers: Layers,
        wanted: Graph,
        channel: Iterable[tuple[NodeId, Message]],
        connection_points: int = 0,
    ) -> list[Violation]:
        """Every invariant that fails; `wanted` says who should be whose neighbour.

        With `connection_points` so many neighbours are enough.
        """
        flying = list(channel)
        found = self._links(layers, wanted, connection_points) + _unsteady(layers, flying)
        cycle = self.cyclic(layers)
        if cycle:
            found.append(Violation("acyclic", cycle[0], f"on a directed cycle among {cycle}"))
        found += self.level(layers) + _order(layers)
        found += self._exclusive(layers) + _spreading(layers)
        return found + self._channel(topic, layers, flying)

    def neighbours(self, layer: LayerState) -> list[NodeId]:
        """The peers with which a link is up and has a direction."""
        links = layer.links.items()
        return [peer for peer, link in links if link.state == UP and self.oriented(layer, peer)]

    def directions(self, layers: Layers) -> list[tuple[NodeId, NodeId]]:
        """All links with a direction, as (high, low) pairs: they point from high to low."""
        arcs = []
        for a, b in linked(layers):
            low = self.points_to(a, layers[a], b, layers[b])
            if low is not None:
                arcs.append((b, a) if low == a else (a, b))
        return arcs

    def cyclic(self, layers: Layers) -> list[NodeId]:
        """The nodes left when sinks are taken away again and again: empty if there is no cycle."""
        left = dict.fromkeys(layers, 0)
        into: dict[NodeId, list[NodeId]] = {id: [] for id in layers}
        for high, low in self.directions(layers):
            left[high] += 1
            into[low].append(high)
        sinks = [id for id, count in left.items() if not count]
        while sinks:
            sink = sinks.pop()
            del left[sink]
            for id in into[sink]:
                left[id] -= 1
                if not left[id]:
                    sinks.append(id)
        return sorted(left)

    # What an orientation says

    def oriented(self, layer: LayerState, peer: NodeId) -> bool:
        """Has the link to `peer` a direction, as far as this end knows?"""
        return peer in layer.orientation.views

    def sink(self, id: NodeId, layer: LayerState) -> bool:
        """Does this node take itself for a sink?"""
        mine = layer.orientation
        views = mine.views.items()
        return all((mine.height, mine.lid, id) < (*view, peer) for peer, view in views)

    def points_to(self, a: NodeId, x: LayerState, b: NodeId, y: LayerState) -> NodeId | None:
        """The end that the link between two nodes points to, from the variables of both."""
        mine, other = x.orientation, y.orientation
        return a if (mine.height, mine.lid, a) < (other.height, other.lid, b) else b

    def level(self, layers: Layers) -> list[Violation]:
        """Places of neighbours, and what they believe of each other's."""
        found = []
        for id, layer in layers.items():
            mine = layer.orientation
            if mine.views and mine.height > HEIGHT_MAX - HEADROOM:
                found.append(Violation("level", id, f"{mine.height}, the highest is {HEIGHT_MAX}"))
            for peer, view in mine.views.items():
                if peer in layers:
                    found += _between(id, mine, peer, layers[peer].orientation, view)
        return found

    def misleads(self, target: LayerState, sender: LayerState, beat: Beat) -> bool:
        """Would the word make its target believe more than is true, or less than it knows?"""
        truth, mine, word = sender.orientation, target.orientation, beat.word
        known = mine.views.get(beat.sender)
        if not word or known is None:
            return False
        if len(word) == 4:
            said, lid = word[1] - mine.height, word[2]
            if lid != truth.lid:
                return True
        else:
            said = (word[0] - mine.height + 1) % 3 - 1
        return not known[0] - mine.height <= said <= truth.height - mine.height

    # What is common to all

    def _links(self, layers: Layers, wanted: Graph, connection_points: int) -> list[Violation]:
        found = []
        for id, layer in layers.items():
            have = sorted(peer for peer, link in layer.links.items() if link.state == UP)
            should = [peer for peer in wanted.get(id, []) if peer in layers]
            one_sided = [p for p in have if p in layers and not _up(layers[p], id)]
            enough = self.enough(connection_points, len(should))
            if one_sided:
                found.append(Violation("links", id, f"one-sided to {one_sided}"))
            elif any(peer not in should for peer in have) or len(have) < enough:
                found.append(Violation("links", id, f"has {have}, should have {should}"))
            elif forming := [p for p in have if not self.oriented(layer, p)]:
                found.append(Violation("links", id, f"without a direction: {forming}"))
        return found

    def enough(self, connection_points: int, near: int) -> int:
        """How many links a node must have that has so many members in reach."""
        return min(connection_points or near, near)

    def _exclusive(self, layers: Layers) -> list[Violation]:
        sinks = [id for id, it in layers.items() if self.neighbours(it) and self.sink(id, it)]
        return [
            Violation("exclusive", a, f"a sink beside the sink {b}")
            for a, b in linked(layers)
            if a in sinks and b in sinks
        ]

    def _channel(self, topic: str, layers: Layers, channel: Flying) -> list[Violation]:
        found = []
        for target, message in channel:
            if not isinstance(message, MobileMessage) or target not in layers:
                continue
            if message.layer != topic:
                continue
            sender = layers.get(message.sender)
            if not isinstance(message, Beat):
                # Strangers may say no as often as they are asked; the dead must not say yes.
                if sender is not None or isinstance(message, RequestLinkUp | LinkUpOk):
                    detail = f"{type(message).__name__} from {message.sender}"
                    found.append(Violation("channel", target, detail))
            elif message.items:
                flying = f"{len(message.items)} copies in flight"
                found.append(Violation("spreading", target, flying))
            elif sender is not None and self._believed_wrong(layers[target], sender, message):
                detail = f"{message.word} from {message.sender}"
                found.append(Violation("channel", target, detail))
        return found

    def _believed_wrong(self, target: LayerState, sender: LayerState, beat: Beat) -> bool:
        """Will this beat be believed, and mislead?"""
        link = target.links.get(beat.sender)
        if link is None or link.state != UP:
            return False
        old = link.heard is not None and (beat.serial - link.heard) % SERIALS >= SERIALS // 2
        if old and link.stale <= STALE_MAX:
            return False  # older than what was heard: thrown away
        return _ahead(beat.serial, sender.serial) or self.misleads(target, sender, beat)


def _up(layer: LayerState, peer: NodeId) -> bool:
    return peer in layer.links and layer.links[peer].state == UP


def _between(
    id: NodeId, mine: HeightsState, peer: NodeId, other: HeightsState, view: tuple[int, int]
) -> list[Violation]:
    """Are two neighbours level, and does the one know where the other is?"""
    found = []
    low = -1 if (mine.lid, id) < (other.lid, peer) else 0
    seen, true = view[0] - mine.height, other.height - mine.height
    if not low <= true <= low + 1:
        found.append(Violation("level", id, f"{peer} is {true} above it: {low} or {low + 1}"))
    if not low <= seen <= true or view[1] != other.lid:
        found.append(Violation("view", id, f"takes {peer} for {view[0]}"))
    return found


def _unsteady(layers: Layers, channel: Flying) -> list[Violation]:
    """Links between members that are about to come or to go."""
    found = []
    coming = {(it.sender, target) for target, it in channel if isinstance(it, Beat)}
    for id, layer in layers.items():
        for peer, link in layer.links.items():
            limit = LATE_MAX if (peer, id) in coming else QUIET_MAX
            if peer in layers and link.state != UP:
                found.append(Violation("links", id, f"{link.state}: {peer}"))
            elif peer in layers and link.quiet > limit:
                found.append(Violation("links", id, f"{peer} silent for {link.quiet} timeouts"))
    return found


def _order(layers: Layers) -> list[Violation]:
    """Beats up to the one last heard are taken for old ones: it must have been sent."""
    return [
        Violation("order", id, f"waits for beat {link.heard} of {peer}")
        for id, layer in layers.items()
        for peer, link in layer.links.items()
        if link.heard is not None and peer in layers and _ahead(link.heard, layers[peer].serial)
    ]


def _ahead(serial: int, last: int) -> bool:
    """Is `serial` later than `last`, in the circle of serials?"""
    return 0 < (serial - last) % SERIALS < SERIALS // 2


def _spreading(layers: Layers) -> list[Violation]:
    found = []
    for id, layer in layers.items():
        links = [link for link in layer.links.values() if link.state == UP]
        if not links:
            continue  # nobody to send to: what waits may wait
        waiting = len(layer.news.input) + len(layer.news.local) + len(layer.news.hidden)
        waiting += sum(len(link.outbox.waiting) + len(link.outbox.sent) for link in links)
        owed = sum(kept.generation != 0 for kept in layer.news.store.values())
        waiting += owed * sum(not link.replayed for link in links)
        if waiting:
            found.append(Violation("spreading", id, f"{waiting} copies still to be sent or heard"))
    return found
