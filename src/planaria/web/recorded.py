"""Makes frames of a trace: one for each interval of a simulation, or each second of a live run.

A trace says who sent what to whom, which faults there were and, where the run was judged, what was
wrong at the end of each interval. A simulation has pictures of its states too; without one, edges
are the pairs that spoke in that time.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from planaria.core.errors import CapacityExceeded, UsageError
from planaria.core.ids import NodeId
from planaria.core.trace import Row
from planaria.web.frames import BROKEN, DOUBTS, GOOD, SILENT, Frame, Lamp, NodeView, Recording
from planaria.web.pictures.picture import LINK, RING, SHORTCUT, Named, circle_places
from planaria.web.snapshots import START, Lines, Snapshot

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
        self.arrived: set[NodeId] = set()
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

    def lived(self, row: Row, down: set[NodeId], named: Named) -> None:
        """A node stopped or started, or something was broken; `down` are those that stopped."""
        if row.kind in ("start", "restart"):
            down.discard(row.node)
            self.down = set(down)
        elif row.kind == "stop":
            down.add(row.node)
            self.down = set(down)
        if row.kind in ("stop", "restart"):
            words = "stopped" if row.kind == "stop" else "started again"
            self.events.append(f"{named(row.node)} {words}")
        elif row.kind == "fault" and row.message_type is not None:
            where = f"{named(row.node)}: " if row.node > NOWHERE else ""
            self.events.append(f"{where}{row.message_type}")


def recording(
    rows: Iterable[Row],
    title: str,
    *,
    per_frame: int,
    unit: str,
    album: Mapping[int, Snapshot] | None = None,
    names: Mapping[NodeId, str] | None = None,
) -> Recording:
    """The page's data; `per_frame` ticks make one frame, and one `unit` of time.

    A node that is drawn did something itself: forged messages name others too.
    """
    called, pictures = names or {}, album or {}
    slots, ids = _slots(rows, per_frame, lambda it: called.get(it, str(it)))
    if not slots:
        raise UsageError("the trace has no rows: run with --trace-level everything")
    if len(ids) > NODES_MAX:
        raise CapacityExceeded(f"{len(ids)} nodes: a page draws at most {NODES_MAX}")
    numbers = {id: at for at, id in enumerate(sorted(ids))}
    found = circle_places([*numbers])
    nodes = [NodeView(str(id), called.get(id, str(id)), *found[id]) for id in numbers]
    frames, lamps = [], _invariants(slots.values(), pictures.values())
    down: set[NodeId] = set()
    last: str | None = None
    for at in range(START if START in pictures else 0, max(slots) + 1):
        slot = slots.get(at, _Slot())
        down = down if slot.down is None else slot.down
        last = slot.verdict or _verdict(pictures.get(at)) or last
        frame = _frame(at + 1, slot, numbers, down, last, lamps)
        frames.append(_drawn(frame, pictures.get(at), pictures.get(at - 1), numbers))
    if sum(len(frame.edges) for frame in frames) > EDGES_MAX:
        raise CapacityExceeded("too much was said for one page: record fewer intervals or nodes")
    return Recording(title, unit, nodes, frames)


def _verdict(picture: Snapshot | None) -> str | None:
    return None if picture is None else ", ".join(picture.broken) or LEGITIMATE


def _drawn(
    frame: Frame,
    picture: Snapshot | None,
    before: Snapshot | None,
    numbers: Mapping[NodeId, int],
) -> Frame:
    """The frame with what a picture shows, if there is one; who stopped has gone from it."""
    if picture is None:
        return frame

    def lines(all: Lines | None) -> Lines:
        return [(numbers[a], numbers[b], it) for a, b, it in all or () if {a, b} <= numbers.keys()]

    def words(name: str, other: Snapshot | None) -> dict[int, Any]:
        by_id = {} if other is None else getattr(other, name) or {}
        return {numbers[id]: it for id, it in by_id.items() if id in numbers}

    def changed(name: str) -> dict[int, Any] | None:
        now = words(name, picture)
        return None if before is not None and now == words(name, before) else now

    wrong = dict.fromkeys(words("wrong", picture), DOUBTS)
    return replace(
        frame,
        states={**wrong, **frame.states},
        edges=lines(picture.lines),
        ends=lines(picture.ends),
        regions=picture.regions or [],
        wide=picture.wide,
        moved=changed("places"),
        marks=changed("marks"),
        roles=changed("roles"),
        doubts=words("wrong", picture),
        figures=words("figures", picture),
    )


def _slots(
    rows: Iterable[Row], per_frame: int, named: Named
) -> tuple[dict[int, _Slot], set[NodeId]]:
    slots: dict[int, _Slot] = {}
    ids, down = set[NodeId](), set[NodeId]()
    began: int | None = None
    heard: Row | None = None
    for row in rows:
        began = row.tick if began is None else began
        at = max(0, row.tick - began - 1) // per_frame  # the end of an interval belongs to it
        if at >= FRAMES_MAX:
            raise CapacityExceeded(f"more than {FRAMES_MAX} frames: record a shorter run")
        slot = slots.setdefault(at, _Slot())
        if row.src is not None and row.dst is not None:
            if row.kind == "deliver":
                slot.heard(row.src, row.dst, row.message_type or "")
                heard = row
        elif row.kind == "effect" and row.message_type == "Deliver":
            slot.arrived.add(row.node)
            if heard is not None and (heard.message_id, heard.dst) == (row.cause_id, row.node):
                slot.carried.add((heard.src or 0, row.node))
        elif row.kind == "verdict":
            slot.verdict = row.message_type
        else:
            slot.lived(row, down, named)
        if row.node > NOWHERE and row.kind in DEEDS:
            ids.add(row.node)
    return slots, ids


def _invariants(slots: Iterable[_Slot], pictures: Iterable[Snapshot]) -> list[str]:
    """All that was ever broken, so that each has its lamp from the beginning."""
    verdicts = {slot.verdict for slot in slots if slot.verdict not in (None, LEGITIMATE)}
    found = {name for words in verdicts if words for name in words.split(", ")}
    return sorted(found.union(*(it.broken for it in pictures)))


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
        arrived=sorted(numbers[id] for id in slot.arrived if id in numbers),
        events=slot.events[:EVENTS_MAX],
    )
