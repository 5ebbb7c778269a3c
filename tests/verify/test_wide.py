"""The search of packed states finds what the plain one does, and samples say what is so."""

from collections.abc import Callable, Iterator, Sequence
from math import comb
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planaria.cli.main import main
from planaria.core.errors import UsageError
from planaria.core.node import Effects, Node
from planaria.verify import wide as module
from planaria.verify.cases import CASES, Case
from planaria.verify.cells import Cells, Ways, once
from planaria.verify.check import Result, Search
from planaria.verify.coins import Coins
from planaria.verify.fields import Fields
from planaria.verify.known import Codes, Known
from planaria.verify.model import First, Model, constants
from planaria.verify.mutants import MUTANTS
from planaria.verify.mutation import Mutant, mutated
from planaria.verify.sample import (
    Sample,
    chosen,
    count,
    draws,
    least_size,
    sampled,
    share_below,
)
from planaria.verify.space import Schedule
from planaria.verify.verdicts import Verdicts
from planaria.verify.wide import Wide
from verify_toys import Toy, ToyModel, ToyState

SHIFTED = ("mobile", "leases")
PACKED = [it for it in CASES if not (it.large or it.channel or it.model in SHIFTED)]
PACKED.append(Case("sorted-ring", 3, "right", fifo=True))
CAUGHT = [
    (it, it.caught)
    for it in MUTANTS
    if isinstance(it.caught, Case) and not it.caught.channel and it.caught.model not in SHIFTED
]
QUICK = ("E3", "displaced", "contest", "called", "called anew")
ALL = 10_000_000


def searched(wide: Wide) -> Result:
    judged = wide.run(wide.model.firsts(), ALL)
    return wide.result(judged, range(len(wide.starts)))


def kinds(result: Result) -> set[str]:
    return {it.kind for it in result.findings}


@pytest.mark.parametrize("case", PACKED, ids=str)
def test_packed_search_visits_and_finds_what_the_plain_one_does(case: Case) -> None:
    plain, wide = case.search().run(), searched(case.wide())
    for name in ("starts", "states", "expanded", "transitions", "legitimate", "local_steps"):
        assert getattr(wide, name) == getattr(plain, name), name
    assert kinds(wide) == kinds(plain) == set()


@pytest.mark.parametrize("fifo", [False, True])
@pytest.mark.parametrize("delay", [0, 1])
@pytest.mark.parametrize("rule", ToyModel.starts)
def test_packed_search_finds_every_kind_of_fault(rule: str, delay: int, fifo: bool) -> None:
    schedule = Schedule(0, delay, fifo)
    plain = Search(ToyModel(2, rule), schedule).run()
    wide = searched(Wide(ToyModel(2, rule), schedule))
    assert kinds(wide) == kinds(plain)
    if "exception" not in kinds(plain):  # there the plain search drops the other steps of a state
        assert (wide.states, wide.transitions) == (plain.states, plain.transitions)
        assert wide.legitimate == plain.legitimate


@pytest.mark.parametrize(("mutant", "case"), CAUGHT, ids=lambda it: getattr(it, "name", ""))
def test_rule_that_is_left_out_is_found_by_the_packed_search(
    mutant: Mutant, case: Case, seeds: Callable[[int, int], int]
) -> None:
    if mutant.name not in QUICK:
        seeds(0, 1)
    with mutated(mutant):
        plain, wide = case.search().run(), searched(case.wide())
    assert kinds(plain) <= kinds(wide) != set()


def test_a_finding_names_a_start_from_which_the_plain_search_shows_the_way() -> None:
    mutant, case = next(it for it in CAUGHT if it[0].name == "contest")
    with mutated(mutant):
        for it in searched(case.wide()).findings:
            first, _, end = it.detail.removeprefix("--part ").partition(":")
            part = case.search((int(first), int(end))).run()
            assert it.kind in {found.kind for found in part.findings}
            assert it.count > 0


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2)), min_size=1, max_size=8))
def test_outcomes_of_one_action_that_lead_to_one_state_count_once(
    rows: list[tuple[bool, int]],
) -> None:
    rows[0] = (True, rows[0][1])
    actions: list[list[int]] = []
    for lead, code in rows:
        actions += [[]] if lead else []
        actions[-1].append(code)
    leads, codes = (np.array(it) for it in zip(*rows, strict=True))
    numbers = np.cumsum(leads) - 1
    found = once(Ways(numbers, codes.astype(np.uint64), leads, numbers.astype(np.int8)))
    assert [sorted(found.codes[found.rows == it].tolist()) for it in range(len(actions))] == [
        sorted(set(it)) for it in actions
    ]
    assert found.leads.sum() == len(actions)
    assert (found.whose == found.rows).all()


