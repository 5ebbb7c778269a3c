"""Makes frames of a trace: one for each interval of a simulation, or each second of a live run.

A trace says who sent what to whom, which faults there were and, where the run was judged, what was
wrong at the end of each interval. Edges are the pairs that spoke in that time.
"""

from collections.abc import Iterable, Mapping

from planaria.core.errors import CapacityExceeded, UsageError
from planaria.core.ids import NodeId
from planaria.core.trace import Row
from planaria.web.drawing import LINK, RING, SHORTCUT, Place, circle_places
from planaria.web.frames import BROKEN, GOOD, SILENT, Frame, Lamp, NodeView, Recording

FRAMES_MAX = 5_000
NODES_MAX = 2_000
EDGES_MAX = 2_000_000  # in all frames together: a page of some 20 MB
EVENTS_MAX = 8
NOWHERE = -1
DEEDS = {"timeout", "start", "restart", "stop"}  # a forged message names nodes that there are not
LEGITIMATE = "legitimate"
# The messages that carry publications, of all overlays, and those that keep a line up.
CARRIERS = {
    *("publications.arc", "publications.flood", "publications.push", "publications.deposit"),
    *("gossip.event", "routing.notify"),
}
LINES = {"skipring.check": RING, "ring.check": RING, "skipring.introduce_shortcut": SHORTCUT}
OVER = (LINK, SHORTCUT, RING)  # what is drawn over what


class _Slot:
    """What happened between two frames."""

    def __init__(self) -> None:
        self.spoke: dict[tuple[NodeId, NodeId], str] = {}
        self.carried: set[tuple[NodeId, NodeId]] = set()
        self.events: list[str] = []
        self.down: set[NodeId] | None = None
        self.verdict: str | None = None

    def heard(self, src: NodeId, dst: NodeId, tag: str) -> None:
        """A message arrived."""
        if tag in CARRIERS:
            self.carried.add((src, dst))
        else:
            pair, kind = (min(src, dst), max(src, dst)), LINES.get(tag, LINK)
            self.spoke[pair] = max(kind, self.spoke.get(pair, LINK), key=OVER.index)


def recording(
    rows: Iterable[Row],
    title: str,
    *,
    per_frame: int,
    unit: str,
    places: Mapping[NodeId, Place] | None = None,
    names: Mapping[NodeId, str] | None = None,
) -> Recording:
    """The page's data; `per_frame` ticks make one frame, and one `unit` of time.

    A node that is drawn did something itself: forged messages name others too.
    """
    slots, ids = _slots(rows, per_frame)
    if not slots:
        raise UsageError("the trace has no rows: run with --trace-level everything")
    if len(ids) > NODES_MAX:
        raise CapacityExceeded(f"{len(ids)} nodes: a page draws at most {NODES_MAX}")
    order = sorted(ids)
    found = {**circle_places(order), **{id: it for id, it in (places or {}).items() if id in ids}}
    called = names or {}
    nodes = [NodeView(str(id), called.get(id, str(id)), *found[id]) for id in order]
    numbers = {id: at for at, id in enumerate(order)}
    frames, lamps = [], _invariants(slots.values())
    down: set[NodeId] = set()
    last: str | None = None
    for at in range(max(slots) + 1):
        slot = slots.get(at, _Slot())
        down = down if slot.down is None else slot.down
        last = slot.verdict or last
        frames.append(_frame(at + 1, slot, numbers, down, last, lamps))
    if sum(len(frame.edges) for frame in frames) > EDGES_MAX:
        raise CapacityExceeded("too much was said for one page: record fewer intervals or nodes")
    return Recording(title, unit, nodes, frames)


def _slots(rows: Iterable[Row], per_frame: int) -> tuple[dict[int, _Slot], set[NodeId]]:
    slots: dict[int, _Slot] = {}
    ids, down = set[NodeId](), set[NodeId]()
    began: int | None = None
    for row in rows:
        began = row.tick if began is None else began
        at = max(0, row.tick - began - 1) // per_frame  # the end of an interval belongs to it
        if at >= FRAMES_MAX:
            raise CapacityExceeded(f"more than {FRAMES_MAX} frames: record a shorter run")
        slot = slots.setdefault(at, _Slot())
        if row.src is not None and row.dst is not None:
            if row.kind == "deliver":
                slot.heard(row.src, row.dst, row.message_type or "")
        elif row.kind == "verdict":
            slot.verdict = row.message_type
        elif row.kind in ("start", "restart"):
            down.discard(row.node)
            slot.down = set(down)
        elif row.kind == "stop":
            down.add(row.node)
            slot.down = set(down)
            slot.events.append(f"{row.node} stopped")
        elif row.kind == "fault" and row.message_type is not None:
            slot.events.append(row.message_type)
        if row.node > NOWHERE and row.kind in DEEDS:
            ids.add(row.node)
    return slots, ids


def _invariants(slots: Iterable[_Slot]) -> list[str]:
    """All that was ever broken, so that each has its lamp from the beginning."""
    told = {slot.verdict for slot in slots if slot.verdict not in (None, LEGITIMATE)}
    return sorted({name for words in told if words for name in words.split(", ")})


def _frame(
    time: float,
    slot: _Slot,
    numbers: Mapping[NodeId, int],
    down: set[NodeId],
    verdict: str | None,
    names: list[str],
) -> Frame:
    broken = set() if verdict in (None, LEGITIMATE) else set((verdict or "").split(", "))
    edges = sorted(
        (numbers[a], numbers[b], kind)
        for (a, b), kind in slot.spoke.items()
        if a in numbers and b in numbers
    )
    return Frame(
        time=time,
        legitimate=None if verdict is None else not broken,
        states={numbers[id]: SILENT for id in sorted(down) if id in numbers},
        edges=edges,
        lamps=[Lamp(name, BROKEN if name in broken else GOOD) for name in names],
        pulses=sorted(
            (numbers[a], numbers[b]) for a, b in slot.carried if a in numbers and b in numbers
        ),
        events=slot.events[:EVENTS_MAX],
    )
