"""One overlay at one moment as a picture: who is where, which lines join whom, what is written.

Nodes are known by their ids here. States may be arbitrary: what leads to nobody is left out.
"""

from collections.abc import Callable, Iterable, Sequence
from math import cos, pi, sin, sqrt

from msgspec import Struct

from planaria.core.ids import NodeId

# What a line says: a neighbour on a ring, a shortcut or a finger, a link of a tree, an entry of a
# view, a contact in a supertopic, a link that points from the high to the low end, and any other.
RING, SHORTCUT, TREE = "ring", "shortcut", "tree"
VIEW, SUPER, DOWN, LINK = "view", "super", "down", "link"
OVER = (LINK, VIEW, SHORTCUT, SUPER, DOWN, TREE, RING)  # what is drawn over what
DIRECTED = (SUPER, DOWN)
MEMBER, ROOT, SINK = "member", "root", "sink"
OUTSIDE = 1.0  # where rings are; what is in no ring is drawn within
INSIDE = 0.35
BELOW = 1.0  # where those are drawn in a row that have no place in a tree, a group or a layer
GOLDEN = pi * (3 - sqrt(5))
CIRCLED_MAX = 16  # of one group, drawn in a circle; more fill it
SHOWN = 6  # of a list in a node's figures

Place = tuple[float, float]
Pair = tuple[NodeId, NodeId]
Named = Callable[[NodeId], str]


class Region(Struct, frozen=True):
    """What surrounds the nodes of one group, so far each way; `above` are those it belongs to."""

    name: str
    x: float
    y: float
    wide: float
    high: float
    above: list[int] = []


class Picture(Struct):
    """`lines` of a kind that has a direction lead from the first of a pair to the second.

    `marks` stand beside a node's name, `ends` beside the first of a pair on its line to the second.
    """

    places: dict[NodeId, Place] = {}
    lines: dict[Pair, str] = {}
    marks: dict[NodeId, str] = {}
    ends: dict[Pair, str] = {}
    roles: dict[NodeId, str] = {}
    regions: list[Region] = []
    figures: dict[NodeId, dict[str, str]] = {}
    wide: bool = False  # it fills what there is, where a ring must stay round

    def join(self, a: NodeId, b: NodeId, kind: str) -> None:
        """Draw a line once, as the most telling of what it is."""
        if a == b:
            return
        pair = (a, b) if kind in DIRECTED or a < b else (b, a)
        for drawn in (pair, (pair[1], pair[0])):
            if drawn in self.lines:
                if OVER.index(self.lines[drawn]) >= OVER.index(kind):
                    return
                del self.lines[drawn]
        self.lines[pair] = kind


def on_circle(share: float, radius: float = OUTSIDE) -> Place:
    """The place at `share` of the way around, clockwise from the top."""
    return round(radius * sin(2 * pi * share), 4), round(-radius * cos(2 * pi * share), 4)


def circle_places(ids: Sequence[NodeId], radius: float = OUTSIDE) -> dict[NodeId, Place]:
    """All of them in a circle, in the order given."""
    return {id: on_circle(at / len(ids), radius) for at, id in enumerate(ids)}


def disc_places(
    ids: Sequence[NodeId], middle: Place, wide: float, high: float
) -> dict[NodeId, Place]:
    """All of them around a place: in a circle, or all over it if they are many."""
    n, (x, y) = len(ids), middle
    if n == 1:
        return {ids[0]: middle}
    far = {id: 1.0 if n <= CIRCLED_MAX else sqrt((at + 0.5) / n) for at, id in enumerate(ids)}
    turn = 1 / n if n <= CIRCLED_MAX else GOLDEN / (2 * pi)
    spots = {id: on_circle(at * turn, far[id]) for at, id in enumerate(ids)}
    return {id: (round(x + wide * u, 4), round(y + high * v, 4)) for id, (u, v) in spots.items()}


def row_places(ids: Sequence[NodeId], y: float = BELOW) -> dict[NodeId, Place]:
    """All of them beside each other."""
    return {id: (round((2 * at + 1) / len(ids) - 1, 4), y) for at, id in enumerate(ids)}


def listed(words: Iterable[str]) -> str:
    """The first few of a list, and how many more there are."""
    all = [*words]
    more = f" and {len(all) - SHOWN} more" if len(all) > SHOWN else ""
    return ", ".join(all[:SHOWN]) + more or "nobody"
