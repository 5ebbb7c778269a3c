"""What was published and has not arrived yet, over time, as SVG: one line per protocol.

A line that comes back to the axis lost nothing; one that does not, did.
"""

from collections.abc import Sequence
from html import escape
from math import inf

from msgspec import Struct

WIDTH, HEIGHT = 720, 230
LEFT, RIGHT, TOP, BOTTOM = 46, 16, 48, 34
STEP = 0.25  # intervals between two points of a line
LETTER_PX = 6.5


class Line(Struct, frozen=True):
    """What one protocol owed: since when, and when it was delivered, if ever."""

    name: str
    colour: str
    owed: Sequence[tuple[float, float | None]]


class Fault(Struct, frozen=True):
    """Something that went wrong, and for how long."""

    name: str
    since: float
    lasts: float = 0.0


def backlog(line: Line, time: float) -> int:
    """How many deliveries are outstanding at `time`."""
    return sum(since <= time < (inf if when is None else when) for since, when in line.owed)


def draw(
    title: str, lines: Sequence[Line], faults: Sequence[Fault], end: float, mark: tuple[float, str]
) -> str:
    """The picture from 0 to `end`, in intervals; `mark` is a moment with its name."""
    counts = {
        line.name: [backlog(line, STEP * it) for it in range(int(end / STEP) + 1)] for line in lines
    }
    top = max(1, *(max(it) for it in counts.values()))
    parts = [*_axes(end, top), *_faults(faults, end), _mark(*mark, end)]
    for line in lines:
        points = _steps(counts[line.name], end, top)
        parts.append(
            f'<path d="{points}" fill="none" stroke="{line.colour}" stroke-width="2"'
            f' stroke-linejoin="round"><title>{escape(line.name)}</title></path>'
        )
    body = "\n".join([*parts, *_legend(lines)])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12" role="img">\n<title>{escape(title)}</title>\n'
        f'<rect width="100%" height="100%" fill="white"/>\n'
        f'<text x="{LEFT}" y="18" font-weight="bold">{escape(title)}</text>\n{body}\n</svg>\n'
    )


def _x(time: float, end: float) -> float:
    return round(LEFT + (WIDTH - LEFT - RIGHT) * min(time, end) / end, 1)


def _y(count: float, top: int) -> float:
    return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * count / top, 1)


def _steps(counts: Sequence[int], end: float, top: int) -> str:
    """A path that changes its height only where the count does."""
    path, last = f"M{_x(0, end)} {_y(counts[0], top)}", counts[0]
    for place, count in enumerate(counts):
        if count != last:
            path += f" H{_x(STEP * place, end)} V{_y(count, top)}"
            last = count
    return f"{path} H{_x(end, end)}"


def _axes(end: float, top: int) -> list[str]:
    floor, ceiling, grey = HEIGHT - BOTTOM, TOP, 'text-anchor="end" fill="#555"'
    every = next(it for it in (1, 2, 5, 10, 20, 50, 100) if end / it <= 12)
    ticks = [
        f'<text x="{_x(it, end)}" y="{floor + 16}" text-anchor="middle" fill="#555">{it}</text>'
        for it in range(0, int(end) + 1, every)
    ]
    return [
        f'<path d="M{LEFT} {ceiling} V{floor} H{WIDTH - RIGHT}" fill="none" stroke="#999"/>',
        f'<text x="{LEFT - 6}" y="{floor + 4}" {grey}>0</text>',
        f'<text x="{LEFT - 6}" y="{ceiling + 8}" {grey}>{top}</text>',
        f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 4}" {grey}>intervals</text>',
        *ticks,
    ]


def _faults(faults: Sequence[Fault], end: float) -> list[str]:
    found, floor, taken = [], HEIGHT - BOTTOM, 0.0
    for fault in faults:
        x, until = _x(fault.since, end), _x(fault.since + fault.lasts, end)
        width = max(1.5, until - x)
        found.append(
            f'<rect x="{x}" y="{TOP}" width="{width:.1f}" height="{floor - TOP}" fill="#c00" '
            f'opacity="{0.12 if fault.lasts else 0.8}"><title>{escape(fault.name)}</title></rect>'
        )
        if x >= taken:  # else its name would cover the one before
            found.append(f'<text x="{x + 3}" y="{TOP - 4}" fill="#c00">{escape(fault.name)}</text>')
            taken = x + 3 + LETTER_PX * len(fault.name) + 8
    return found


def _mark(time: float, name: str, end: float) -> str:
    x = _x(time, end)
    return (
        f'<path d="M{x} {TOP} V{HEIGHT - BOTTOM}" stroke="#555" stroke-dasharray="4 3"/>'
        f'<text x="{x - 4}" y="{TOP + 12}" text-anchor="end" fill="#555">{escape(name)}</text>'
    )


def _legend(lines: Sequence[Line]) -> list[str]:
    found, x = [], float(WIDTH - RIGHT)
    for line in lines[::-1]:
        x -= LETTER_PX * len(line.name) + 40
        found.append(
            f'<path d="M{x:.1f} 14 h22" stroke="{line.colour}" stroke-width="3"/>'
            f'<text x="{x + 27:.1f}" y="18">{escape(line.name)}</text>'
        )
    return found
