"""The skip ring's tables, from its runs summed up."""

from collections.abc import Mapping, Sequence

from planaria.studies.facts import Found, Moments, Summary, mean, row_of
from planaria.studies.study import (
    CHECKS,
    CLAIMS,
    INTERVAL,
    LITERAL,
    REAL,
    WHOLE,
    WORD,
    Columns,
    Row,
    Table,
    Tables,
)

_HEALING = {"start": WORD, "n": WHOLE, "intervals": REAL, **INTERVAL, "max": WHOLE, "seeds": WHOLE}
_FIRST = {"claim": WORD, "n": WHOLE, "paper": REAL, "measured": REAL, **INTERVAL, "holds": WORD}
PROMISED: Mapping[str, Columns] = {
    "claims": {**_FIRST, **CLAIMS},
    "literal": {"claim": WORD, "n": WHOLE, **LITERAL},
    "checks": CHECKS,
    "recovery": _HEALING,
    "antientropy": {
        "stored": WHOLE,
        "differing": WHOLE,
        "method": WORD,
        **dict.fromkeys(("bytes", "messages", "bound"), REAL),
        "packed": WHOLE,
        **dict.fromkeys(("per_publication", "per_record"), REAL),
    },
    "literal_recovery": _HEALING,
    "load": {
        "start": WORD,
        "n": WHOLE,
        **dict.fromkeys(("requests", "configurations", "peak_in", "peak_out", "messages"), REAL),
    },
    "requests": {"n": WHOLE, "rule": WORD, "expected": REAL},
    "quiet": {
        "rules": WORD,
        "n": WHOLE,
        **dict.fromkeys(("requests", "answers", "messages"), REAL),
    },
    "operations": {
        "operation": WORD,
        "n": WHOLE,
        "supervisor": REAL,
        **INTERVAL,
        "peers": REAL,
        "seeds": WHOLE,
    },
    "states": {
        "rules": WORD,
        "fault": WORD,
        "states": WHOLE,
        "healed": WHOLE,
        "intervals": REAL,
        "max": WHOLE,
    },
    "errata": {
        "left_out": WORD,
        "scheduler": WORD,
        "states": WHOLE,
        "not_healed": WHOLE,
        "intervals": REAL,
        "max": WHOLE,
    },
    "tries": {
        "tried": WORD,
        "rules": WORD,
        "pairs": WHOLE,
        "good": WHOLE,
        "messages": REAL,
    },
    "backlog": {
        "start": WORD,
        "rules": WORD,
        "n": WHOLE,
        "intervals": REAL,
        **INTERVAL,
        "rises": WHOLE,
    },
    "broadcast": {
        "n": WHOLE,
        "rule": WORD,
        "messages": WHOLE,
        "hops_max": WHOLE,
        "hops_mean": REAL,
        "hottest": WHOLE,
    },
    "congestion": {"n": WHOLE, "skip_ring": REAL, "chord": REAL, "least": REAL},
}


def tables(found: Found) -> Tables:
    """The tables beside claims and checks."""
    return {
        "recovery": recovery(found["recovery"]),
        "antientropy": antientropy(found["antientropy"]),
        "literal_recovery": recovery(found["literal_recovery"]),
        "load": load(found["recovery"]),
        "requests": _averages(found["requests"], ("rule", "n"), ("expected",)),
        "quiet": _averages(found["quiet"], ("rules", "n"), ("requests", "answers", "messages")),
        "operations": operations(found["operations"]),
        "states": states(found["states"]),
        "errata": errata(found["errata"]),
        "tries": tries(found["tries"]),
        "backlog": backlog(found["backlog"]),
        "broadcast": broadcast(found["broadcast"]),
        "congestion": congestion(found["shape"]),
    }


def _whole(value: float, runs: int) -> int | None:
    return round(value) if runs else None


def _mean(found: Moments) -> float | None:
    """The mean of runs that came to an end, or none."""
    return found.mean if found.runs and found.mean < float("inf") else None


def recovery(runs: Summary) -> Table:
    """Intervals until legitimate of the `seeds` that healed: mean, its interval and the worst."""
    rows: list[Row] = []
    for at, part in runs.by("start", "n"):
        took = part["intervals"]
        figures = row_of(mean(took), "intervals")
        worst = _whole(took.most, took.runs)
        rows.append({**at, **figures, "max": worst, "seeds": took.runs})
    return rows


