"""The figures of the skip ring's study."""

from collections.abc import Sequence
from math import ceil, log2

from planaria.studies.charts import Point, lines
from planaria.studies.skipring.graph import picture
from planaria.studies.study import Row, Table, Tables

REQUESTS = {
    "ours": "ours: 1/(2^(k+1) k²)",
    "printed": "Algorithm 4",
    "prose": "section 3.2.1: actions (ii) and (iv)",
    "proof": "the sum in the proof",
}
QUIET = {"ours": "ours", "amended": "text, amended", "E5 printed": "text, E5 as printed"}
BACKLOG = {"ours": "ours", "amended": "Algorithm 5 on the ring"}


def figures(tables: Tables) -> dict[str, str]:
    """Figure 1, and what was measured."""
    return {
        "figure1": picture(16, 1),
        "congestion": _congestion(tables["congestion"]),
        "requests": _requests(tables["requests"]),
        "quiet": _quiet(tables["quiet"]),
        "recovery": _recovery(tables["recovery"], bound=True),
        "literal_recovery": _recovery(tables["literal_recovery"], bound=False),
        "antientropy": _bytes(tables["antientropy"]),
        "backlog": _backlog(tables["backlog"]),
        "hops": _hops(_where(tables["broadcast"], rule="arc")),
    }


def _congestion(rows: Table) -> str:
    least = "least possible over SR(n)"
    series = {
        "skip ring": _points(rows, "n", "skip_ring"),
        "Chord": _points(rows, "n", "chord"),
        least: _points(rows, "n", "least"),
    }
    return lines(series, x="subscribers", y="packets", log="xy", dashed=[least])


def _requests(rows: Table) -> str:
    series = {
        name: _points(_where(rows, rule=rule), "n", "expected") for rule, name in REQUESTS.items()
    }
    last = max(row["n"] for row in rows)
    return lines(
        {**series, "Theorem 5": [Point(2, 1), Point(last, 1)]},
        x="subscribers",
        y="requests per interval",
        log="x",
        dashed=["the sum in the proof", "Theorem 5"],
    )


def _quiet(rows: Table) -> str:
    series = {
        name: _points(_where(rows, rules=rules), "n", "messages") for rules, name in QUIET.items()
    }
    most = max(point.x for points in series.values() for point in points)
    series["paper"] = [Point(2, 4), Point(most, 4)]
    return lines(series, x="subscribers", y="messages", log="x", dashed=["paper"])


def _recovery(rows: Table, *, bound: bool) -> str:
    healed = [row for row in rows if row["seeds"]]
    series = {start: _intervals(_where(healed, start=start)) for start in _each(healed, "start")}
    limit = "6 log₂ n"
    if bound:
        sizes = sorted({row["n"] for row in healed})
        series[limit] = [Point(n, 6 * log2(n)) for n in sizes]
    return lines(series, x="subscribers", y="intervals", log="x", dashed=[limit])


def _bytes(rows: Table) -> str:
    stored = max(row["stored"] for row in rows)
    alone = _where(rows, stored=stored, packed=1)
    series = {
        method: _points(_where(alone, method=method), "differing", "bytes")
        for method in ("Algorithm 5", "descent", "sketch")
    }
    series["bound"] = _points(_where(alone, method="sketch"), "differing", "bound")
    axis = f"differing publications of {stored:,}"
    return lines(series, x=axis, y="bytes", log="xy", dashed=["bound"])


def _backlog(rows: Table) -> str:
    series = {
        f"{name}, {start}": _intervals(_where(rows, rules=rules, start=start))
        for rules, name in BACKLOG.items()
        for start in _each(rows, "start")
    }
    return lines(series, x="subscribers", y="intervals", log="x")


def _hops(arcs: Table) -> str:
    series = {
        "arcs": _points(arcs, "n", "hops_max"),
        "arcs, mean": _points(arcs, "n", "hops_mean"),
        "log n": [Point(row["n"], ceil(log2(row["n"]))) for row in arcs],
    }
    return lines(series, x="subscribers", y="hops", log="x", dashed=["log n"])


def _where(rows: Table, **wanted: object) -> list[Row]:
    return [row for row in rows if all(row[name] == it for name, it in wanted.items())]


def _each(rows: Table, name: str) -> list[str]:
    return list(dict.fromkeys(str(row[name]) for row in rows))


def _points(rows: Sequence[Row], x: str, y: str) -> list[Point]:
    points = [Point(row[x], row[y]) for row in rows if row[y] is not None]
    return sorted(points, key=lambda point: point.x)


def _intervals(rows: Sequence[Row]) -> list[Point]:
    points = [
        Point(row["n"], row["intervals"], row["low"], row["high"])
        for row in rows
        if row["intervals"] is not None
    ]
    return sorted(points, key=lambda point: point.x)
