"""The page of the study of daMulticast: figure by figure, then section VI, then the text alone."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from planaria.studies.charts import Point, draw, lines
from planaria.studies.study import Block, Figure, Prose, Shown, Table, said

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Tables = Mapping[str, Table]
SHARE_FAILED = "share of processes that failed"


def page(tables: Tables) -> Sequence[Block]:
    """Everything in the order in which a reader of the paper asks for it."""
    return [
        *_opening(tables),
        *_figure8(tables),
        *_figure9(tables),
        *_figure10(tables),
        *_figure11(tables),
        *_alternatives(tables),
        *_analysis(tables),
        *_text_alone(tables),
    ]


def number(value: float) -> str:
    """A figure within a sentence."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 0.9 or value >= 1 else f"{value:.4g}"


def at(rows: Table, **where: object) -> Mapping[str, Any]:
    """The row of a table in which these columns have these values."""
    return next(row for row in rows if all(row[key] == value for key, value in where.items()))


def groups_in(rows: Table, column: str = "group") -> list[str]:
    """The groups or links of a table, the bottom first."""
    return sorted({str(row[column]) for row in rows}, reverse=True)


def points(rows: Table, value: str, **where: object) -> list[Point]:
    """One line of a figure."""
    chosen = [row for row in rows if all(row[key] == it for key, it in where.items())]
    return [Point(row["failed"], row[value], row["low"], row["high"]) for row in chosen]


def _opening(tables: Tables) -> list[Block]:
    rows = tables["figure8"]
    bottom, runs = groups_in(rows)[0], sorted(row["runs"] for row in rows)
    return [
        Prose(
            f"<p>An event is published on {bottom}, the lowest of a chain of topics, and gossiped "
            "up to T0. Section VII's dials: g = 5, a = 1, z = 3, b = 3, c = 5; an event is lost on "
            "its way with probability 0.15. Each point is the mean of "
            f"{runs[0]:,} to {runs[-1]:,} events, each with its own failures and tables; bars are "
            "95&nbsp;% intervals. Events are run as arrays; the checks compare them with events "
            "over the real protocol nodes and with an exact Markov chain. A claim counts as "
            "false only if the interval excludes it.</p>"
        )
    ]


def _figure8(tables: Tables) -> list[Block]:
    rows = tables["figure8"]
    series: dict[str, list[Point]] = {}
    stated: dict[str, list[Point]] = {}
    for group in groups_in(rows):
        series[group] = [point for point in points(rows, "sent", group=group) if point.y > 0]
        limit = said(tables, f"VI-B: at most S (ln S + c) events are sent within {group}")["paper"]
        stated[f"{group}: (1 − f) S (ln S + c)"] = [
            Point(point.x, (1 - point.x) * limit) for point in series[group] if point.x < 1
        ]
    top = said(tables, "Fig. 8: with half failed T0")
    bottom = said(tables, f"Fig. 8: with half failed {groups_in(rows)[0]}")
    first = said(tables, "VI-B: at most S (ln S + c)")
    return [
        Figure(
            "figure8",
            "Figure 8: events sent within each group (mean per event, logarithmic).",
            lines(
                series | stated,
                x=SHARE_FAILED,
                y="events sent",
                log="y",
                dashed=list(stated),
            ),
        ),
        Prose(
            "<p><b>Figure 8.</b> The paper shows messages of the order S&nbsp;ln&nbsp;S that fall "
            "with the processes that fail. So it is in the group of the event "
            f"({number(bottom['measured'])} "
            f"sent with half failed, {number(bottom['paper'])} by the formula). Further up it is "
            f"less, since the event often does not arrive: T0 sends {number(top['measured'])} "
            f"instead of {number(top['paper'])}. That S&nbsp;(ln&nbsp;S&nbsp;+&nbsp;c) is an upper "
            f"bound is false by the rounding of the loop in Figure 7: {number(first['measured'])} "
            f"against {number(first['paper'])}.</p>"
        ),
    ]


def _figure9(tables: Tables) -> list[Block]:
    rows = tables["figure9"]
    series: dict[str, list[Point]] = {}
    for link in groups_in(rows, "link"):
        series[f"{link}, sent"] = points(rows, "sent", link=link)
        series[f"{link}, received"] = [
            Point(row["failed"], row["received"]) for row in rows if row["link"] == link
        ]
    promised = said(tables, "VI-B: nbSuperMsg of them are received")["paper"]
    name = "nbSuperMsg with (1 − f)² for both ends"
    shares = sorted({row["failed"] for row in rows})
    series[name] = [Point(share, promised * (1 - share) ** 2) for share in shares]
    reached = said(tables, "Fig. 9: with half failed this is enough for")
    last = said(tables, "Fig. 9: with half failed this is enough for T0")
    alone = said(tables, reached["claim"], "literal")
    half = at(rows, failed=0.5, link=groups_in(rows, "link")[0])
    return [
        Figure(
            "figure9",
            "Figure 9: events between groups (mean per event); the interval is of those sent.",
            lines(series, x=SHARE_FAILED, y="events", dashed=[name]),
        ),
        Prose(
            "<p><b>Figure 9.</b> ‘Even if almost half of the processes fail, at least one event is "
            "sent … This is enough.’ The first is true of the mean "
            f"({number(half['sent'])} sent, {number(half['received'])} received with half failed), "
            "the second does not follow: in "
            f"{number(100 * (1 - reached['measured']))}&nbsp;% of the events the group above gets "
            f"nothing, in {number(100 * (1 - last['measured']))}&nbsp;% the root. With the paper's "
            "own rules (no relay by the publisher, a coin per table entry) nothing arrives above "
            f"in {number(100 * (1 - alone['literal']))}&nbsp;%.</p>"
        ),
    ]


