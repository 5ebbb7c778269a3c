"""What the page draws: one frame says how the whole network was at one moment.

The same frames are made of a running network (`watching`) and of a trace (`recorded`), so that one
page shows both. Ids are text: a browser's numbers end at 53 bits.
"""

from msgspec import Struct

OK, DOUBTS, SILENT = "ok", "doubts", "silent"
GOOD, ONCE, BROKEN = "good", "once", "broken"  # a lamp; once: seen in one look, it may be in flight


class NodeView(Struct, frozen=True, omit_defaults=True):
    """One node, its place (each of x and y from -1 to 1) and what its detail shows.

    `arrived` are the publications that it has come to hold since the frame before.
    """

    id: str
    name: str
    x: float
    y: float
    state: str = OK
    role: str = "member"
    arrived: int = 0
    doubts: list[str] = []
    figures: dict[str, str] = {}


class Lamp(Struct, frozen=True):
    """One invariant; `told` says what is wrong, where."""

    name: str
    state: str
    told: str = ""


class TopicView(Struct, frozen=True):
    """One topic of the network."""

    name: str
    members: int
    publications: int
    charter: int
    legitimate: bool


class Rates(Struct, frozen=True):
    """Publications that came to be held and that were handed over, each second, by all nodes."""

    held: float = 0.0
    delivered: float = 0.0
    clients: int = 0
    publications: int = 0


class Frame(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The network at `time`: seconds of a live network, intervals or seconds of a recorded one.

    `legitimate` is None where nobody judged. Edges are the numbers of two nodes of `nodes` and a
    kind; `pulses` are messages with publications that travelled since the frame before, and
    `events` what happened, in words. In a recording nodes stay where they are: `nodes` is empty,
    and `states` tells those that are not ok.
    """

    time: float
    legitimate: bool | None
    topic: str = ""
    nodes: list[NodeView] = []
    states: dict[int, str] = {}
    edges: list[tuple[int, int, str]]
    lamps: list[Lamp]
    pulses: list[tuple[int, int]] = []
    events: list[str] = []
    topics: list[TopicView] = []
    rates: Rates = Rates()
    healed: list[tuple[float, float]] = []  # when something broke, and after how long it was right


class Recording(Struct, frozen=True):
    """A whole run, for a page that needs no network."""

    title: str
    unit: str  # of time
    nodes: list[NodeView]
    frames: list[Frame]
