"""Text for people: columns in line, nothing wider than a terminal of 80 columns."""

from collections.abc import Iterator, Sequence
from shlex import quote, split
from textwrap import wrap

WIDTH = 80
GAP = "  "

Row = Sequence[str]

# No topic has any, but one of a node of an older version may.
_CONTROL = {it: repr(chr(it))[1:-1] for it in (*range(0x20), *range(0x7F, 0xA0))}


def aligned(
    rows: Sequence[Row], right: Sequence[int] = (), wrapped: int | None = None
) -> list[str]:
    """A line for each row, columns in line; those numbered in `right` end in line.

    The text of the column `wrapped` goes on in further lines, so that all of them fit.
    """
    rows = [[*map(visible, row)] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if wrapped is not None:
        others = sum(widths) - widths[wrapped] + len(GAP) * (len(widths) - 1)
        widths[wrapped] = max(1, min(widths[wrapped], WIDTH - others))
        rows = [line for row in rows for line in _continued(row, wrapped, widths[wrapped])]
    return [
        GAP.join(
            text.rjust(width) if number in right else text.ljust(width)
            for number, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def folded(rows: Sequence[Row], right: Sequence[int] = (), width: int = WIDTH) -> list[str]:
    """As `aligned`; columns that do not fit follow below, beside the first one again."""
    rows = [[*map(visible, row)] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines: list[str] = []
    shown = 1
    while shown < len(widths) or not lines:
        chosen = [0]
        while shown < len(widths):
            needed = sum(widths[it] + len(GAP) for it in chosen) + widths[shown]
            if needed > width and len(chosen) > 1:
                break
            chosen.append(shown)
            shown += 1
        part = [[row[it] for it in chosen] for row in rows]
        lines += [""] * bool(lines)
        lines += aligned(part, [place for place, it in enumerate(chosen) if it in right])
    return lines


def filled(text: str, indent: str = "") -> list[str]:
    """`text` in as many lines as it needs, `indent` before all but the first."""
    return wrap(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    ) or [""]


def command(text: str, indent: str = GAP) -> list[str]:
    """A command in lines that can be pasted as they are."""
    parts: list[str] = []
    for word in split(text):
        if parts and parts[-1].startswith("--") and " " not in parts[-1] and word[:2] != "--":
            parts[-1] += f" {quote(word)}"  # an option stays with its value
        else:
            parts.append(quote(word))
    lines = [indent + parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + len(part) + len(" \\ ") > WIDTH:
            lines[-1] += " \\"
            lines.append(2 * indent + part)
        else:
            lines[-1] += f" {part}"
    return lines


def visible(text: str) -> str:
    """`text` with control characters escaped, as names that others chose are shown."""
    return text.translate(_CONTROL)


def counted(number: int, noun: str) -> str:
    """'1 interval', '2 intervals'."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _continued(row: Row, wrapped: int, width: int) -> Iterator[list[str]]:
    for number, text in enumerate(wrap(row[wrapped], width) or [""]):
        line = list(row) if not number else [""] * len(row)
        line[wrapped] = text
        yield line
