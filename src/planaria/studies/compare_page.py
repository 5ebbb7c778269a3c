"""The picture and the page of a comparison."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from planaria.studies.advice import by_fault, in_calm, outcome
from planaria.studies.charts import draw
from planaria.studies.report import environment, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from planaria.studies.compare import Verdict

Rows = Sequence[Mapping[str, Any]]

DARK = 0.8  # a shade on which black cannot be read


def picture(rows: Rows) -> str:
    """Left: messages per delivery. Right: what each fault did, the darker the worse."""
    names = list(dict.fromkeys(row["contender"] for row in rows))
    faults = list(dict.fromkeys(row["fault"] for row in rows))

    def plot(axes: "Axes") -> None:
        figure = axes.figure
        axes.remove()
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=[1, 1.6])
        _cost(left, [row for row in rows if row["fault"] == "none"], names)
        _losses(right, rows, names, faults)

    return draw(plot, width=9.6, height=0.8 + 0.42 * len(names))


def _cost(axes: "Axes", rows: Rows, names: Sequence[str]) -> None:
    at = {name: place for place, name in enumerate(names)}
    place = [at[row["contender"]] for row in rows]
    for offset, name, label in ((-0.19, "messages", "all"), (0.19, "copies", "that carry events")):
        values = [row[name] for row in rows]
        axes.barh([y + offset for y in place], values, 0.36, label=label)
    axes.set_yticks(range(len(names)), names)
    axes.set_xscale("log")
    axes.set_xlim(left=0.5)
    axes.set_axisbelow(True)
    axes.set_xlabel("messages per delivery, in calm")
    axes.legend(fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def _losses(axes: "Axes", rows: Rows, names: Sequence[str], faults: Sequence[str]) -> None:
    cells = {(row["contender"], row["fault"]): row for row in rows}
    shades = [[_shade(cells.get((name, fault))) for fault in faults] for name in names]
    axes.imshow(shades, cmap="OrRd", vmin=0, vmax=1.4, aspect="auto")
    for y, name in enumerate(names):
        for x, fault in enumerate(faults):
            if (name, fault) in cells:
                text, dark = outcome(cells[name, fault]), shades[y][x] > DARK
                colour = "white" if dark else "black"
                axes.text(x, y, text, ha="center", va="center", fontsize=8, color=colour)
    axes.set_xticks(range(len(faults)), faults)
    axes.tick_params(labelleft=False, length=0)
    axes.grid(visible=False)
    axes.set_xlabel("lost, and intervals until whole again")


def _shade(row: Mapping[str, Any] | None) -> float:
    if row is None:
        return 0.0
    return float(max(row["lost"], row["lost_after"]) + 0.4 * (1 - row["recovered"]))


def page(verdict: "Verdict", svg: str, sizes: Mapping[str, int], version: str) -> str:
    """Everything in one file."""
    return (
        environment()
        .get_template("compare.html")
        .render(
            verdict=verdict,
            sizes=sizes,
            seeds=max((row["seeds"] for row in verdict.table), default=0),
            calm=in_calm(verdict.table),
            faults=by_fault(verdict.table),
            data=b64encode(svg.encode()).decode(),
            style=style(),
            version=version,
        )
    )
