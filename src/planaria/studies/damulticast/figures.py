"""The figures of the study of daMulticast: the paper's algorithm drawn in full, ours beside it."""

from typing import TYPE_CHECKING

from planaria.studies.charts import Point, draw, lines
from planaria.studies.report import at
from planaria.studies.study import Table, Tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHARE_FAILED = "share of processes that failed"
NAMES = {"paper": "", "planaria": ", ours"}  # of the readings


def figures(tables: Tables) -> dict[str, str]:
    """Figures 8 to 11, the last two in two meanings, and section VI-E."""
    printed = {row["formula"]: row["printed"] for row in tables["formulas"]}
    shares = sorted({row["failed"] for row in tables["figure10"]})
    alive = {"alive: 1 − f": [Point(share, 1 - share) for share in shares]}
    stated = {"equation (1)": [Point(share, printed["reliability"]) for share in shares]}
    return {
        "figure8": _figure8(tables["figure8"], printed),
        "figure9": _figure9(tables["figure9"], printed["links"]),
        "figure10": _reliability(tables["figure10"], "of_all", alive),
        "figure10_all": _reliability(tables["figure10"], "p_all", stated),
        "figure11": _reliability(tables["figure11"], "of_all", {}),
        "figure11_all": _reliability(tables["figure11"], "p_all", {}),
        "baselines": draw(lambda axes: _bars(axes, tables["baselines"]), width=8.8, height=4.2),
    }


def groups_in(rows: Table, column: str = "group") -> list[str]:
    """The groups or links of a table, the bottom first."""
    return sorted({str(row[column]) for row in rows}, reverse=True)


def points(rows: Table, value: str, **where: object) -> list[Point]:
    """One line of a figure."""
    chosen = [row for row in rows if all(row[key] == it for key, it in where.items())]
    return [Point(row["failed"], row[value], row["low"], row["high"]) for row in chosen]


def _figure8(rows: Table, printed: dict[str, float]) -> str:
    series: dict[str, list[Point]] = {}
    stated: dict[str, list[Point]] = {}
    for group in groups_in(rows):
        for reading, name in NAMES.items():
            found = points(rows, "sent", group=group, reading=reading)
            series[group + name] = [point for point in found if point.y > 0]
        limit = printed[f"within {group}"]
        stated[f"{group}: (1 − f) S (ln S + c)"] = [
            Point(point.x, (1 - point.x) * limit) for point in series[group] if point.x < 1
        ]
    return _lines(series, stated, "events sent", log="y")


def _lines(
    series: dict[str, list[Point]], stated: dict[str, list[Point]], y: str, *, log: str = ""
) -> str:
    """The paper's algorithm in full lines, ours dotted beside it, formulas dashed."""
    ours = [name for name in series if name.endswith(NAMES["planaria"])]
    return lines(series | stated, x=SHARE_FAILED, y=y, log=log, dashed=[*stated], beside=ours)


def _figure9(rows: Table, promised: float) -> str:
    series: dict[str, list[Point]] = {}
    for link in groups_in(rows, "link"):
        for reading, name in NAMES.items():
            series[f"{link}, sent{name}"] = points(rows, "sent", link=link, reading=reading)
        for reading, name in NAMES.items():
            got = [row for row in rows if (row["link"], row["reading"]) == (link, reading)]
            series[f"{link}, received{name}"] = [Point(it["failed"], it["received"]) for it in got]
    shares = sorted({row["failed"] for row in rows})
    both = [Point(share, promised * (1 - share) ** 2) for share in shares]
    return _lines(series, {"nbSuperMsg with (1 − f)² for both ends": both}, "events")


def _reliability(rows: Table, meaning: str, extra: dict[str, list[Point]]) -> str:
    series = {
        group + name: points(rows, "value", group=group, meaning=meaning, reading=reading)
        for group in groups_in(rows)
        for reading, name in NAMES.items()
    }
    names = {"of_all": "share of all members", "p_all": "P(every live member receives)"}
    return _lines(series, extra, names[meaning])


def _bars(axes: "Axes", rows: Table) -> None:
    """For every approach a bar for each topic that an event is published on."""
    both = list(dict.fromkeys((row["algorithm"], row["reading"]) for row in rows))
    topics = groups_in(rows, "event_group")
    width = 0.8 / len(topics)
    for place, topic in enumerate(topics):
        here = [at(rows, algorithm=name, reading=it, event_group=topic) for name, it in both]
        left = [x - 0.4 + (place + 0.5) * width for x in range(len(both))]
        bars = axes.bar(left, [row["sent"] for row in here], width, label=f"event on {topic}")
        axes.bar(
            left,
            [row["parasites"] for row in here],
            width,
            color=bars[0].get_facecolor(),
            edgecolor="white",
            hatch="////",
            linewidth=0,
        )
    names = [name + NAMES[reading] for name, reading in both]
    names = [name.replace(" (", "\n(").replace(" in ", "\nin ") for name in names]
    axes.set_xticks(range(len(names)), names, fontsize=7)
    axes.set_axisbelow(True)
    axes.set_yscale("log")
    axes.set_ylabel("messages")
    axes.legend(fontsize=9, ncols=len(topics), loc="lower center", bbox_to_anchor=(0.5, 1.0))
