"""Heights and links of one layer: mobile nodes that stay where they are, from any state."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from types import MappingProxyType

from planaria.core.ids import NodeId
from planaria.core.node import Node, Subscribe
from planaria.core.overlay import Violation
from planaria.core.state import State
from planaria.protocols.mobile.heights import Heights, HeightsState
from planaria.protocols.mobile.layer import LayerState
from planaria.protocols.mobile.legitimacy import LayerJudge
from planaria.protocols.mobile.link import ASKED, CLOSING, UP, Link
from planaria.protocols.mobile.messages import MESSAGES
from planaria.protocols.mobile.node import MobileNode, MobileState
from planaria.verify.coins import Coins
from planaria.verify.model import Constants, First, Flying, Model

TOPIC = "t"
HERE = "planaria.protocols.mobile"
GAP = 4
SMALL: Constants = {
    "heights:HEIGHT_MAX": 40,
    "heights:GAP_MAX": GAP,
    "heights:LOUD": 1,
    "orientation:AUDIT": 2,
    "orientation:AUDIT_RUN": 1,
    "link:STALE_MAX": 2,
    "layer:SILENCE_MAX": 4,
    "layer:ASK_MAX": 3,
    "layer:REFUSED": 2,
    "legitimacy:HEIGHT_MAX": 40,
    "legitimacy:HEADROOM": 8,
    "legitimacy:STALE_MAX": 2,
    "legitimacy:QUIET_MAX": 2,
    "legitimacy:LATE_MAX": 2,
    "legitimacy:SILENCE_MAX": 4,
}
SERIALS = 256
GRAPHS = {
    "path": {n: [(i, i + 1) for i in range(n - 1)] for n in range(2, 6)},
    "ring": {n: [(i, (i + 1) % n) for i in range(n)] for n in range(3, 6)},
}
HEIGHTS = (0, 1, 2)
ABSURD = 2 * GAP + 1


class MobileModel(Model):
    """Members 0 to n - 1 of one layer, on a path or (`ring`) on a ring.

    `heights`: all links up, any heights of 0..2 with any beliefs of them, and one absurd height.
    `links`: any state of every link at either end, beats expected in any order, heights right.
    """

    name = "mobile"
    messages = MESSAGES
    starts = ("heights", "ring", "links")
    small = MappingProxyType({f"{HERE}.{name}": value for name, value in SMALL.items()})

    def __init__(self, n: int, start: str = "heights") -> None:
        super().__init__(n, start)
        edges = GRAPHS["ring" if start == "ring" else "path"][n]
        self.near: dict[NodeId, list[NodeId]] = {id: [] for id in range(n)}
        for a, b in edges:
            self.near[a].append(b)
            self.near[b].append(a)

    @property
    def covered(self) -> str:
        """The starts, in one sentence."""
        graph = "ring" if self.start == "ring" else "path"
        if self.start == "links":
            return f"a {graph} of {self.n}: every state of every link, every order of beats"
        return (
            f"a {graph} of {self.n}: all heights of 0..2 and {ABSURD}, all views of 0..2, "
            "local identifiers in every order of which the first two differ or not"
        )

    def nodes(self, coins: Coins) -> list[Node]:
        """The members."""
        return [MobileNode(id, coins) for id in range(self.n)]

    def firsts(self) -> Iterator[First]:
        """Every state of the set, with local identifiers that are equal, rise or fall."""
        for lids in ([0] * self.n, list(range(self.n)), list(range(self.n))[::-1]):
            made = [list(self._layers(id, lids)) for id in range(self.n)]
            for layers in product(*made):
                yield First(dict(enumerate(layers)))

    def choices(self) -> dict[NodeId, list[State]]:
        """Every layer, with local identifiers that rise."""
        return {id: list(self._layers(id, range(self.n))) for id in range(self.n)}

    def _layers(self, id: NodeId, lids: Sequence[int]) -> Iterator[State]:
        near = self.near[id]
        if self.start == "links":
            for links in product(_ends(), repeat=len(near)):
                up = {peer: link for peer, link in zip(near, links, strict=True) if link}
                views = {peer: (0, lids[peer]) for peer, it in up.items() if it.state != ASKED}
                yield self._state(id, up, HeightsState(0, lids[id], views, True, 0, {}))
            return
        for height in (*HEIGHTS, ABSURD):
            for seen in product(HEIGHTS, repeat=len(near)):
                views = {peer: (it, lids[peer]) for peer, it in zip(near, seen, strict=True)}
                up = {peer: Link(UP, heard=0, replayed=True) for peer in near}
                yield self._state(id, up, HeightsState(height, lids[id], views, True, 0, {}))

    def _state(self, id: NodeId, links: dict[int, Link], heights: HeightsState) -> State:
        node = MobileNode(id, Coins())
        node.reach = dict.fromkeys(self.near[id])
        node.on_command(Subscribe(TOPIC))
        state = node.state()
        layer = state.layers[TOPIC]
        layer.links, layer.orientation = links, heights
        return state

    def plain(self, state: State) -> State:
        """Turns are counted for whoever measures, and without publications no time is read."""
        for layer in _layers(state):
            layer.turns = layer.news.now = 0
        return state

    def shifted(self, states: list[State]) -> list[State] | None:
        """Heights from the lowest, beats from the last: differences are all that rules read.

        The floor keeps 0 and the ceiling what they are as long as somebody is near either.
        """
        layers = [layer for state in states for layer in _layers(state)]
        seen = [it.orientation.height for it in layers]
        seen += [view[0] for it in layers for view in it.orientation.views.values()]
        low = min(seen) - 1 if layers else 0
        if low > 0 and max(seen) - min(seen) <= GAP:
            for layer in layers:
                layer.orientation.height -= 3 * (low // 3)
                for peer, (height, lid) in layer.orientation.views.items():
                    layer.orientation.views[peer] = (height - 3 * (low // 3), lid)
                word = layer.said[0]
                if len(word) == 4 and word[1] >= 3 * (low // 3):
                    height = word[1] - 3 * (low // 3)
                    layer.said = ((word[0], height, *word[2:]), layer.said[1])
        self._count_beats(states)
        return states

    def _count_beats(self, states: list[State]) -> None:
        """Let the last beat of everybody be number 0."""
        own = {id: layer for id, state in enumerate(states) for layer in _layers(state)}
        serials = {id: layer.serial for id, layer in own.items()}
        for id, layer in own.items():
            layer.said = (layer.said[0], (layer.said[1] - serials[id]) % SERIALS)
            layer.serial = 0
            for peer, link in layer.links.items():
                if link.heard is not None and peer in serials:
                    link.heard = (link.heard - serials[peer]) % SERIALS

    def violations(
        self, states: Mapping[NodeId, State], channel: Sequence[Flying]
    ) -> list[Violation]:
        """As the product judges a layer; and somebody has a turn once all is heard."""
        layers = {id: layer for id, state in states.items() for layer in _layers(state)}
        flying = [(target, message) for _, target, message in channel]
        found = LayerJudge().violations(TOPIC, layers, self.near, flying)
        heard = all(
            view[0] == layers[peer].orientation.height
            for layer in layers.values()
            for peer, view in layer.orientation.views.items()
        )
        if not found and heard and not any(_sink(id, it) for id, it in layers.items()):
            found.append(Violation("turn", None, "all is heard and nobody has a turn"))
        return found


def _layers(state: State) -> list[LayerState]:
    assert isinstance(state, MobileState)
    return [*state.layers.values()]


def _sink(id: NodeId, layer: LayerState) -> bool:
    """Does this node take itself for a sink?"""
    orientation = Heights(id, Coins())
    orientation.load(layer.orientation)
    return orientation.sink()


def _ends() -> list[Link | None]:
    """One end of a link: none, or in any state, the last beat heard long ago or yet to come."""
    up = [Link(UP, heard=heard, replayed=True) for heard in (None, 0, 5, SERIALS - 5)]
    return [None, Link(ASKED), Link(CLOSING), *up]
