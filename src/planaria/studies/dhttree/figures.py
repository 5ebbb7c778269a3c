"""The figures of the study of the tree over a DHT."""

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from planaria.studies.charts import Point, draw, lines
from planaria.studies.study import Table, Tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAPERS = {"two": 2.0, "three": 3.0}  # section 4.2.2
NAMES = {1: "one neighbour", 2: "two", 3: "three"}


def figures(tables: Tables) -> dict[str, str]:
    """Figures 2 to 4, and what a search costs."""
    return {
        "figure2": _draw_example(tables["example"]),
        "figure3": _degrees(tables["figure3"]),
        "figure4-join": _areas(tables, "join"),
        "figure4-leave": _areas(tables, "leave"),
        "lookups": _lookups(tables["lookups"]),
    }


def _degrees(rows: Table) -> str:
    series = {
        name: [
            Point(row["hosts"], row["fraction"], row["low"], row["high"])
            for row in rows
            if row["degree"] == degree
        ]
        for degree, name in NAMES.items()
    }
    sizes = sorted({row["hosts"] for row in rows})
    series["ideal: one"] = [Point(n, (n + 1) // 2 / n) for n in sizes]
    series["ideal: two"] = [Point(n, (2 - n % 2) / n) for n in sizes]
    return lines(series, x="hosts", y="share of hosts", dashed=("ideal: one", "ideal: two"))


def _areas(tables: Tables, change: str) -> str:
    series: dict[str, list[Point]] = {}
    for row in tables["figure4"]:
        if row["change"] == change:
            name = row["counting"].replace("_", " ") + " itself"
            series.setdefault(name, []).append(
                Point(row["hosts"], row["area"], row["low"], row["high"])
            )
    ideal = [row for row in tables["ideal"] if row["change"] == change]
    series["ideal, without host"] = [Point(row["hosts"], row["ideal"]) for row in ideal]
    ends = ideal[0]["hosts"], ideal[-1]["hosts"]
    stated = {f"paper: {words}": [Point(n, at) for n in ends] for words, at in PAPERS.items()}
    return lines(series | stated, x="hosts", y="hosts in the area", dashed=tuple(stated))


def _lookups(rows: Table) -> str:
    series = {
        "as printed": [
            Point(it["bits"], it["printed"]) for it in rows if it["printed"] is not None
        ],
        "ours": [Point(it["bits"], it["ours"]) for it in rows if it["bits"] <= 16],
    }
    return lines(series, x="bits of a key", y="lookups", log="y")


def _draw_example(rows: Table) -> str:
    steps = list(dict.fromkeys(row["step"] for row in rows))

    def plot(axes: "Axes") -> None:
        for place, step in enumerate(steps):
            hosts = {row["host"]: row for row in rows if row["step"] == step}
            spots = {
                host: (place * 18 + row["topmost"], -_height(host, hosts))
                for host, row in hosts.items()
            }
            for host, row in hosts.items():
                if row["parent"] is not None:
                    ends = spots[host], spots[row["parent"]]
                    axes.plot(*zip(*ends, strict=True), "-", color="#999999", zorder=1)
            for host, (x, y) in spots.items():
                axes.plot(x, y, "o", markersize=21, color="#0072B2", zorder=2)
                axes.annotate(
                    f"h{host}", (x, y), ha="center", va="center", color="white", fontsize=9
                )
                top = hosts[host]["topmost"]
                axes.annotate(f"{top}", (x + 1.1, y + 0.17), fontsize=8, color="#555555")
            axes.annotate(escape(step), (place * 18 + 9, 0.55), ha="center")
        axes.set_ylim(-2.6, 0.9)
        axes.axis("off")

    return draw(plot, width=8.4, height=2.8)


def _height(host: int, hosts: Mapping[int, Mapping[str, Any]]) -> int:
    above = hosts[host]["parent"]
    return 0 if above is None else 1 + _height(above, hosts)
