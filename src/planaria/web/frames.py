"""What the page draws: one frame says how the whole network was at one moment.

The same frames are made of a running network (`watching`) and of a trace (`recorded`), so that one
page shows both. Ids are text: a browser's numbers end at 53 bits.
"""

from msgspec import Struct

from planaria.web.pictures.picture import Place, Region

OK, DOUBTS, SILENT = "ok", "doubts", "silent"
GOOD, ONCE, BROKEN = "good", "once", "broken"  # a lamp; once: seen in one look, it may be in flight
# A node is `once` too: out of place in one look only, or in doubt without anybody else seeing why.


class NodeView(Struct, frozen=True, omit_defaults=True):
    """One node, its place (each of x and y from -1 to 1) and what its detail shows.

    `arrived` are the publications that have come to it since the frame before; `mark` stands
    beside its name.
    """

    id: str
    name: str
    x: float
    y: float
    state: str = OK
    role: str = "member"
    mark: str = ""
    arrived: int = 0
    doubts: list[str] = []
    figures: dict[str, str] = {}


class Lamp(Struct, frozen=True):
    """One invariant; `detail` says what is wrong, where."""

    name: str
    state: str
    detail: str = ""


class TopicView(Struct, frozen=True):
    """One topic of an overlay, or all of one that has none; what is None is not known there."""

    name: str
    members: int | None
    publications: int | None
    charter: int
    legitimate: bool
    overlay: str = "ring"
    laid_down: str = ""  # what its charter says


class ClientView(Struct, frozen=True, omit_defaults=True):
    """One client of the node with the number `node`: who it is, and what it does, in lines."""

    id: str
    node: int
    name: str
    address: str
    figures: str
    connections: int = 1
    does: list[str] = []
    behind: bool = False


class Rates(Struct, frozen=True):
    """Publications that came to be held and that were handed over, each second, by all nodes."""

    held: float = 0.0
    delivered: float = 0.0
    clients: int = 0
    publications: int = 0


class Frame(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The network at `time`: seconds of a live network, intervals or seconds of a recorded one.

    `legitimate` is None where nobody judged. Edges are the numbers of two nodes of `nodes` and a
    kind, `hidden` how many more there are than can be drawn; `ends` are words beside the first of
    two nodes on its line to the second. `pulses` are messages with publications that travelled
    since the frame before, `events` what happened, in words, and `clients` the first of each node.

    In a recording `nodes` is empty: `states` tells those that are not ok, `doubts` why, `arrived`
    to whom publications came. `moved`, `marks` and `roles` are those of all nodes, and None where
    they are as in the frame before; `figures` are those that changed.
    """

    time: float
    legitimate: bool | None
    overlay: str = "ring"
    topic: str = ""
    nodes: list[NodeView] = []
    states: dict[int, str] = {}
    edges: list[tuple[int, int, str]]
    hidden: int = 0
    ends: list[tuple[int, int, str]] = []
    regions: list[Region] = []
    wide: bool = False
    lamps: list[Lamp]
    pulses: list[tuple[int, int]] = []
    events: list[str] = []
    topics: list[TopicView] = []
    rates: Rates = Rates()
    clients: list[ClientView] = []
    healed: list[tuple[float, float]] = []  # when something broke, and after how long it was right
    moved: dict[int, Place] | None = None
    marks: dict[int, str] | None = None
    roles: dict[int, str] | None = None
    figures: dict[int, dict[str, str]] = {}
    doubts: dict[int, str] = {}
    arrived: list[int] = []


class Recording(Struct, frozen=True):
    """A whole run, for a page that needs no network."""

    title: str
    unit: str  # of time
    nodes: list[NodeView]
    frames: list[Frame]
