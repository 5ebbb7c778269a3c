"""The page of the link reversal paper, from its tables."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from planaria.studies.charts import Point, draw, lines
from planaria.studies.study import Block, Figure, Prose, Shown, Table, said

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Tables = Mapping[str, Table]
ARROW = {"arrowstyle": "-|>", "shrinkA": 11, "shrinkB": 11, "mutation_scale": 12}


def page(tables: Tables) -> Sequence[Block]:
    """Section by section: what the paper says, what we get, why they differ."""
    return [
        *_summary(tables),
        *_layers(tables),
        *_orientation(tables),
        *_reversal(tables),
        *_turns(tables),
        *_dissemination(tables),
        *_anonymity(tables),
        _unmeasured(),
    ]


def _summary(tables: Tables) -> list[Block]:
    claims = tables["claims"]
    held = sum(row["holds"] for row in claims)
    printed = [row for row in tables["literal"] if not row["holds"]]
    return [
        Prose(
            "<p>The paper measures nothing: it has two drawings, five algorithms, one theorem, one "
            f"corollary and nine lemmas. Each became a question that a run can answer. Of "
            f"{len(claims)} answers {held} agree with the paper for what Planaria does; of "
            f"{len(tables['literal'])} that can be asked of the printed text alone "
            f"{len(printed)} do not. The reason is one: &ldquo;&#8826;&rdquo; of Definition 3 is "
            "<i>x</i> + 1 modulo 3, which goes round in a circle and is not an order. Planaria "
            "orders nodes by an integer height; on the wire it still says it modulo 3 where "
            "neighbours differ by at most one.</p>"
        ),
    ]


def _layers(tables: Tables) -> list[Block]:
    return [
        Prose(
            "<h3>Section 2 and 3.1: layers and connection points</h3><p>Figure 2.1 is a network of "
            "five processors and two layers. Processor 5 has neighbours 2, 3 and 4 in the first "
            f"and 1 in the second; ours has {said(tables, '5 in layer 1')['measured']:g} and "
            f"{said(tables, '5 in layer 2')['measured']:g}. The paper keeps one identifier for all "
            "layers, so joining a second layer rewrites what the first stands on and all of it can "
            "starve (Lemma 6, printed); here everything is per layer, and a checker looks after "
            "every message. A node with f links of its own leaves a network that f &minus; 1 "
            "failures do not cut without such a cut:</p>"
        ),
        Figure("figure21", "Figure 2.1: the links that the text names, by layer.", _figure_2_1()),
        Shown("connections", "Sets of nodes whose loss cuts the rest apart, nodes with f links."),
    ]


def _orientation(tables: Tables) -> list[Block]:
    return [
        Prose(
            "<h3>Section 3.2: orientation</h3><p>Lemma 1 says that no state has a directed cycle. "
            f"As printed, {_percent(tables, 'literal', 'Lemma 1')} of all states of all graphs of "
            "up to four nodes have one, the smallest on a triangle. Lemma 2 says that newcomers "
            "close none. Beside neighbours with equal values they do not (Figure 3.2 a). Beside "
            "different ones rule R2 takes the smallest number, which is not the smallest in the "
            "paper's own relation, and closes a cycle at once in the drawing on the right "
            f"(in {_percent(tables, 'literal', 'Lemma 2, Figure')} of all joins); later somebody "
            f"starves after {_percent(tables, 'literal', 'Lemmas 2 and 4')} of them, although the "
            "other rules were amended first. Waiting for each neighbour to be a sink (Note 2) does "
            "not cure it with one value per node "
            f"({_percent(tables, 'literal', 'Note 2')} of runs starve somebody); with one bit per "
            f"link, as our edge bits do it, it does ({_percent(tables, 'claims', 'Note 2')}).</p>"
        ),
        Figure(
            "figure32",
            "Figure 3.2: a newcomer (black) by rule R1, and by rule R2 with the cycle it closes. "
            "Labels are value and identifier; arrows point to the lower end.",
            _figure_3_2(),
        ),
    ]


def _reversal(tables: Tables) -> list[Block]:
    return [
        Prose(
            "<h3>Section 3.3: reversal</h3><p>LLRO's second rule takes the largest <i>number</i> "
            "around. A sink with value 2 beside 2 and 0 then stays as it is, for ever. From equal "
            f"values somebody starves in {_percent(tables, 'literal', 'Lemma 4: share of graphs')} "
            "of all connected graphs with all acyclic orders; with heights in "
            f"{_percent(tables, 'claims', 'Lemma 4: share of graphs')}. From heights that are not "
            "level a sink in Planaria, too, may need two turns until all its links point away "
            f"({_percent(tables, 'claims', 'Lemma 3: share of steps from any')} of steps): "
            "its neighbours wait one turn longer; level heights never do it. Lemma 5 says that "
            "fewer than three states will not do; one bit per node does, while links stay, in "
            f"{_cases(tables, 'two_states')} of {_cases(tables, 'two_states', 'cases')} cases "
            "without starvation or cycle.</p>"
        ),
        Figure(
            "starving",
            "Lemma 4: share of graphs and orders, from equal values, in which somebody starves.",
            lines(
                {
                    "LLRO as printed": _starving(tables, "literal"),
                    "heights": _starving(tables, "ours"),
                    "paper": [Point(point.x, 0.0) for point in _starving(tables, "ours")],
                },
                x="nodes",
                y="share that starves",
                dashed=("paper",),
            ),
        ),
    ]


def _turns(tables: Tables) -> list[Block]:
    return [
        Prose(
            "<p>How often is it one's turn? On an even cycle or a tree every other round; in a "
            "complete graph once in n rounds; all get the same number of turns up to a few, and no "
            "neighbours differ by more than one.</p>"
        ),
        Figure(
            "turns",
            "Executions per node and round, by graph.",
            _bars(tables["fairness"], "graph", {"executions per round": "executions"}),
        ),
        Shown("fairness", "Turns, waits, and what one publication costs, with heights."),
        Shown("healing", "Intervals until legitimate: from any state, joining at once, in motion."),
    ]


def _dissemination(tables: Tables) -> list[Block]:
    table_4 = max(row["table_4"] / row["flooding"] for row in tables["cost"])
    return [
        Prose(
            "<h3>Section 4: dissemination</h3><p>Table 4 sends on all that it received, back to "
            "where it came from and again when it returns, for ever: up to "
            f"{table_4:.0f} times as many copies as flooding after forty rounds and no end. "
            "Forwarded once, each publication crosses each link once. That is flooding, in another "
            "order; as neighbours never speak at once it is a little less than naive flooding on "
            "graphs with cycles and exactly as much on trees. A relay that leaves with the news "
            "takes it along (Lemma 8 asks only that sinks stay); here whoever comes into reach is "
            "told what was recent.</p>"
        ),
        Figure(
            "copies",
            "Copies of one publication, by graph. Table 4 was stopped after forty rounds.",
            _bars(
                [row for row in tables["cost"] if row["orientation"] == "heights"],
                "graph",
                {"Planaria": "sends", "flooding": "flooding", "Table 4 as printed": "table_4"},
                log=True,
            ),
        ),
        Shown("cost", "Rounds until all have a publication, and copies, by orientation."),
    ]


def _anonymity(tables: Tables) -> list[Block]:
    return [
        Prose(
            "<h3>Note 5: anonymity</h3><p>&ldquo;The sender of a message may not be the "
            "publisher.&rdquo; Some watchers see all traffic of their own nodes and guess. "
            "Whatever they make of the first link over which a publication came, they are right "
            "at most as often as there are such links per honest node; the bound is reached. In a "
            "star's centre that is always: the claim holds where many nodes stand behind few "
            "watched links, and not there. Publications can also be made to walk a little before "
            "they are flooded; then whoever speaks first to a watcher in a grid is the publisher "
            f"in {_percent(tables, 'claims', 'Note 5: the same')} of cases instead of "
            f"{_percent(tables, 'claims', 'Note 5: share of publishers')}.</p>"
        ),
        Figure(
            "observers",
            "How often watchers name the publisher.",
            _bars(
                [
                    {
                        **row,
                        "who": f"{row['graph']}, {row['observers']}" + ", walk" * (row["walk"] > 0),
                    }
                    for row in tables["anonymity"]
                ],
                "who",
                {
                    "whoever spoke first": "first_sender",
                    "best guess": "best_guess",
                    "bound": "bound",
                },
            ),
        ),
        Shown(
            "anonymity",
            "Who watches, steps a publication walks, a blind guess, two better ones, the bound.",
        ),
    ]


def _unmeasured() -> Prose:
    return Prose(
        "<p>Not measured, because nothing can be counted: that layers model topic-based and "
        "content-based systems alike, and that only local information is needed. Both are true "
        "of the code: a node is told who is in reach and hears neighbours, no more.</p>"
    )


def _percent(tables: Tables, table: str, words: str) -> str:
    column = "measured" if table == "claims" else "literal"
    return f"{100 * said(tables, words, table)[column]:.3g} %"


def _cases(tables: Tables, question: str, column: str = "") -> int:
    rows = [r for r in tables["cases"] if r["question"] == question and r["reading"] == "ours"]
    return sum(row[column] if column else row["cases"] - row["failing"] for row in rows)


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
