"""When is a layer legitimate? Judged from the variables alone, by no code of the protocol.

`links`: exactly the links that there should be, at both ends, each with a direction, none that
members still ask for or close, and none about to be dropped for silence.
`acyclic`: the true direction of all links, from both ends' variables, has no cycle.
`level`: of two neighbours the one with the lower lid is as high as the other or one higher (three
states: can be lifted to such heights). And no node that takes turns is about to come to the end of
its range and start again at 0.
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
from planaria.protocols.mobile.edge_bits import EdgeBits
from planaria.protocols.mobile.graphs import parts
from planaria.protocols.mobile.heights import HEIGHT_MAX, Heights
from planaria.protocols.mobile.layer import SILENCE_MAX, Layer
from planaria.protocols.mobile.link import SERIALS, STALE_MAX, UP
from planaria.protocols.mobile.messages import (
    Beat,
    LinkUpOk,
    MobileMessage,
    RequestLinkUp,
    Word,
)
from planaria.protocols.mobile.three_state import ThreeState

HEADROOM = 64  # turns: what is legitimate stays so for as many intervals, or for 34 years
# Timeouts without a beat of which none is on its way, and of which one is: it comes in time if it
# takes no longer than the slowest scheduler allows.
QUIET_MAX, LATE_MAX = 6, SILENCE_MAX - 4

Layers = Mapping[NodeId, Layer]
Graph = Mapping[NodeId, list[NodeId]]
Flying = list[tuple[NodeId, Message]]


def violations(
    layers: Layers, wanted: Graph, channel: Iterable[tuple[NodeId, Message]]
) -> list[Violation]:
    """Every invariant of one layer that fails; `wanted` says who should be whose neighbour."""
    flying = list(channel)
    found = _links(layers, wanted) + _unsteady(layers, flying)
    cycle = cyclic(layers)
    if cycle:
        found.append(Violation("acyclic", cycle[0], f"on a directed cycle among {cycle}"))
    for id, layer in layers.items():
        found += _level_and_view(id, layer, layers)
    found += _order(layers) + _lift(layers) + _exclusive(layers) + _spreading(layers)
    return found + _channel(layers, flying)


def linked(layers: Layers) -> list[tuple[NodeId, NodeId]]:
    """All pairs with a link up at both ends, smaller id first."""
    return [
        (a, b)
        for a in layers
        for b, link in layers[a].links.items()
        if a < b and link.state == UP and b in layers and _up(layers[b], a)
    ]


def points_to(a: Layer, b: Layer) -> NodeId | None:
    """The lower end of the link between two nodes, from the variables of both; None: no direction.

    The lower end is the one that the link points to.
    """
    x, y = a.orientation, b.orientation
    if isinstance(x, Heights) and isinstance(y, Heights):
        return a.id if (x.height, x.lid, a.id) < (y.height, y.lid, b.id) else b.id
    if isinstance(x, ThreeState) and isinstance(y, ThreeState):
        if x.val == y.val:
            return a.id if (x.lid, a.id) < (y.lid, b.id) else b.id
        return a.id if (x.val + 1) % 3 == y.val else b.id
    if isinstance(x, EdgeBits) and isinstance(y, EdgeBits):
        mine, other = x.edges.get(b.id), y.edges.get(a.id)
        if mine is None or other is None or not (mine.up and other.up):
            return None
        return min(a.id, b.id) if mine.bit == other.bit else max(a.id, b.id)
    return None


def cyclic(layers: Layers) -> list[NodeId]:
    """The nodes left when sinks are taken away again and again: empty if there is no cycle."""
    out: dict[NodeId, list[NodeId]] = {id: [] for id in layers}
    into: dict[NodeId, list[NodeId]] = {id: [] for id in layers}
    for a, b in linked(layers):
        low = points_to(layers[a], layers[b])
        if low is not None:
            high = b if low == a else a
            out[high].append(low)
            into[low].append(high)
    left = {id: len(targets) for id, targets in out.items()}
    sinks = [id for id, count in left.items() if not count]
    while sinks:
        sink = sinks.pop()
        del left[sink]
        for id in into[sink]:
            left[id] -= 1
            if not left[id]:
                sinks.append(id)
    return sorted(left)


def critical_points(graph: Graph) -> list[NodeId]:
    """The nodes whose loss cuts some others apart (3.1), by taking each away in turn."""
    found = []
    for gone in sorted(graph):
        rest = {id: [p for p in peers if p != gone] for id, peers in graph.items() if id != gone}
        if parts(rest) > parts(graph):
            found.append(gone)
    return found


def _up(layer: Layer, peer: NodeId) -> bool:
    return peer in layer.links and layer.links[peer].state == UP


def _links(layers: Layers, wanted: Graph) -> list[Violation]:
    found = []
    for id, layer in layers.items():
        have = sorted(peer for peer, link in layer.links.items() if link.state == UP)
        should = [peer for peer in wanted.get(id, []) if peer in layers]
        one_sided = [p for p in have if p in layers and not _up(layers[p], id)]
        enough = min(layer.connection_points or len(should), len(should))
        if layer.orientation.forest:  # it is told its links, or asks for one: both are legitimate
            enough = min(1, enough)
        if one_sided:
            found.append(Violation("links", id, f"one-sided to {one_sided}"))
        elif any(peer not in should for peer in have) or len(have) < enough:
            found.append(Violation("links", id, f"has {have}, should have {should}"))
        elif forming := [p for p in have if not layer.orientation.oriented(p)]:
            found.append(Violation("links", id, f"without a direction: {forming}"))
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


def _level_and_view(id: NodeId, layer: Layer, layers: Layers) -> list[Violation]:
    mine = layer.orientation
    if not isinstance(mine, Heights | ThreeState):
        return []
    found = []
    if isinstance(mine, Heights) and mine.views and mine.height > HEIGHT_MAX - HEADROOM:
        found.append(Violation("level", id, f"{mine.height}, the highest is {HEIGHT_MAX}"))
    for peer, (view, lid) in mine.views.items():
        if peer not in layers:
            continue
        other = layers[peer].orientation
        if not isinstance(other, Heights | ThreeState):
            found.append(Violation("view", id, f"{peer} has no height"))
            continue
        low = -1 if (mine.lid, id) < (other.lid, peer) else 0
        seen, true = _steps(mine, view), _steps(mine, _place(other))
        if not low <= true <= low + 1:
            found.append(Violation("level", id, f"{peer} is {true} above it: {low} or {low + 1}"))
        if not low <= seen <= true or lid != other.lid:
            found.append(Violation("view", id, f"takes {peer} for {view}"))
    return found


def _place(of: Heights | ThreeState) -> int:
    return of.height if isinstance(of, Heights) else of.val


def _steps(mine: Heights | ThreeState, place: int) -> int:
    """How far a place is above a node; three states tell -1, 0 and 1 only."""
    above = place - _place(mine)
    return above if isinstance(mine, Heights) else (above + 1) % 3 - 1


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


def _lift(layers: Layers) -> list[Violation]:
    """Three states: walk from node to node adding up differences; a cycle must add up to zero."""
    lift: dict[NodeId, int] = {}
    around: dict[NodeId, list[NodeId]] = {id: [] for id in layers}
    for a, b in linked(layers):
        around[a].append(b)
        around[b].append(a)
    for start in layers:
        queue = [] if start in lift else [start]
        lift.setdefault(start, 0)
        while queue:
            id = queue.pop()
            mine = layers[id].orientation
            for peer in around[id]:
                other = layers[peer].orientation
                if not isinstance(mine, ThreeState) or not isinstance(other, ThreeState):
                    return []
                height = lift[id] + (other.val - mine.val + 1) % 3 - 1
                if peer not in lift:
                    lift[peer] = height
                    queue.append(peer)
                elif lift[peer] != height:
                    return [Violation("level", peer, f"no lift: {lift[peer]} and {height}")]
    return []


def _exclusive(layers: Layers) -> list[Violation]:
    sinks = [id for id in layers if layers[id].neighbours() and layers[id].orientation.sink()]
    return [
        Violation("exclusive", a, f"a sink beside the sink {b}")
        for a, b in linked(layers)
        if a in sinks and b in sinks
    ]


def _spreading(layers: Layers) -> list[Violation]:
    found = []
    for id, layer in layers.items():
        links = [link for link in layer.links.values() if link.state == UP]
        if not links:
            continue  # nobody to send to: what waits may wait
        waiting = len(layer.news.input) + len(layer.news.local) + len(layer.news.hidden)
        waiting += sum(len(link.outbox.waiting) + len(link.outbox.sent) for link in links)
        owed = sum(item.generation != 0 for item, _ in layer.news.store.values())
        waiting += owed * sum(not link.replayed for link in links)
        if waiting:
            found.append(Violation("spreading", id, f"{waiting} copies still to be sent or heard"))
    return found


def _channel(layers: Layers, channel: Flying) -> list[Violation]:
    found = []
    for target, message in channel:
        if not isinstance(message, MobileMessage) or target not in layers:
            continue
        if layers[target].topic != message.layer:
            continue
        sender = layers.get(message.sender)
        if not isinstance(message, Beat):
            # Strangers may say no as often as they are asked; the dead must not say yes.
            if sender is not None or isinstance(message, RequestLinkUp | LinkUpOk):
                detail = f"{type(message).__name__} from {message.sender}"
                found.append(Violation("channel", target, detail))
        elif message.items:
            found.append(Violation("spreading", target, f"{len(message.items)} copies in flight"))
        elif sender is not None and _misleads(layers[target], sender, message):
            detail = f"{message.word} from {message.sender}"
            found.append(Violation("channel", target, detail))
    return found


def _misleads(target: Layer, sender: Layer, beat: Beat) -> bool:
    """Would this beat make its target believe more than is true, or less than it knows already?"""
    link = target.links.get(beat.sender)
    if link is None or link.state != UP:
        return False
    old = link.heard is not None and (beat.serial - link.heard) % SERIALS >= SERIALS // 2
    if old and link.stale <= STALE_MAX:
        return False  # older than what was heard: thrown away
    if _ahead(beat.serial, sender.serial):
        return True
    truth, mine, word = sender.orientation, target.orientation, beat.word
    if not isinstance(truth, Heights | ThreeState) or not isinstance(mine, Heights | ThreeState):
        return False
    known = mine.views.get(beat.sender)
    if not word or known is None:
        return False
    said, lid = _said(mine, word)
    if lid is not None and lid != truth.lid:
        return True
    return not _steps(mine, known[0]) <= said <= _steps(mine, _place(truth))


def _said(mine: Heights | ThreeState, word: Word) -> tuple[int, int | None]:
    """How far above itself a node takes one who says `word` to be, and what it calls its lid."""
    if isinstance(mine, Heights) and len(word) == 4:
        return word[1] - mine.height, word[2]
    return (word[0] - _place(mine) + 1) % 3 - 1, word[1] if len(word) == 2 else None