def _reliability(tables: Tables, table: str, meaning: str, extra: dict[str, list[Point]]) -> str:
    rows = tables[table]
    series = {
        group: points(rows, "value", group=group, meaning=meaning) for group in groups_in(rows)
    }
    names = {"of_all": "share of all members", "p_all": "P(every live member receives)"}
    return lines(series | extra, x=SHARE_FAILED, y=names[meaning], dashed=list(extra))


def _figure10(tables: Tables) -> list[Block]:
    rows = tables["figure10"]
    shares = sorted({row["failed"] for row in rows})
    bottom = groups_in(rows)[0]
    stated = said(tables, "(1): everybody in every group")["paper"]
    half = {
        meaning: at(rows, failed=0.5, group=bottom, meaning=meaning)["value"]
        for meaning in ("of_all", "of_alive", "p_all")
    }
    alive = {"alive: 1 − f": [Point(share, 1 - share) for share in shares]}
    printed = {"equation (1)": [Point(share, stated) for share in shares]}
    return [
        Figure(
            "figure10",
            "Figure 10: stillborn processes, the share of all members that receive.",
            _reliability(tables, "figure10", "of_all", alive),
        ),
        Figure(
            "figure10_all",
            "Figure 10 in the sense of section VI-D: the probability that all the live receive. "
            "Where nobody is alive it is 1.",
            _reliability(tables, "figure10", "p_all", printed),
        ),
        Prose(
            "<p><b>Figure 10</b> is titled ‘reliability’, which section VI-D defines as the "
            "probability that every process receives. The text cannot mean that: with half failed "
            f"it is {number(half['p_all'])} in {bottom}, while ‘the reception probability depends "
            f"on the probability of a process having failed’ fits the share of all members "
            f"({number(half['of_all'])}); of the live, {number(half['of_alive'])} are reached. "
            "The table has all three meanings.</p>"
        ),
    ]


def _figure11(tables: Tables) -> list[Block]:
    bottom = groups_in(tables["figure11"])[0]
    start = f"Fig. 11: far better than Fig. 10 with half failed, {bottom}, "
    better = {name: said(tables, start + name) for name in ("share of all", "P(all the live)")}
    return [
        Figure(
            "figure11",
            "Figure 11: failures per observer, the share of all members that receive.",
            _reliability(tables, "figure11", "of_all", {}),
        ),
        Figure(
            "figure11_all",
            "Figure 11 in the sense of section VI-D: the probability that all receive.",
            _reliability(tables, "figure11", "p_all", {}),
        ),
        Prose(
            "<p><b>Figure 11.</b> ‘A much better reliability’ than Figure 10: by the share of all, "
            f"{number(better['share of all']['measured'])} against "
            f"{number(better['share of all']['paper'])} in {bottom} with half failed. By the "
            "probability that all receive it is the other way round: "
            f"{number(better['P(all the live)']['measured'])} against "
            f"{number(better['P(all the live)']['paper'])}.</p>"
        ),
    ]


def _alternatives(tables: Tables) -> list[Block]:
    rows = tables["baselines"]
    bottom, inner = groups_in(rows, "event_group")[:2]
    ours = at(rows, algorithm="daMulticast", event_group=inner)
    flood = at(rows, algorithm="broadcast", event_group=inner)
    widest = [row for row in rows if row["event_group"] == bottom]
    best = min(widest, key=lambda row: row["memory"])
    return [
        Figure(
            "baselines",
            "Section VI-E measured: messages of one event on each topic; hatched: copies received "
            "by processes that did not ask for them.",
            draw(lambda axes: _bars(axes, rows), width=7.2, height=4.2),
        ),
        Prose(
            "<p><b>Alternatives (section VI-E).</b> Each event goes over links that lose as in "
            "section VII. In the paper's own experiment nobody has parasites, because everybody "
            f"wants an event on {bottom}. On {inner} daMulticast sends {number(ours['sent'])} "
            f"messages and no parasite, broadcast {number(flood['sent'])} with "
            f"{number(flood['parasites'])} parasites. That its memory is ‘always smaller’ is "
            f"false: {best['algorithm']} has the smallest tables ({best['memory']} entries, "
            f"daMulticast {ours['memory']}, counted as the paper does). ‘Multicast’ is two "
            "algorithms: (2) is the memory of one, (3) are the messages of the other.</p>"
        ),
        Shown("baselines", "One event by each approach; memory of the process with most."),
    ]


