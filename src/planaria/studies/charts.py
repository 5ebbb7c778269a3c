"""Figures as SVG: one look for all, the same bytes for the same data."""

import io
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLE: Any = {  # its own type is a list of some hundred names
    "svg.hashsalt": "planaria",  # ids in the file, else drawn anew each time
    "svg.fonttype": "none",  # letters stay letters
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    # Okabe and Ito's colours: told apart by every kind of eye, and in print.
    "axes.prop_cycle": "cycler('color', ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', "
    "'#56B4E9', '#000000', '#999999'])",
}


class Point(Struct, frozen=True):
    """A measured value, with its interval if there is one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


def draw(plot: Callable[["Axes"], None], *, width: float = 6.4, height: float = 3.8) -> str:
    """What `plot` puts on the axes, as an SVG document."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        plot(figure.add_subplot())
        sink = io.StringIO()
        figure.savefig(sink, format="svg", metadata={"Date": None, "Creator": "planaria"})
    return sink.getvalue()


def lines(
    series: Mapping[str, Sequence[Point]],
    *,
    x: str,
    y: str,
    log: str = "",
    dashed: Sequence[str] = (),
    beside: Sequence[str] = (),
) -> str:
    """One line per series, with bars where there are intervals; `log` names logarithmic axes.

    A series in `beside` is dotted, in the colour of the one before it.
    """

    def plot(axes: "Axes") -> None:
        colour = None
        for name, points in series.items():
            style = "--" if name in dashed else ":" if name in beside else "-"
            known = [point for point in points if point.low is not None and point.high is not None]
            (line,) = axes.plot(
                [point.x for point in points],
                [point.y for point in points],
                style,
                marker=None if name in dashed else "o",
                markersize=3.5,
                label=name,
                color=colour if name in beside else None,
            )
            colour = line.get_color()
            if known:
                below = [max(0.0, point.y - (point.low or 0.0)) for point in known]
                above = [max(0.0, (point.high or 0.0) - point.y) for point in known]
                axes.errorbar(
                    [point.x for point in known],
                    [point.y for point in known],
                    yerr=[below, above],
                    fmt="none",
                    ecolor=line.get_color(),
                    elinewidth=1,
                    capsize=2,
                )
        axes.set(xlabel=x, ylabel=y)
        if "x" in log:
            axes.set_xscale("log")
        if "y" in log:
            axes.set_yscale("log")
        if len(series) > 1:
            axes.legend(fontsize=9, loc="upper left", bbox_to_anchor=(1.01, 1.0))

    return draw(plot, width=7.6)
