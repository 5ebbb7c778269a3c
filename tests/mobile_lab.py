"""Orientations on a small graph, with an ordered channel per link and a schedule at will; and the
layers of a trial, to be written to and judged."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.overlay import Violation
from planaria.lab.mobile.edge_bits import EdgeBits
from planaria.lab.mobile.three_state import ThreeState
from planaria.literal.mobile import Graph
from planaria.protocols.mobile.heights import Heights
from planaria.protocols.mobile.layer import Layer
from planaria.protocols.mobile.legitimacy import LayerJudge
from planaria.protocols.mobile.orientation import Orientation
from planaria.protocols.mobile.overlay import unwrap
from planaria.simulator.trial import Trial

TOPIC = "layer/0"
JUDGE = LayerJudge()


def layers_of(trial: Trial) -> dict[NodeId, Layer]:
    """Everybody's side of the first layer."""
    return {id: unwrap(node).layers[TOPIC] for id, node in trial.simulator.nodes.items()}


def violations(
    layers: Mapping[NodeId, Layer],
    wanted: Mapping[NodeId, list[NodeId]],
    channel: Iterable[tuple[NodeId, Message]],
    judge: LayerJudge = JUDGE,
) -> list[Violation]:
    """What is not legitimate in the first layer."""
    states: dict[NodeId, Any] = {id: layer.state() for id, layer in layers.items()}
    return judge.violations(TOPIC, states, wanted, channel)


class Lab:
    """Nodes with one orientation each; `act` and `hear` are the only steps."""

    def __init__(self, nodes: Sequence[Orientation], seed: int = 0) -> None:
        self.nodes = list(nodes)
        self.rng = Random(seed)
        self.channels: dict[tuple[int, int], deque[tuple[int, ...]]] = {}
        self.acts = [0] * len(self.nodes)

    def link(self, a: int, b: int) -> None:
        """Both ends greet each other and the link is up, or forming."""
        words = self.nodes[a].greet(), self.nodes[b].greet()
        assert self.nodes[a].link_up(b, words[1])
        assert self.nodes[b].link_up(a, self.nodes[a].greet())
        self.channels[a, b] = deque()
        self.channels[b, a] = deque()

    def unlink(self, a: int, b: int) -> None:
        self.nodes[a].link_down(b)
        self.nodes[b].link_down(a)
        del self.channels[a, b], self.channels[b, a]

    def act(self, i: int) -> bool:
        """A timeout: a turn if it is one, then a word to everybody."""
        node = self.nodes[i]
        ready = node.takes_turn(self.rng) if isinstance(node, EdgeBits) else node.sink()
        turn = bool(node.peers()) and ready
        if turn:
            node.reverse()
            self.acts[i] += 1
        for j in self.nodes[i].peers():
            self.channels[i, j].append(self.nodes[i].word(j))
        return turn

    def hear(self, i: int, j: int, *, informed: bool = False) -> None:
        if self.channels[i, j]:
            self.nodes[j].hear(i, self.channels[i, j].popleft(), informed=informed)

    def hear_all(self) -> None:
        for i, j in list(self.channels):
            while self.channels[i, j]:
                self.hear(i, j, informed=True)

    def step(self) -> None:
        """Something happens: a timeout, or a word arrives."""
        if self.rng.random() < 0.3 or not self.channels:
            self.act(self.rng.randrange(len(self.nodes)))
        else:
            self.hear(*self.rng.choice(list(self.channels)))

    def low(self, a: int, b: int) -> int | None:
        """The end to which the link truly points, from the definitions, not from the classes."""
        x, y = self.nodes[a], self.nodes[b]
        if isinstance(x, Heights) and isinstance(y, Heights):
            return a if (x.height, x.lid, a) < (y.height, y.lid, b) else b
        if isinstance(x, ThreeState) and isinstance(y, ThreeState):
            if x.val == y.val:
                return a if (x.lid, a) < (y.lid, b) else b
            return a if (x.val + 1) % 3 == y.val else b
        assert isinstance(x, EdgeBits)
        assert isinstance(y, EdgeBits)
        mine, other = x.edges[b], y.edges[a]
        if not (mine.up and other.up):
            return None
        return min(a, b) if mine.bit == other.bit else max(a, b)

    def acyclic(self) -> bool:
        left = list(range(len(self.nodes)))
        arcs = [(a, b, self.low(a, b)) for a, b in self.channels if a < b]
        out = {i: [low for a, b, low in arcs if i in (a, b) and low not in (i, None)] for i in left}
        while left:
            ends = [i for i in left if not any(j in left for j in out[i])]
            if not ends:
                return False
            left = [i for i in left if i not in ends]
        return True

    def exclusive(self) -> bool:
        """No two ends of a link both believe to be sinks."""
        return not any(
            self.nodes[a].oriented(b)
            and self.nodes[b].oriented(a)
            and self.nodes[a].sink()
            and self.nodes[b].sink()
            for a, b in self.channels
        )


def heights(graph: Graph, lids: Sequence[int], levels: Sequence[int] | None = None) -> Lab:
    """Heights with given lids, all at the same level unless told."""
    nodes = [Heights(i, Random(0)) for i in range(len(graph))]
    for i, node in enumerate(nodes):
        node.lid, node.settled = lids[i], True
        node.height = levels[i] if levels else 0
    return _linked(nodes, graph)


def three_states(graph: Graph, lids: Sequence[int], vals: Sequence[int] | None = None) -> Lab:
    """Three states with given lids, all 0 unless told."""
    nodes = [ThreeState(i, Random(0)) for i in range(len(graph))]
    for i, node in enumerate(nodes):
        node.lid = lids[i]
    lab = _linked(nodes, graph)
    for i, node in enumerate(nodes):
        node.val = vals[i] if vals else 0
    for i, node in enumerate(nodes):
        node.views = {j: (nodes[j].val, nodes[j].lid) for j in graph[i]}
    return lab


def edge_bits(graph: Graph, seed: int = 0) -> Lab:
    """Edge bits with every link forming."""
    return _linked([EdgeBits(i, Random(0)) for i in range(len(graph))], graph, seed)


def _linked(nodes: Sequence[Orientation], graph: Graph, seed: int = 0) -> Lab:
    lab = Lab(nodes, seed)
    for a, peers in enumerate(graph):
        for b in peers:
            if a < b:
                lab.link(a, b)
    return lab
