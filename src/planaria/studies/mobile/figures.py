"""The figures of the study of link reversal."""

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from planaria.studies.charts import Point, draw, lines
from planaria.studies.study import Table, Tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ARROW = {"arrowstyle": "-|>", "shrinkA": 11, "shrinkB": 11, "mutation_scale": 12}


def figures(tables: Tables) -> dict[str, str]:
    """The two drawings of the paper, and what was measured."""
    heights = [row for row in tables["cost"] if row["orientation"] == "heights"]
    copies = {"Planaria": "sends", "flooding": "flooding", "Table 4 as printed": "table_4"}
    guesses = {"whoever spoke first": "first_sender", "best guess": "best_guess", "bound": "bound"}
    watched = [
        {**row, "who": f"{row['graph']}, {row['observers']}" + ", walk" * (row["walk"] > 0)}
        for row in tables["anonymity"]
    ]
    return {
        "figure21": _figure_2_1(),
        "figure32": _figure_3_2(),
        "starving": _starvation(tables),
        "turns": _bars(tables["fairness"], "graph", {"executions per round": "executions"}),
        "copies": _bars(heights, "graph", copies, log=True),
        "observers": _bars(watched, "who", guesses),
    }


def _starvation(tables: Tables) -> str:
    ours = _starving(tables, "ours")
    series = {"LLRO as printed": _starving(tables, "literal"), "heights": ours}
    series["paper"] = [Point(point.x, 0.0) for point in ours]
    return lines(series, x="nodes", y="share that starves", dashed=("paper",))


def _starving(tables: Tables, reading: str) -> list[Point]:
    rows = [r for r in tables["cases"] if (r["question"], r["reading"]) == ("starving", reading)]
    return [Point(row["n"], row["failing"] / row["cases"]) for row in rows]


def _bars(rows: Table, label: str, series: Mapping[str, str], *, log: bool = False) -> str:
    """Bars side by side, one group per row."""

    def plot(axes: "Axes") -> None:
        width = 0.8 / len(series)
        for place, (name, column) in enumerate(series.items()):
            at = [number + (place - (len(series) - 1) / 2) * width for number in range(len(rows))]
            axes.bar(at, [row[column] for row in rows], width, label=name)
        axes.set_xticks(range(len(rows)), [row[label] for row in rows], rotation=30, ha="right")
        if log:
            axes.set_yscale("log")
        if len(series) > 1:
            axes.legend(fontsize=9)
        else:
            axes.set_ylabel(next(iter(series)))

    return draw(plot)


def _figure_2_1() -> str:
    places = {1: (0.0, 0.0), 2: (1.0, 1.0), 3: (2.0, 1.0), 4: (2.4, 0.0), 5: (1.2, 0.0)}
    links = {"layer 1": [(5, 2), (5, 3), (5, 4)], "layer 2": [(5, 1)]}

    def plot(axes: "Axes") -> None:
        for number, (name, pairs) in enumerate(links.items()):
            for place, (a, b) in enumerate(pairs):
                (ax, ay), (bx, by) = places[a], places[b]
                label = name if place == 0 else None
                axes.plot(
                    [ax, bx], [ay, by], "--" if number else "-", color=f"C{number}", label=label
                )
        _discs(axes, {str(id): place for id, place in places.items()})
        axes.legend(fontsize=9, loc="upper left")

    return draw(plot, width=4.2, height=2.4)


def _figure_3_2() -> str:
    """R1 beside equal values; R2 on the path 1 - 0 - 2 of the errata, whose newcomer is 3."""
    equal = {"0, 1": (0.0, 0.0), "0, 2": (1.0, 0.0), "1, 3": (0.5, 1.0)}
    after = {"0, 1": (2.0, 0.0), "2, 2": (2.7, 0.5), "1, 3": (3.4, 0.0), "0, 2": (2.7, 1.2)}

    def plot(axes: "Axes") -> None:
        for target in ("0, 1", "0, 2"):
            axes.annotate("", equal[target], equal["1, 3"], arrowprops=ARROW)
        around = [after["0, 1"], after["2, 2"], after["1, 3"], after["0, 2"], after["0, 1"]]
        for high, low in pairwise(around):
            axes.annotate("", low, high, arrowprops={**ARROW, "color": "C1"})
        _discs(axes, equal, new="1, 3")
        _discs(axes, after, new="0, 2")

    return draw(plot, width=5.2, height=2.6)


def _discs(axes: "Axes", places: Mapping[str, tuple[float, float]], new: str = "") -> None:
    style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 9, "zorder": 4}
    for label, (x, y) in places.items():
        dark = label == new
        axes.plot([x], [y], "o", ms=26, color="#222222" if dark else "#dbe9f6", zorder=3)
        axes.text(x, y, label, color="white" if dark else "black", **style)
    axes.set_axis_off()
    axes.margins(0.15)
    axes.set_in_layout(False)  # there are no ticks and labels to make room for
    axes.set_position((0.0, 0.0, 1.0, 1.0))