@pytest.mark.parametrize("schedule", [Schedule(2), Schedule(2, 1)])
def test_what_is_in_flight_over_timeouts_is_not_packed(schedule: Schedule) -> None:
    with pytest.raises(UsageError, match="packed only"):
        Wide(ToyModel(2, "tells"), schedule)


def test_nothing_is_said_of_a_packed_search_that_was_not_ended() -> None:
    wide = next(it for it in PACKED if it.model == "ring").wide()
    with pytest.raises(UsageError, match="--states 100"):
        wide.run(wide.model.firsts(), 100)


@given(st.lists(st.lists(st.integers(0, 60), max_size=20), max_size=8))
def test_known_numbers_are_known_and_no_others(batches: list[list[int]]) -> None:
    known, seen = Known(), set[int]()
    for batch in batches:
        codes = np.unique(np.array(batch, dtype=np.uint64))
        fresh = known.fresh(codes)
        assert set(fresh.tolist()) == set(batch) - seen
        known.add(fresh)
        seen |= set(batch)
        assert known.all().tolist() == sorted(seen)
        assert len(known) == len(seen)


# Samples


class Walker(Toy):
    """Goes two nearer to 0 at each timeout, and never leaves what is below."""

    def on_timeout(self) -> Effects:
        self.value = max(self.value - 2, 0) if self.value > 0 else self.value
        return []


class Paths(ToyModel):
    """A hundred first states: of so many as the name says the way ends before it is at 0."""

    starts = ("0", "3")

    def firsts(self) -> Iterator[First]:
        for value in range(100):
            far = -1 - value if value < int(self.start) else 2 * value
            yield First({0: ToyState(far), 1: ToyState(0)})

    def nodes(self, coins: Coins) -> list[Node]:
        return [Walker(id, self.start, coins) for id in (0, 1)]


def taken(start: str, numbers: Sequence[int]) -> Sample:
    wide = Wide(Paths(2, start), Schedule(0, 1))
    judged = wide.run(chosen(wide.model, numbers), ALL)
    return sampled(judged, numbers, count(wide.model))


def test_a_sample_finds_as_many_faults_as_were_planted_among_what_it_drew() -> None:
    assert (taken("3", range(100)).not_clean, taken("0", range(100)).not_clean) == (3, 0)
    drawn = draws(100, 60, 1)
    assert len(set(drawn)) < 60  # with replacement
    found = taken("3", drawn)
    assert found.not_clean == sum(it < 3 for it in drawn)
    assert (found.drawn, found.of) == (60, 100)


def test_the_size_that_is_expected_is_of_all_that_either_half_reaches() -> None:
    """Whoever starts farther comes by all that who starts nearer comes by."""
    far = Search(Paths(2, "0"), Schedule(0, 1), (99, 100)).run().states
    assert taken("0", [10, 99]).size == taken("0", [99, 10]).size == far > 100


def test_chosen_starts_are_those_of_the_model_with_these_numbers() -> None:
    model: Model = Paths(2, "0")
    every = [it.states[0] for it in model.firsts()]
    assert [it.states[0] for it in chosen(model, [70, 3, 3, 99, 0])] == [
        every[it] for it in (0, 3, 70, 99)
    ]


@pytest.mark.parametrize(("found", "drawn"), [(0, 1), (0, 59), (0, 299), (1, 93), (5, 20), (7, 7)])
def test_share_is_the_greatest_of_which_so_few_are_drawn_with_one_chance_in_twenty(
    found: int, drawn: int
) -> None:
    share = share_below(found, drawn)
    few = sum(comb(drawn, it) * share**it * (1 - share) ** (drawn - it) for it in range(found + 1))
    assert few == pytest.approx(1.0 if found == drawn else 0.05)
    if not found:
        assert share == pytest.approx(1 - 0.05 ** (1 / drawn))


def test_stated_share_is_wrong_at_most_once_in_twenty() -> None:
    rng, wrong = Random(1), 0
    for _ in range(1_000):
        share = rng.uniform(0, 0.2)
        found = sum(rng.random() < share for _ in range(60))
        wrong += share_below(found, 60) <= share
    assert wrong <= 65  # 50 are expected


def test_least_size_is_right_where_all_are_met_alike_and_too_little_elsewhere() -> None:
    rng = Random(2)

    def estimate(chances: Sequence[float]) -> float:
        halves = [{it for it, p in enumerate(chances) if rng.random() < p} for _ in range(2)]
        return least_size(len(halves[0]), len(halves[1]), len(halves[0] & halves[1]))

    assert estimate([0.1] * 20_000) == pytest.approx(20_000, rel=0.15)
    assert estimate([0.5] * 2_000 + [0.02] * 18_000) < 10_000


