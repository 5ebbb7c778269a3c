"""Every case of `planaria verify` finds nothing; the large ones at night."""

import json
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

import pytest

from planaria.cli.main import main
from planaria.core.node import Effects, Node
from planaria.protocols.gossip.messages import (
    ContactCheck,
    Found,
    GossipMessage,
    Search,
    Superprocesses,
)
from planaria.verify.adversary import IN_FLIGHT, Run, attack, restarts
from planaria.verify.cases import CASES, Case, cases_of, find_model
from planaria.verify.coins import Coins
from planaria.verify.model import Model, constants
from planaria.verify.models.gossip import ABOVE, BELOW, OLD
from planaria.verify.mutants import LEVELS, MUTANTS
from planaria.verify.mutation import Mutant, mutated
from planaria.verify.sample import share_below
from planaria.verify.space import Schedule, Space
from verify_toys import Toy, ToyModel

SMALL = [it for it in CASES if not it.large]
LARGE = [it for it in CASES if it.large]


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_small_case_is_searched_to_the_end_and_nothing_is_found(case: Case) -> None:
    result = case.search().run()
    assert not result.findings
    assert result.expanded == result.states >= result.legitimate > 0


@pytest.mark.parametrize("case", LARGE, ids=str)
def test_large_case_finds_nothing(case: Case, seeds: Callable[[int, int], int]) -> None:
    most = seeds(0, 4_000_000)
    result = case.search().run(most)
    assert not result.findings
    assert result.expanded in (result.states, most)
    assert result.legitimate > 0


@pytest.mark.parametrize(
    ("model", "n", "start"),
    [("sorted-ring", 5, "right"), ("sorted-ring", 4, "labels"), ("mobile", 3, "links")],
)
def test_adversarial_schedulers_hold_up_nobody(
    model: str, n: int, start: str, seeds: Callable[[int, int], int]
) -> None:
    for outcome in attack(find_model(model)(n, start), seeds(6, 2_000), 100):
        assert outcome.failed == []
        assert outcome.raised == []
        assert outcome.most > 0


def test_adversarial_schedulers_hold_up_what_does_not_heal() -> None:
    mutant = next(it for it in MUTANTS if it.name == "contest")
    with mutated(mutant):
        model = find_model("sorted-ring")(4, "right")
        found = {it.strategy: len(it.failed) for it in attack(model, 12, 30)}
    assert all(found[name] for name in ("greedy", "drawn", "phases", "late", "restarts"))


def test_restarts_take_the_longest_run_again_as_far_as_its_plan_goes() -> None:
    model = find_model("sorted-ring")(4, "right")
    found = {it.strategy: it for it in attack(model, 10, 100, ("drawn", "restarts"))}
    assert found["restarts"].most >= found["drawn"].p50
    again_as_far_as_planned(model)


def test_restarts_let_coins_fall_again_as_they_fell() -> None:
    again_as_far_as_planned(Tossing(2, "coin"))


def again_as_far_as_planned(model: Model) -> None:
    with constants(model.constants):
        space = Space(model, Schedule(IN_FLIGHT, 1))
        first = space.first(model.draw(model.choices(), Random(1)))
        whole, again = Run(space, 1), Run(space, 2)
        rounds = whole.rounds(first, restarts, 100)
        again.plan = whole.made
        assert again.rounds(first, restarts, 100) == rounds
        assert again.made == whole.made != []


class Stubborn(Toy):
    """Heals at every other timeout, by a coin of which the first side is the wrong one."""

    def on_timeout(self) -> Effects:
        self.value = self.value if self.rng.random() < 0.5 else 0
        return []


class Tossing(ToyModel):
    def nodes(self, coins: Coins) -> list[Node]:
        return [Stubborn(id, self.start, coins) for id in (0, 1)]


def test_a_scheduler_chooses_the_action_and_not_how_coins_fall() -> None:
    for outcome in attack(Tossing(2, "coin"), 40, 60):
        assert outcome.failed == []
        assert outcome.most > 1


def test_an_attack_says_of_which_share_of_all_starts_it_speaks() -> None:
    model = find_model("sorted-ring")(3, "right")
    mutant = next(it for it in MUTANTS if it.name == "contest")
    with mutated(mutant):
        bent = attack(model, 12, 30, ("drawn",))[0]
    whole = attack(model, 12, 30, ("drawn",), channel=0)[0]
    assert bent.share == share_below(len(bent.failed), 12) > share_below(0, 12) == whole.share
    with constants(model.constants):
        space = Space(model, Schedule(0, 1))
        firsts = {space.first(model.draw(model.choices(), Random(it))) for it in range(12)}
        wrong = [it for it in firsts if Run(space, 0).badness(it)]
    assert len(wrong) < whole.states


