"""The page of the study of leased routing."""

from collections.abc import Mapping, Sequence
from math import nan
from typing import TYPE_CHECKING

from planaria.studies.charts import draw
from planaria.studies.study import Block, Figure, Prose, Shown, Table, said

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAPER_CROSSING = 300_000  # read off its plot, for omega1, rho1 and mu1


def page(tables: Mapping[str, Table]) -> Sequence[Block]:
    """Section by section: what the paper says, what we get, why they differ."""
    return [
        Prose(
            "<p>Brokers form a tree; each knows which filters are behind each of its links. Every "
            "routing entry is leased: a clock from 0 to π − 1, a flag for a second chance. So "
            "whatever a fault leaves in a table runs out, and clients renew what they want once in "
            "ρ. The paper gives the rules for five strategies, bounds their stabilization time, "
            "and asks when filtering is worth its control traffic.</p>"
        ),
        *_cases(tables),
        *_stabilisation(tables),
        *_traffic(tables),
        *_crossings(tables),
        Prose(
            "<p>Not measured: section 4 with peer-to-peer routing, of which the paper expects the "
            "same; that filtering would always save something if interests were local "
            "(section 4.2 says so without a setting), and leases that differ by subscription "
            "(section 3.5 gives no numbers; <code>timing_of_each</code> computes them).</p>"
        ),
    ]


def _cases(tables: Mapping[str, Table]) -> list[Block]:
    found = {row["case"]: row for row in tables["cases"]}
    return [
        Prose(
            "<h3>Sections 3.1 to 3.4: which renewals are passed on</h3>"
            "<p>Leases and the second chance are as the paper says: an entry that is not renewed "
            "lives for 2π at most, one renewed once in π for ever. The rule of section 3.4 is "
            "where it goes wrong. Only the first renewal in each leasing period is forwarded, so "
            "renewals reach the parent up to π + ρ apart, and its lease is π: without any fault an "
            f"entry is missing for {found['phases']['printed']:.1f} s of 200 with two clients at "
            "one leaf and clocks out of phase. One corrupted clock therefore never heals "
            f"({found['clock']['printed']:.0f} outages later than Δ in 2,000 periods). Planaria's "
            "brokers renew by themselves, once in ρ, what they told their neighbours, and compute "
            "what must be told from the whole table.</p>"
        ),
        Shown("cases", "The smallest cases: the rules as printed, and our broker in the same."),
    ]


def _stabilisation(tables: Mapping[str, Table]) -> list[Block]:
    rows = tables["stabilisation"]
    ended = [row["worst"] / row["bound"] for row in rows if row["worst"] is not None]
    close = max(ended, default=nan)
    return [
        Prose(
            "<h3>Sections 3.2 and 3.3: stabilization time</h3>"
            "<p>The formula is printed as Δ = d(δ<sub>max</sub> − δ<sub>min</sub>) + 2π, the text "
            "above it needs d·δ<sub>max</sub> + 2π, and so do the paper's own Δ<sub>1</sub> = "
            "2 · 60.2 s + 8 · 25 ms = 120.6 s and Δ<sub>2</sub> = 1200.6 s. In its example "
            "ρ = 14.7 s is not less than π minus the jitter, and Δ is "
            f"{said(tables, 'time is 30 s')['measured']:g} s, not 30; the longest ρ that keeps "
            f"30 s is {said(tables, 'longest rho')['measured']:g} s. Measured in trials of all "
            "strategies, peer-to-peer and hierarchical, the worst took "
            f"{close:.0%} of the bound. Nearly all of that is waiting for false entries to run "
            "out.</p>"
        ),
        Shown(
            "stabilisation",
            "Intervals until legitimate, the worst of all runs, beside the bound.",
        ),
    ]


def _traffic(tables: Mapping[str, Table]) -> list[Block]:
    rows = tables["figure2"]
    most = max(row["subscriptions"] for row in rows)
    near = max(row["control"] for row in rows)
    return [
        Figure(
            "figure2",
            "Figure 2, left: notifications that filtering saves and control messages that it "
            "costs, per second. Lines: closed form; dots: simulated.",
            _curves(rows),
        ),
        Figure(
            "figure2-magnified",
            "Figure 2, right: the part in which they cross.",
            _curves(rows, 1.2 * near),
        ),
        Prose(
            "<p>The setting is the paper's: 121 brokers, 1,000 filter classes, hierarchical "
            f"identity-based routing, up to {most:,} subscriptions. It leaves the analysis for "
            "future work; in equilibrium the subscriptions for one class below one broker are "
            "Poisson distributed, and both curves follow. Closed form and simulation are computed "
            "by different code.</p>"
            "<p>What the text says of the figure needs four corrections. The caption gives curve 3 "
            "the longer and curve 4 the shorter refresh period, the text the other way round: the "
            "limits follow ρ alone, so curves are named by (ρ, μ) here. The limits are 120,000/ρ "
            "when brokers refresh hop by hop; by the printed flag rule they are 120,000/π, "
            f"{said(tables, 'b_c1 converges', 'literal')['literal']:,.1f} instead of 2,000. 'A "
            "small μ such as μ<sub>2</sub>' is the large rate, and a hump comes with a long "
            f"refresh period too: {said(tables, 'does not, with rho2')['measured']:.2f} times the "
            "limit for (ρ<sub>2</sub>, μ<sub>1</sub>). A subscription is refreshed "
            f"{said(tables, 'refreshed 10 times')['measured']:.2f} and "
            f"{said(tables, 'refreshed 100 times')['measured']:.2f} times in its life, not 10 "
            "and 100.</p>"
        ),
    ]


def _crossings(tables: Mapping[str, Table]) -> list[Block]:
    simulated = said(tables, "300,000, simulated")["measured"]
    closed = said(tables, "about 300,000")["measured"]
    return [
        Shown("crossings", "From so many subscriptions on flooding is cheaper than filtering."),
        Prose(
            f"<p>Of the eight crossings the paper names one, 'about {PAPER_CROSSING:,}' for "
            f"ω<sub>1</sub>, ρ<sub>1</sub>, μ<sub>1</sub>: {closed:,.0f} in closed form, "
            f"{simulated:,.0f} simulated.</p>"
        ),
    ]


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
