"""Every lemma of the link reversal paper that small graphs can answer, by name."""

from collections.abc import Mapping

from msgspec import Struct

from planaria.literal import mobile as paper
from planaria.literal.mobile import Graph, Vals, graph_of
from planaria.spark.grid import Cell
from planaria.spark.sweep import Result
from planaria.studies.mobile import joins as joins
from planaria.studies.mobile import small as small
from planaria.studies.mobile.small import Answer, Count, cases, count

COLUMNS = {"failing": "int64", "cases": "int64"}


class Question(Struct, frozen=True):
    """How to answer with the printed text and with ours, and the largest n at each scale."""

    literal: Answer | None
    ours: Answer | None
    largest: tuple[int, int, int]
    smallest: int = 2
    drawn: bool = False  # cases are drawn: more seeds are more cases


def answer(cell: Cell) -> Result:
    """One question, one reading, one size."""
    question = QUESTIONS[str(cell.parameters["question"])]
    asked = question.literal if cell.parameters["reading"] == "literal" else question.ours
    assert asked is not None
    failing, total = asked(int(cell.parameters["n"]), cell.seed)
    return Result({"failing": failing, "cases": total})


def questions(scale: int, seeds: int) -> tuple[Cell, ...]:
    """All cells of the scale; exhaustive ones need one seed."""
    return tuple(
        Cell({"question": name, "reading": reading, "n": n}, seed)
        for name, question in QUESTIONS.items()
        for reading in ("literal", "ours")
        if getattr(question, reading) is not None
        for n in range(question.smallest, question.largest[scale] + 1)
        for seed in range(seeds if question.drawn else 1)
    )


# Lemma 5: two states


def two_states_printed(n: int, _: int) -> Count:
    """The scheme that the proof argues against: LLRO with vals 0 and 1."""
    return count(
        bool(paper.starved(graph, (0,) * n, lids, _two_values, paper.lower_plain))
        for graph, lids in cases(n)
    )


def _two_values(graph: Graph, vals: Vals, i: int) -> int:
    return paper.llro(graph, vals, i) % 2


def two_states_ours(n: int, _: int) -> Count:
    """One bit per node: cases in which somebody starves or any schedule closes a cycle."""
    rule, low = paper.one_bit, paper.lower_one_bit
    return count(
        bool(paper.starved(graph, (0,) * n, lids, rule, low))
        or not all(
            paper.acyclic(graph, bits, lids, low)
            for bits in paper.reachable(graph, (0,) * n, lids, rule, low)
        )
        for graph, lids in cases(n)
    )


# LLRM keeps one lid for all layers. a - b - c in layer 1; b joins layer 2 beside lids 2 and 4.


def layer_moved_printed(_n: int, _seed: int) -> Count:
    """Does joining layer 2 change what layer 1 stands on?"""
    return int(_shared_lids() != (1, 2, 3)), 1


def layer_starving_printed(_n: int, _seed: int) -> Count:
    """Who starves in layer 1 then."""
    path = graph_of(3, [(0, 1), (1, 2)])
    return len(paper.starved(path, (0, 0, 0), _shared_lids(), paper.one_rule)), 3


def _shared_lids() -> tuple[int, int, int]:
    return 1, paper.llo([(0, 2), (0, 4)])[1], 3


def relay_printed(_n: int, _seed: int) -> Count:
    """p - q - r: p sends, q leaves before its turn, r links to p: does r lack the news?"""
    buffers: dict[int, list[str]] = {0: ["m"], 1: [], 2: []}
    paper.send(graph_of(3, [(0, 1), (1, 2)]), buffers, 0)
    del buffers[1]
    got = [paper.send(graph_of(3, [(0, 2)]), buffers, sink) for sink in (2, 0, 2, 0)]
    return int(not any(got)), 1


QUESTIONS: Mapping[str, Question] = {
    "cyclic": Question(small.cyclic_printed, small.cyclic_ours, (4, 4, 4)),
    "sinkless": Question(small.sinkless_printed, small.sinkless_ours, (4, 4, 4)),
    "step_cyclic": Question(small.step_cyclic_printed, small.step_cyclic_ours, (4, 4, 4)),
    "step_idle": Question(small.step_idle_printed, small.step_idle_ours, (4, 4, 4)),
    "step_again": Question(small.step_again_printed, small.step_again_ours, (4, 4, 4)),
    "starving": Question(small.starving_printed, small.starving_ours, (4, 5, 6)),
    "unfair": Question(small.unfair_printed, small.unfair_ours, (4, 5, 6)),
    "outward": Question(joins.outward_printed, joins.outward_ours, (3, 4, 4)),
    "join_cyclic": Question(joins.join_cyclic_printed, joins.join_cyclic_ours, (3, 4, 4)),
    "join_starving": Question(joins.join_starving_printed, joins.join_starving_ours, (3, 4, 4)),
    "same_lid": Question(
        joins.same_lid_printed, joins.same_lid_ours, (4, 4, 4), smallest=3, drawn=True
    ),
    "two_joiners": Question(
        joins.two_joiners_printed, joins.two_joiners_ours, (2, 2, 2), drawn=True
    ),
    "leave": Question(joins.leave_printed, joins.leave_ours, (3, 4, 4)),
    "waiting": Question(joins.waiting_printed, None, (4, 4, 6), smallest=4, drawn=True),
    "running": Question(joins.running_printed, None, (4, 4, 6), smallest=4, drawn=True),
    "merge": Question(joins.merge_printed, joins.merge_ours, (3, 4, 6), smallest=3, drawn=True),
    "two_states": Question(two_states_printed, two_states_ours, (4, 5, 5)),
    "layer_moved": Question(layer_moved_printed, None, (3, 3, 3), smallest=3),
    "layer_starving": Question(layer_starving_printed, None, (3, 3, 3), smallest=3),
    "relay": Question(relay_printed, None, (3, 3, 3), smallest=3),
}