def test_a_contact_that_is_given_up_next_is_not_legitimate_in_a_search() -> None:
    """The product waits for its end instead: `GossipOverlay.calm`."""
    model = find_model("gossip")(2, "any-levels")
    above, below = (it[0] for it in model.choices().values())
    for age, overdue in ((OLD - 1, False), (OLD, True)):
        below.groups[BELOW].links.contacts = {0: (ABOVE, age)}  # type: ignore[attr-defined]
        found = [it.detail for it in model.violations({0: above, 1: below}, ())]
        assert ("0 was not heard of for long" in found) is overdue


@pytest.mark.parametrize(
    ("name", "kind"), [("15, 16", "trap"), ("17", "trap"), ("checks", "closure")]
)
def test_links_over_memberships_at_rest_fail_where_those_of_all_processes_do(
    name: str, kind: str
) -> None:
    with mutated(next(it for it in MUTANTS if it.name == name and it.caught == LEVELS)):
        for start in ("levels", "resting"):
            result = Case("gossip", 2, start, delay=1).search().run()
            assert kind in {it.kind for it in result.findings}


def test_at_rest_nobody_speaks_of_the_neighbourhood_and_all_of_groups() -> None:
    search = Case("gossip", 2, "resting", delay=1).search()
    search.run()
    said = [message for _, _, message in search.graph.space.messages]
    groups = {it.group for it in said if isinstance(it, GossipMessage)}
    assert groups == {ABOVE}
    assert {type(it) for it in said} >= {Search, Found, ContactCheck, Superprocesses}


def test_memberships_at_rest_lose_nobody_and_take_in_nobody() -> None:
    model = find_model("gossip")(4, "resting")
    before = model.choices()[2][0]
    assert not model.forbidden(before, deepcopy(before), ())
    for change in (
        lambda it: it.neighbours.view.pop(1),
        lambda it: it.groups[BELOW].membership.view.update({0: 0}),
        lambda it: it.groups[BELOW].membership.sketch.popitem(),
    ):
        after: Any = deepcopy(before)
        change(after)  # type: ignore[no-untyped-call]
        assert "not at rest" in model.forbidden(before, after, ())
        assert model.plain(after) == model.plain(deepcopy(before))


AT_REST = (
    ("_adopt", "= above, below", "= above, self.children"),
    ("on_answer", "return self._go_on(self.searching)", "return []"),
    ("on_message", "self.dirty = True", "pass"),
    ("on_timeout", "if not 0 <= self.age < REFRESH_PERIOD:", "if False:"),
)


@pytest.mark.parametrize(("rule", "old", "new"), AT_REST, ids=[it[0] for it in AT_REST])
def test_a_tree_over_a_dht_at_rest_fails_where_one_over_a_dht_that_speaks_does(
    rule: str, old: str, new: str, seeds: Callable[[int, int], int]
) -> None:
    """By day what is found at rest is what is known to be; at night both are searched."""
    bent = Mutant(rule, "", f"tree.place:TreePlace.{rule}", old, new, "")
    expected = {"trap", "livelock"} if rule in ("_adopt", "on_answer") else set()
    for start in ["resting", "links"][: seeds(1, 2)]:
        with mutated(bent):
            wide = Case("tree", 2, start, delay=1).wide()
            judged = wide.run(wide.model.firsts(), 10_000_000)
        assert {it for it, where in judged.wrong.items() if where.any()} == expected


def test_verify_prints_what_was_covered(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "sorted-ring", "--n", "2", "--channel", "8"]) == 0
    said = capsys.readouterr().out
    assert "136 states (all of them)" in said
    assert "no livelock" in said
    assert main(["verify", "sorted-ring", "--n", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)[0]
    assert found["complete"] is True
    assert main(["verify", "sorted-ring", "--n", "4", "--tries", "3"]) == 0
    assert "greedy" in capsys.readouterr().out
    assert main(["verify", "nothing"]) == 2
    assert 0 < len(cases_of("mobile", large=False)) < len(cases_of("mobile", large=True))
