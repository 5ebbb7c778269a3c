"""The figures of the study of leased routing."""

from typing import TYPE_CHECKING

from planaria.studies.charts import draw
from planaria.studies.study import Table, Tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAPER_CROSSING = 300_000  # read off its plot, for omega1, rho1 and mu1


def figures(tables: Tables) -> dict[str, str]:
    """Figure 2, all of it and the part in which the curves cross."""
    rows = tables["figure2"]
    near = max(row["control"] for row in rows)
    return {"figure2": _curves(rows), "figure2-magnified": _curves(rows, 1.2 * near)}


def _curves(rows: Table, top: float | None = None) -> str:
    """Lines for the closed form, dots for what was simulated; up to `top` if that is given."""
    series: dict[str, dict[str, dict[int, float]]] = {}
    for row in sorted(rows, key=lambda row: int(row["subscriptions"])):
        saves = f"saves, ω = {row['omega']:,.0f}/s"
        costs = f"costs, ρ = {row['rho']:.0f} s, 1/μ = {1 / row['mu']:.0f} s"
        for name, value in ((saves, row["saved"]), (costs, row["control"])):
            points = series.setdefault(name, {}).setdefault(row["method"], {})
            points[row["subscriptions"]] = value

    def plot(axes: "Axes") -> None:
        for name in sorted(series, reverse=True):
            smooth, dots = (series[name].get(it, {}) for it in ("closed_form", "simulated"))
            (line,) = axes.plot([*smooth], [*smooth.values()], label=name)
            axes.plot([*dots], [*dots.values()], "o", markersize=3.5, color=line.get_color())
        axes.set(xlabel="subscriptions", ylabel="messages per second")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.set_major_formatter("{x:,.0f}")
        if top is not None:
            axes.set_ylim(0, top)
            label = f"paper: crossing at {PAPER_CROSSING:,}"
            axes.axvline(PAPER_CROSSING, linestyle="--", color="#555555", label=label)
        axes.legend(fontsize=8)

    return draw(plot, width=7.2, height=4.2)
