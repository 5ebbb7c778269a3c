"""Which overlay to use: rules over the table of a comparison, which name what they found.

A row is one contender under one fault. The advice holds for the workload that was run.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
Rows = Sequence[Row]

BEST_EFFORT = ("gossip",)  # promises no delivery, only its tables


def advice(rows: Rows, raised: Sequence[str] = ()) -> list[str]:
    """Some lines, from the strictest wish to the most modest; none on the contenders in `raised`.

    A run that raised has no row, so the remaining ones would flatter its contender.
    """
    whole = [row for row in rows if row["contender"] not in raised]
    lines = _wishes(whole) if whole else []
    if raised:
        lines.append(f"No advice on these, whose runs raised exceptions: {', '.join(raised)}.")
    return lines


def _wishes(rows: Rows) -> list[str]:
    names = list(dict.fromkeys(row["contender"] for row in rows))
    keeping = [name for name in names if _all(rows, name, lambda it: not _loses(it))]
    healing = [name for name in names if _all(rows, name, _healed)]
    calm = [row["contender"] for row in rows if row["fault"] == "none" and not _loses(row)]
    lines = [
        _best(rows, keeping, "Nothing may be lost, whatever happens"),
        _best(rows, healing, "It must recover by itself, and may lose events meanwhile"),
        _best(rows, calm, "Nothing ever breaks"),
    ]
    lines += _never(rows, names, healing)
    strangers = [it["contender"] for it in rows if it["fault"] == "none" and it["strays"] > 0]
    if strangers:
        lines.append(
            f"Events also pass through nodes that did not ask for them: {', '.join(strangers)}."
        )
    return lines


def broken(rows: Rows) -> list[str]:
    """Promises that the four overlays did not keep."""
    found = []
    for row in rows:
        name, fault = row["contender"], row["fault"]
        if row["kind"] != "overlay":
            continue
        if row["duplicates"] and fault != "corrupt":  # a corrupted memory knows nothing
            found.append(f"{name}, {fault}: {row['duplicates']} duplicate deliveries")
        if row["recovered"] < 1:
            found.append(f"{name}, {fault}: {1 - row['recovered']:.0%} of runs did not recover")
        if fault == "none" and _loses(row) and name not in BEST_EFFORT:
            found.append(f"{name}: lost {max(row['lost'], row['lost_after']):.1%} with no fault")
    return found


def _best(rows: Rows, names: Sequence[str], wish: str) -> str:
    """Among those that fulfil the wish: the fewest messages, the least delay, the least memory."""
    if not names:
        return f"{wish}: none of these."
    calm = {row["contender"]: row for row in rows if row["fault"] == "none"}
    wanted = (("fewest messages", "messages"), ("quickest", "delay"), ("least memory", "memory"))
    best = [
        f"{label} {min(names, key=lambda name: float(calm[name][column]))}"
        for label, column in wanted
    ]
    return f"{wish}: {', '.join(names)} ({', '.join(best)})."


def _never(rows: Rows, names: Sequence[str], healing: Sequence[str]) -> list[str]:
    """Who never recovers, from which faults, and at what cost."""
    lines = []
    for name in names:
        if name in healing:
            continue
        bad = [row for row in rows if row["contender"] == name and not _healed(row)]
        worst = max(bad, key=lambda it: float(it["lost_after"]))
        faults = ", ".join(row["fault"] for row in bad)
        after = f"after {worst['fault']} it keeps losing {worst['lost_after']:.0%}"
        if not worst["lost_after"]:
            after = "that lost nothing in these runs"
        lines.append(f"{name} never recovers from {faults}; {after}.")
    return lines


def _all(rows: Rows, name: str, good: Callable[[Row], bool]) -> bool:
    return all(good(row) for row in rows if row["contender"] == name)


def _loses(row: Row) -> bool:
    return bool(row["lost"] > 0 or row["lost_after"] > 0)


def _healed(row: Row) -> bool:
    return bool(row["recovered"] == 1)


def by_fault(rows: Rows) -> list[list[str]]:
    """A line for each contender: what it lost, and when it was whole again, under each fault."""
    faults = list(dict.fromkeys(row["fault"] for row in rows))
    names = list(dict.fromkeys(row["contender"] for row in rows))
    cells = {(row["contender"], row["fault"]): outcome(row) for row in rows}
    return [
        ["", *faults],
        *([name, *(cells.get((name, fault), "–") for fault in faults)] for name in names),
    ]


def outcome(row: Row) -> str:
    """What was lost, and the intervals until whole; or that it never was."""
    lost = max(row["lost"], row["lost_after"])
    share = "0" if not lost else f"{lost:.0%}" if lost >= 0.01 else "<1%"
    return f"{share}, {row['recovery']:.0f}" if _healed(row) else f"{share}, never"


def in_calm(rows: Rows) -> list[list[str]]:
    """A line for each contender: what events cost while nothing is wrong."""
    head = ["", "carrying", "all", "hops", "delay", "repeats", "strays", "twice", "bytes", "most"]
    lines = [head]
    for row in rows:
        if row["fault"] == "none":
            columns = ("copies", "messages", "hops", "delay", "repeats", "strays")
            twice = sum(it["duplicates"] for it in rows if it["contender"] == row["contender"])
            figures = [f"{row[name]:.3g}" for name in columns]
            sizes = [f"{row[name]:,.0f}" for name in ("memory", "memory_max")]
            lines.append([row["contender"], *figures, str(twice), *sizes])
    return lines