def load(runs: Summary) -> Table:
    """What a recovery costs: per member, and of one interval in units of the supervisor's rate."""
    return [
        {
            **at,
            **{name: part[name].mean for name in ("requests", "configurations", "messages")},
            **{name: part[name].most for name in ("peak_in", "peak_out")},
        }
        for at, part in runs.by("start", "n")
    ]


def operations(runs: Summary) -> Table:
    """Messages beyond the everyday for one subscribe or unsubscribe."""
    rows: list[Row] = []
    for at, part in runs.by("operation", "n"):
        cost = mean(part["supervisor"])
        more = {"peers": part["peers"].mean, "seeds": cost.runs}
        rows.append({**at, **row_of(cost, "supervisor"), **more})
    return rows


def states(runs: Summary) -> Table:
    """How many arbitrary states heal, and when."""
    return [
        {**at, **_healing(part), "healed": round(part["healed"].total)}
        for at, part in runs.by("rules", "fault")
    ]


def _healing(part: Summary) -> Row:
    took, tried = part["intervals"], part["healed"].runs
    return {"states": tried, "intervals": _mean(took), "max": _whole(took.most, took.runs)}


def errata(runs: Summary) -> Table:
    """What leaving one amendment out does to arbitrary states; 'none' leaves none out."""
    rows = []
    for at, part in runs.by("left_out", "scheduler"):
        healed = part["healed"]
        rows.append({**at, **_healing(part), "not_healed": round(healed.runs - healed.total)})
    order = {"newest": 0, "fifo": 1}

    def place(row: Row) -> tuple[int, int]:
        number = row["left_out"][1:]
        return order[row["scheduler"]], int(number) if number.isdecimal() else 0

    return sorted(rows, key=place)


def tries(runs: Summary) -> Table:
    """Pairs of tries by what was asked of them."""
    return [
        {
            **at,
            "pairs": round(part["pairs"].total),
            "good": round(part["good"].total),
            "messages": part["messages"].mean,
        }
        for at, part in runs.by("tried", "rules")
    ]


def backlog(runs: Summary) -> Table:
    """Intervals until everybody holds everything, of the runs in which that came."""
    rows: list[Row] = []
    for at, part in runs.by("start", "rules", "n"):
        figures = row_of(mean(part["intervals"]), "intervals")
        rows.append({**at, **figures, "rises": round(part["rises"].most)})
    return rows


def broadcast(runs: Summary) -> Table:
    """One publication: the worst of all origins, and the mean of hops."""
    return [
        {
            **at,
            **{name: round(part[name].most) for name in ("messages", "hops_max", "hottest")},
            "hops_mean": part["hops_mean"].mean,
        }
        for at, part in runs.by("rule", "n")
    ]


def congestion(runs: Summary) -> Table:
    """Packets through the busiest node; `least` is what no routing over SR(n) can avoid.

    Half of SR(n) reaches the other half by label 0 or label 1 alone, so one of the two passes on
    half of what (n / 2 - 1) senders on either side send to n / 2 - 1 of n - 1 others.
    """
    rows = []
    for at, part in runs.where(rules="ours").by("n"):
        n = at["n"]
        least = (n / 2 - 1) ** 2 / (n - 1)
        ours, chord = part["congestion"].mean, part["chord"].mean
        rows.append({"n": n, "skip_ring": ours, "chord": chord, "least": least})
    return rows


def antientropy(runs: Summary) -> Table:
    """Bytes until two are equal: in all, for each differing publication and each record of them."""
    rows: list[Row] = []
    by = ("packed", "stored", "differing", "method")
    for row in _averages(runs, by, ("bytes", "messages", "bound")):
        each = None if row["bytes"] is None else row["bytes"] / row["differing"]
        in_record = None if each is None else each * row["packed"]
        rows.append({**row, "per_publication": each, "per_record": in_record})
    return rows


def _averages(runs: Summary, by: Sequence[str], values: Sequence[str]) -> Table:
    return [{**at, **{name: _mean(part[name]) for name in values}} for at, part in runs.by(*by)]
