"""A Lamport diagram of a piece of a trace, as SVG: a lane per node, time to the right."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from msgspec import Struct

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.trace import Row
from planaria.simulator.delays import INTERVAL
from planaria.simulator.engine import ENVIRONMENT

EVENTS_MAX = 2_000  # beyond this the arrows are a grey carpet
LANES_MAX = 64
COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9"),
    *("#7b3294", "#4d4d4d", "#66a61e", "#8c510a", "#1b1b7a", "#e7298a"),
)
MARKS = {
    "timeout": '<path d="M5 -7 v14" stroke="black" stroke-width="2"/>',
    "lost": '<path d="M1 -4 l8 8 m0 -8 l-8 8" stroke="#c00" stroke-width="2"/>',
    "start": '<circle cx="5" cy="0" r="4.5" fill="white" stroke="#c00"/>',
    "stop": '<circle cx="5" cy="0" r="4.5" fill="#c00"/>',
    "effect": '<path d="M5 4 l5 -7 h-10 Z" fill="#222"/>',
}

RIGHT = 24
LANE_PX, TEXT_PX, LETTER_PX = 44, 16, 7
WIDTH_MIN, WIDTH_MAX = 900, 6_000
STUB_PX = 16  # the visible end of a message whose other end is outside the window


class Window(Struct):
    """The rows between two ticks; `cut` is the tick at which there were too many."""

    rows: list[Row]
    first: int
    last: int
    cut: int | None = None


def window(rows: Iterable[Row], first: int, last: int | None) -> Window:
    """The rows from `first` to `last` as far as a diagram can show them."""
    found = Window([], first, first)
    for row in rows:
        if row.tick < first or (last is not None and row.tick > last):
            continue
        if len(found.rows) == EVENTS_MAX:
            found.cut = row.tick
            found.rows = [kept for kept in found.rows if kept.tick < row.tick]
            break
        found.rows.append(row)
    if not found.rows and found.cut is not None:
        raise UsageError(f"tick {found.cut} alone has more than {EVENTS_MAX} events to draw")
    if not found.rows:
        raise UsageError(f"nothing to draw from tick {first} on: change --from and --to")
    found.last = max(row.tick for row in found.rows)
    return found


def draw(shown: Window, title: str) -> str:
    """The diagram; arrows are coloured by message type."""
    drawing = _Drawing(shown)
    parts = (drawing.axis(), drawing.faults(), drawing.lanes(), drawing.messages(), drawing.marks())
    body = "\n".join(line for part in parts for line in part)
    width, height = (
        drawing.left + drawing.width + RIGHT,
        drawing.bottom + 12 + TEXT_PX * drawing.texts,
    )
    fits = (width - 30) // LETTER_PX
    headline = title if len(title) <= fits else f"{title[: fits - 1]}…"
    heads = "".join(
        f'<marker id="head{i}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 Z" fill="{colour}"/></marker>'
        for i, colour in enumerate(COLOURS)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">\n'
        f"<title>{escape(title)}</title>\n<defs>{heads}</defs>\n"
        f'<rect width="100%" height="100%" fill="white"/>\n'
        f'<text x="12" y="20" font-weight="bold">{escape(headline)}</text>\n'
        f"{drawing.legend}\n{body}\n</svg>\n"
    )


class _Drawing:
    """Where things are in one diagram."""

    def __init__(self, shown: Window) -> None:
        self.shown = shown
        self.lane = self._lanes(shown.rows)
        types = sorted({row.message_type or "" for row in shown.rows if row.message_id is not None})
        self.colour = {tag: place % len(COLOURS) for place, tag in enumerate(types)}
        self.ticks = max(1, shown.last - shown.first)
        self.width = min(WIDTH_MAX, max(WIDTH_MIN, 4 * len(shown.rows), 2 * self.ticks))
        self.names = {id: "outside" if id == ENVIRONMENT else f"node {id}" for id in self.lane}
        self.left = 28 + LETTER_PX * max(map(len, self.names.values()), default=0)
        self.legend, lines = _legend(self.colour, self.width + self.left)
        self.top = 60 + TEXT_PX * lines
        self.bottom = self.top + LANE_PX * len(self.lane)
        self.texts = 0

    @staticmethod
    def _lanes(rows: Sequence[Row]) -> dict[NodeId, int]:
        nodes = {
            id
            for row in rows
            for id in (row.src, row.dst, None if row.kind == "fault" else row.node)
            if id is not None
        }
        if len(nodes) > LANES_MAX:
            raise UsageError(
                f"{len(nodes)} nodes are active there, a diagram shows {LANES_MAX}: "
                "choose fewer ticks with --from and --to, or trace a smaller run"
            )
        return {id: place for place, id in enumerate(sorted(nodes))}

    def x(self, tick: int) -> float:
        return self.left + round((tick - self.shown.first) / self.ticks * self.width, 1)

    def y(self, node: NodeId) -> float:
        return self.top + LANE_PX * (self.lane[node] + 0.5)

    def axis(self) -> Iterable[str]:
        """Time: a line for every interval, or for rounder steps if these would be too close."""
        step, above = INTERVAL, self.top - 10
        while step > 5 and self.ticks / step < 4:
            step //= 2 if step % 2 == 0 else 5
        while self.ticks / step > self.width / 60:
            step *= 2
        for tick in range(-(-self.shown.first // step) * step, self.shown.last + 1, step):
            x = self.x(tick)
            colour = "#aaa" if tick % INTERVAL == 0 else "#e4e4e4"
            yield f'<path d="M{x} {self.top - 6} V{self.bottom}" stroke="{colour}" fill="none"/>'
            yield f'<text x="{x}" y="{above}" text-anchor="middle" fill="#555">{tick}</text>'
        yield f'<text x="12" y="{above}" fill="#555">tick</text>'

    def lanes(self) -> Iterable[str]:
        for id in self.lane:
            x, y, name = self.left, self.y(id), self.names[id]
            yield f'<text x="{x - 12}" y="{y + 4}" text-anchor="end">{name}</text>'
            yield f'<path d="M{x} {y} h{self.width}" stroke="#888" stroke-width="1.2"/>'

    def messages(self) -> Iterable[str]:
        """An arrow for each copy that arrives, a cross for each message that is lost."""
        sent = {row.message_id: row for row in self.shown.rows if row.kind == "send"}
        arrived = {row.message_id for row in self.shown.rows if row.kind in ("deliver", "drop")}
        for row in self.shown.rows:
            if row.src is None or row.dst is None:
                continue
            start = sent.get(row.message_id)
            from_x = self.x(start.tick) if start else max(self.left, self.x(row.tick) - STUB_PX)
            if row.kind == "deliver":
                yield self._line(row, from_x, self.x(row.tick), 1.0, faint=start is None)
            elif row.kind == "drop":
                yield self._line(row, from_x, self.x(row.tick), 0.6, faint=start is None)
            elif row.message_id not in arrived:
                yield self._line(row, self.x(row.tick), self.x(row.tick) + STUB_PX, 0.3, faint=True)

    def _line(self, row: Row, x1: float, x2: float, share: float, *, faint: bool) -> str:
        assert row.src is not None
        assert row.dst is not None
        place = self.colour[row.message_type or ""]
        colour, y1, y2 = COLOURS[place], self.y(row.src), self.y(row.dst)
        about = escape(f"{row.message_type} #{row.message_id} {row.src} → {row.dst}, {row.kind}")
        if y1 == y2:  # to oneself: an arc, for a straight line would hide in the lane
            path = f"M{x1} {y1} Q{(x1 + x2) / 2:.1f} {y1 - LANE_PX * 0.7:.1f} {x2} {y2}"
            end_x, end_y = x2, y2
        else:
            end_x, end_y = round(x1 + (x2 - x1) * share, 1), round(y1 + (y2 - y1) * share, 1)
            path = f"M{x1} {y1} L{end_x} {end_y}"
        head = f'marker-end="url(#head{place})"' if row.kind == "deliver" else ""
        dash = 'stroke-dasharray="4 3"' if row.kind == "drop" else ""
        cross = ""
        if row.kind == "drop":
            corner = f"M{end_x - 4} {end_y - 4} l8 8 m0 -8 l-8 8"
            cross = f'<path d="{corner}" stroke="#c00" stroke-width="2" fill="none"/>'
        return (
            f'<g opacity="{0.35 if faint else 0.85}"><title>{about}</title>'
            f'<path d="{path}" stroke="{colour}" stroke-width="1.4" fill="none" {dash} {head}/>'
            f"{cross}</g>"
        )

    def faults(self) -> Iterable[str]:
        """A line across all lanes for each fault, its text below where there is room for it."""
        ends: list[float] = []
        for row in self.shown.rows:
            if row.kind != "fault":
                continue
            x, text = self.x(row.tick), row.message_type or ""
            line = next((place for place, end in enumerate(ends) if end < x), len(ends))
            ends[line : line + 1] = [x + 12 + LETTER_PX * len(text)]
            y = self.bottom + TEXT_PX * (line + 1)
            anchor, shift = ("end", -4) if ends[line] > self.left + self.width else ("start", 4)
            yield f'<path d="M{x} {self.top} V{y}" stroke="#c00" stroke-width="1.5"/>'
            yield (
                f'<text x="{x + shift}" y="{y}" text-anchor="{anchor}" fill="#c00">'
                f"{escape(text)}</text>"
            )
        self.texts = len(ends)

    def marks(self) -> Iterable[str]:
        """Timeouts as ticks, starts and stops as dots, effects as triangles."""
        for row in self.shown.rows:
            if row.kind == "fault":
                continue
            x, y = self.x(row.tick), self.y(row.node)
            if row.kind == "timeout":
                yield f'<path d="M{x} {y - 7} V{y + 7}" stroke="black" stroke-width="2"/>'
            elif row.kind in ("start", "stop"):
                fill = "white" if row.kind == "start" else "#c00"
                yield f'<circle cx="{x}" cy="{y}" r="4.5" fill="{fill}" stroke="#c00"/>'
            elif row.kind == "effect":
                yield f'<path d="M{x} {y - 12} l5 -7 h-10 Z" fill="#222"/>'


def _legend(colour: Mapping[str, int], width: int) -> tuple[str, int]:
    """What the colours and the marks mean, and how many lines it takes."""
    swatch = '<path d="M0 0 h18" stroke="{}" stroke-width="3"/>'
    keys = [(tag, swatch.format(COLOURS[place]), 23) for tag, place in colour.items()]
    keys += [(name, shape, 13) for name, shape in MARKS.items()]
    parts, x, line = [], 12, 0
    for name, shape, indent in keys:
        needed = indent + LETTER_PX * len(name) + 16
        if x > 12 and x + needed > width:
            x, line = 12, line + 1
        parts.append(
            f'<g transform="translate({x} {38 + TEXT_PX * line})">{shape}'
            f'<text x="{indent}" y="4">{escape(name)}</text></g>'
        )
        x += needed
    return "".join(parts), line + 1