def _bars(axes: "Axes", rows: Table) -> None:
    """For every approach a bar for each topic that an event is published on."""
    names = list(dict.fromkeys(row["algorithm"] for row in rows))
    topics = groups_in(rows, "event_group")
    width = 0.8 / len(topics)
    for place, topic in enumerate(topics):
        here = [at(rows, algorithm=name, event_group=topic) for name in names]
        left = [x - 0.4 + (place + 0.5) * width for x in range(len(names))]
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
    axes.set_xticks(range(len(names)), [name.replace(" (", "\n(").replace(" in ", "\nin ")
                                        for name in names], fontsize=7)  # fmt: skip
    axes.set_axisbelow(True)
    axes.set_yscale("log")
    axes.set_ylabel("messages")
    axes.legend(fontsize=9, ncols=len(topics), loc="lower center", bbox_to_anchor=(0.5, 1.0))


def _analysis(tables: Tables) -> list[Block]:
    pit, inside = said(tables, "VI-D: pit"), said(tables, "VI-D: everybody in")
    every, limit = said(tables, "(1): everybody"), said(tables, "(23): section VII")
    coins = said(tables, pit["claim"], "literal")
    held, room = said(tables, "I (1), VI-C: a process of"), said(tables, "(25): section VII")
    lossless = said(tables, "VI-D: so it is if nothing is lost")
    return [
        Prose(
            "<p><b>The analysis (section VI).</b> Within a group e<sup>−e<sup>−c</sup></sup> = "
            f"{number(inside['paper'])} leaves out the losses of links; measured are "
            f"{number(inside['measured'])} ({number(lossless['measured'])} if nothing is lost). "
            f"Between groups pit = {pit['paper']:.5f} puts means into exponents: with its coins "
            f"{number(coins['literal'])} is measured, with exactly a of z and a publisher that "
            f"always relays {number(pit['measured'])}. Together, (1) promises "
            f"{number(every['paper'])} that everybody receives; it is {number(every['measured'])}. "
            "Equations (14) to (30) count t links where t groups have t&nbsp;−&nbsp;1. With the "
            f"real pit there is no c<sub>1</sub> that makes section VII's c&nbsp;=&nbsp;5 as "
            f"reliable as broadcast: the limit is {number(limit['measured'])}. Where the chain is "
            "the whole system, (25) allows no positive z at all "
            f"(z ≤ {room['measured']:.3f}). Tables: section V specifies (b&nbsp;+&nbsp;1) "
            f"ln&nbsp;S + z, {number(held['measured'])} entries; section VI counts "
            f"{number(held['paper'])}.</p>"
            "<p>Not measured: orders of magnitude as such, (5), (8) and (13); of (3) to (12) the "
            "sums and bounds are, at these sizes, and the growth with S. The c<sub>1</sub> of "
            "(16), (23) and (28) is checked by putting it back into the equation it solves; "
            "fanouts are whole numbers, so a network cannot be set to it.</p>"
        )
    ]


def _text_alone(tables: Tables) -> list[Block]:
    relays = said(tables, "VI-B: nbSuperMsg events are sent", "literal")
    root = said(tables, "IV-C: an event of the bottom topic", "literal")
    search = said(tables, "V-A, Fig. 4: a search fills", "literal")
    stops = said(tables, "V-A, Fig. 4: a search that has found", "literal")
    anew = said(tables, "V-A, Fig. 6", "literal")
    wrong = [escape(row["claim"]) for row in tables["literal"] if not row["holds"]]
    return [
        Prose(
            "<p><b>The text alone.</b> Figure 7 elects with RAND() ≥ p<sub>sel</sub>: "
            f"{number(relays['literal'])} events between two groups instead of 5. If T<sub>i</sub> "
            "is the topic of the event, as in Figure 5, a superprocess sends the event back down "
            f"and joins the group below: the root is reached in {number(100 * root['literal'])}"
            "&nbsp;% of the events. Figure 4 searches for T<sub>i</sub> and files its own group "
            f"as superprocesses: {number(100 * search['literal'])}&nbsp;% of the searches end "
            f"right; with that line amended alone {number(100 * stops['literal'])}&nbsp;% ever "
            "stop. Figure 6 restarts a search only if the table is empty, and a table of dead "
            f"processes is not: {number(100 * anew['literal'])}&nbsp;% recover. Of "
            f"{len(tables['literal'])} claims that the text alone was tried on, {len(wrong)} fail. "
            "Planaria amends each of these places; docs/errata.md lists them.</p>"
        )
    ]