def test_a_sample_is_printed_with_what_it_says_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["verify", "sorted-ring", "--n", "3", "--sample", "60", "--seed", "4"]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "60 starts of 269, drawn with replacement: 0 lead to a fault" in said
    assert "fewer than 4.87% of all do" in said
    assert main([*command, "--json"]) == 0
    assert '"not_clean": 0' in capsys.readouterr().out
    assert main(["verify", "sorted-ring", "--n", "3", "--wide"]) == 0
    assert "18,560 states (all of them)" in capsys.readouterr().out
    with mutated(next(it for it in MUTANTS if it.name == "contest")):
        assert main(["verify", "sorted-ring", "--n", "3", "--wide"]) == 1
        assert "starts lead to one, as --part " in capsys.readouterr().out
    assert main(["verify", "sorted-ring", "--n", "3", "--wide", "--part", "0:3"]) == 2
    assert main(["verify", "sorted-ring", "--n", "3", "--wide", "--states", "9"]) == 2


def test_nodes_are_judged_once_and_each_of_their_inboxes_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case, judged = PACKED[0], list[tuple[Any, ...]]()
    expected, legitimate = searched(case.wide()), Verdicts._legitimate

    def noted(verdicts: Verdicts, at: int, codes: Codes) -> Any:
        cells = verdicts.cells
        heard = [at >= 0 and cells.fields.place(it, at) for it in codes.tolist()]
        assert at < 0 or not cells.spared(codes, at).any()  # that was judged without an inbox
        judged.extend(zip(cells.nodes(codes), [at] * len(codes), heard, strict=True))
        return legitimate(verdicts, at, codes)

    monkeypatch.setattr(Verdicts, "_legitimate", noted)
    monkeypatch.setattr(module, "CHUNK", 7)
    assert searched(case.wide()) == expected
    assert len(judged) == len(set(judged)) > 7


def test_who_is_hopeless_by_outlines_is_not_legitimate_whatever_else_is_so() -> None:
    known = dict[tuple[Any, ...], bool]()
    for start in ("leavers", "one", "two"):
        search = Case("ring", 1, start, delay=1).search((0, 100) if start == "leavers" else (0, 30))
        search.run()
        model, graph = search.model, search.graph
        for number, state in enumerate(graph.states):
            nodes = graph.space.states(state)
            hopeless = model.hopeless(nodes)
            assert known.setdefault((*map(model.outline, nodes.values()),), hopeless) is hopeless
            assert not hopeless or search.violations(number)
        assert len(graph.states) > len(known)
    assert set(known.values()) == {True, False}


def test_verdicts_that_were_asked_for_earlier_are_right_when_there_are_more_cells() -> None:
    case = Case("ring", 1, "leavers", delay=1)
    wide, expected = case.wide(), case.search().run()
    with constants(wide.model.constants):
        wide.verdicts.of(wide._begun(wide.model.firsts()))
        wide.starts.clear()
    assert searched(wide).legitimate == expected.legitimate > 0


def test_who_is_hopeless_speaks_for_nobody_with_another_outline() -> None:
    wide = Case("ring", 1, "leavers", delay=1).wide()
    judged, space = wide.run(wide.model.firsts(), ALL), wide.cells.space
    hopeless = [wide.model.hopeless(space.states(it)) for it in wide.cells.nodes(judged.codes)]
    order = np.argsort(~np.array(hopeless), kind="stable")
    assert hopeless[order[0]]
    assert not hopeless[order[-1]]
    found = Verdicts(wide.cells).of(judged.codes[order])
    assert found.tolist() == judged.good[order].tolist()


def test_whoever_watches_is_told_what_is_done_when_every_state_was_visited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "CHUNK", 50)
    wide, phases = PACKED[0].wide(), list[str]()
    wide.run(wide.model.firsts(), ALL, lambda it: phases.append(it.phase))
    assert phases[0] == ""
    assert f"judging, 50 of {len(wide):,} states" in phases
    assert f"taking again {wide.transitions:,} of {wide.transitions:,} steps" in phases
    assert phases[-2:] == ["looking for traps", "looking for livelocks"]


def test_a_level_that_is_begun_again_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first states were expanded before there was no number left."""
    case = Case("sorted-ring", 2, "right", delay=1)
    expected = searched(case.wide())
    monkeypatch.setattr(module, "CHUNK", 1)
    for size in range(1, 20):
        wide = case.wide()
        wide.cells.fields = Fields([size] * wide.cells.n)
        assert searched(wide) == expected


@pytest.mark.parametrize("size", [9, 50, 500])
@pytest.mark.parametrize("case", PACKED, ids=str)
def test_narrow_fields_are_made_wider_and_nothing_else_changes(
    case: Case, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, widened = searched(case.wide()), []
    widen = Cells.widen

    def counted(cells: Cells) -> Callable[[Codes], Codes]:
        widened.append(cells.fields.sizes)
        return widen(cells)

    monkeypatch.setattr(Cells, "widen", counted)
    wide = case.wide()
    wide.cells.fields = Fields([size] * wide.cells.n)
    assert searched(wide) == expected
    assert widened or max(map(len, wide.cells.cells)) <= size
