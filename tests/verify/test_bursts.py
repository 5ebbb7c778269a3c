"""The search that keeps states without messages alone finds what one that keeps all does."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, permutations
from pathlib import Path
from random import Random

import numpy as np
import pytest

from planaria.cli.main import main
from planaria.core.errors import UsageError
from planaria.core.message import Message
from planaria.core.node import Effects, Node, Send
from planaria.core.state import decode_state, encode_state
from planaria.protocols.tree.node import TreeHostState
from planaria.verify.bursts import LONGEST, Bursts, Sets
from planaria.verify.cases import CASES, Case
from planaria.verify.check import Search
from planaria.verify.coins import Coins
from planaria.verify.fair import Steps
from planaria.verify.model import constants
from planaria.verify.models.tree import TreeModel
from planaria.verify.mutants import MUTANTS
from planaria.verify.mutation import Mutant, mutated
from planaria.verify.sample import chosen, draws, sampled
from planaria.verify.sample import count as starts
from planaria.verify.saved import BURSTS, SECONDS, SavedBursts
from planaria.verify.space import Schedule
from planaria.verify.wide import Wide
from verify_toys import Toy, ToyModel, Word

ALL = 10_000_000
WITHOUT_COINS = ("sorted-ring", "dht", "tree", "anti-entropy")
QUICK = [
    it
    for it in CASES
    if it.model in WITHOUT_COINS and not (it.large or it.channel or it.start == "stale")
]
SPEAKING = next(it for it in CASES if it.start == "speaking")
CAUGHT = ("E3", "displaced", "contest", "called", "called anew", "E2", "calls")


def run(bursts: Bursts) -> dict[str, int]:
    """How many states without messages show each kind of fault."""
    judged = bursts.run(bursts.model.firsts(), ALL)
    return {kind: int(wrong.sum()) for kind, wrong in judged.wrong.items() if wrong.any()}


def leads(plain: Search) -> set[tuple[bytes, int, bytes]]:
    """By the definition: from which state without messages whose timeout leads to which."""
    graph = plain.graph
    space, found = graph.space, set()
    for number, state in enumerate(graph.states):
        if len(state) > space.head:
            continue
        for action, targets in graph.actions(number):
            seen, fresh = set(targets), list(targets)
            while fresh:
                at = fresh.pop()
                if len(graph.states[at]) == space.head:
                    end = space.digest(graph.states[at])
                    found.add((space.digest(state), action, end))
                    continue
                more = {it for _, reached in graph.actions(at) for it in reached} - seen
                seen |= more
                fresh += more
    return found


def rows_of(steps: Steps) -> list[tuple[int, int, int]]:
    """From which state, whose timeout, to which."""
    sources = np.repeat(np.arange(steps.size), steps.count)
    return list(zip(sources.tolist(), steps.whose.tolist(), steps.ends.tolist(), strict=True))


@pytest.mark.parametrize("case", [*QUICK, SPEAKING], ids=str)
def test_bursts_lead_from_one_state_without_messages_to_another_as_all_orders_do(
    case: Case, seeds: Callable[[int, int], int]
) -> None:
    if case.large:
        seeds(0, 1)
    plain, bursts = case.search(), case.bursts()
    plain.run()
    judged = bursts.run(bursts.model.firsts(), ALL)
    cells, steps = bursts.cells, judged.steps
    names = [cells.space.digest(cells.state(code)) for code in judged.codes.tolist()]
    rows = rows_of(steps)
    assert {(names[source], whose, names[end]) for source, whose, end in rows} == leads(plain)
    quiet = [
        number
        for number, state in enumerate(plain.graph.states)
        if len(state) == plain.graph.space.head
    ]
    assert len(judged.codes) == len(quiet) > 0
    assert judged.good.sum() == sum(not plain.bad[it] for it in quiet)
    assert not any(it.any() for it in judged.wrong.values())


@pytest.mark.parametrize("delay", [0, 1])
@pytest.mark.parametrize("rule", ToyModel.starts)
def test_bursts_show_every_kind_of_fault(rule: str, delay: int) -> None:
    schedule = Schedule(0, delay)
    bursts = Bursts(ToyModel(2, rule), schedule)
    if rule == "coin":
        with pytest.raises(UsageError, match="coins"):
            run(bursts)
        return
    wide = Wide(ToyModel(2, rule), schedule)
    judged = wide.run(wide.model.firsts(), ALL)
    quiet = wide.cells.quiet(judged.codes)
    expected = {kind for kind, wrong in judged.wrong.items() if wrong[quiet].any()}
    if rule == "chats":  # who only comes to messages without end is counted for them
        expected |= {"livelock"}
        assert bursts.longest == 0
    assert set(run(bursts)) == expected


def test_messages_without_end_are_a_livelock_however_they_begin() -> None:
    bursts = Bursts(ToyModel(2, "chats"), Schedule())
    assert run(bursts)["livelock"] == 8  # all but that in which both are at 0
    assert bursts.longest == LONGEST - 1


class Fragile(Toy):
    """Tells the other one its number, and raises where it hears 2."""

    def on_timeout(self) -> Effects:
        return [Send(1 - self.id, Word(self.value))]

    def on_message(self, message: Message, sender: int | None = None) -> Effects:
        assert isinstance(message, Word)
        if message.value == 2:
            raise ZeroDivisionError("two")
        return []


class Breaking(ToyModel):
    def nodes(self, coins: Coins) -> list[Node]:
        return [Fragile(id, self.start, coins) for id in (0, 1)]


def test_who_raises_at_a_message_is_found_where_its_burst_begins() -> None:
    assert run(Bursts(Breaking(2, "raises"), Schedule()))["exception"] == 5  # with a 2 in it


def test_steps_are_of_the_same_states_however_many_are_taken_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = shown(Case("sorted-ring", 3, "right").bursts())
    for module in ("wide", "bursts"):
        monkeypatch.setattr(f"planaria.verify.{module}.CHUNK", 500)
    assert shown(Case("sorted-ring", 3, "right").bursts()) == whole


@pytest.mark.parametrize("name", CAUGHT)
def test_rule_that_is_left_out_is_found_in_bursts(name: str) -> None:
    mutant = next(
        it
        for it in MUTANTS
        if it.name == name and isinstance(it.caught, Case) and it.caught.model in WITHOUT_COINS
    )
    assert isinstance(mutant.caught, Case)
    with mutated(mutant):
        plain = mutant.caught.search().run()
        found = set(run(mutant.caught.bursts()))
    assert found == {it.kind for it in plain.findings}


@pytest.mark.parametrize("start", ["resting", "speaking"])
@pytest.mark.parametrize(
    ("rule", "old", "new"),
    [
        ("_adopt", "= above, below", "= above, self.children"),
        ("on_answer", "return self._go_on(self.searching)", "return []"),
    ],
)
def test_a_bent_rule_of_the_tree_is_found_although_questions_are_heard_at_once(
    rule: str, old: str, new: str, start: str
) -> None:
    bent = Mutant(rule, "", f"tree.place:TreePlace.{rule}", old, new, "")
    with mutated(bent):
        bursts = Case("tree", 2, start, delay=1).bursts()
        assert set(run(bursts)) == {"trap", "livelock"}
    assert bursts.passing.heard


def test_a_dht_with_a_contact_that_is_not_beside_everybody_is_not_heard_at_once(
    monkeypatch: pytest.MonkeyPatch, seeds: Callable[[int, int], int]
) -> None:
    """Who is called from afar remembers the caller, until who stands between them speaks."""
    seeds(0, 1)
    monkeypatch.setattr(TreeModel, "contacts", (0, 1))
    bursts = Case("tree", 3, "speaking", delay=1).bursts()
    with pytest.raises(UsageError, match=r"not the same at any time: .*Check"):
        bursts.run(chosen(bursts.model, [700]), ALL)


def test_drawn_starts_of_the_tree_of_three_heal(seeds: Callable[[int, int], int]) -> None:
    drawn = seeds(0, 10)
    bursts = Case("tree", 3, "resting", delay=1).bursts()
    numbers = draws(starts(bursts.model), drawn, 1)
    judged = bursts.run(chosen(bursts.model, numbers), 1_000 * ALL)
    said = sampled(judged, numbers, 4_096)
    assert (said.not_clean, len(bursts), said.size) == (0, 1_816, 1_816)


def test_every_ring_of_four_unwinds(seeds: Callable[[int, int], int]) -> None:
    seeds(0, 1)
    wide = Case("sorted-ring", 4, "wound").wide()
    judged = wide.run(wide.model.firsts(), ALL)
    assert len(wide) == 5_289_307
    assert not any(it.any() for it in judged.wrong.values())


def test_what_is_in_flight_at_first_is_refused() -> None:
    with pytest.raises(UsageError, match="not in all of these starts"):
        run(Case("sorted-ring", 2, "garbage").bursts())


def test_a_search_that_is_too_large_says_nothing() -> None:
    bursts = Case("sorted-ring", 3, "right").bursts()
    with pytest.raises(UsageError, match="--states 1,000"):
        bursts.run(bursts.model.firsts(), 1_000)


def test_sets_are_made_once_and_joined() -> None:
    rng, sets = Random(1), Sets()
    all_ = [sorted(set(rng.choices(range(-3, 6), k=rng.randrange(5)))) for _ in range(60)]
    first = np.array([sets.of(*it) for it in all_])
    second = np.array([sets.of(*it) for it in reversed(all_)])
    joined = [sets.members[it] for it in sets.unions(first, second).tolist()]
    assert joined == [tuple(sorted({*a, *b})) for a, b in zip(all_, reversed(all_), strict=True)]
    assert len(set(sets.members)) == len(sets.members)


def shown(bursts: Bursts) -> tuple[object, ...]:
    judged = bursts.run(bursts.model.firsts(), ALL)
    result = bursts.result(judged, range(len(bursts.starts)))
    steps = rows_of(judged.steps)
    names = [bursts.cells.space.digest(bursts.cells.state(it)) for it in judged.codes.tolist()]
    ways = {(names[source], whose, names[end]) for source, whose, end in steps}
    found = result.starts, result.states, result.expanded, result.legitimate, result.findings
    return (*found, ways, [names[it] for it in judged.starts])


def test_a_search_that_is_resumed_finds_what_one_that_was_not_stopped_does(tmp_path: Path) -> None:
    case = Case("tree", 2, "links", delay=1)
    whole = shown(case.bursts())

    def saved() -> SavedBursts:
        return SavedBursts(tmp_path, "same", partial(next, count(0, SECONDS)))

    part = Bursts(case.bursts().model, Schedule(0, 1), saved())
    with pytest.raises(UsageError, match="--states"):
        part.run(part.model.firsts(), 8_000)
    assert 0 < part.expanded < len(part) < 523
    assert (tmp_path / BURSTS).exists()
    again = Bursts(part.model, Schedule(0, 1), saved())
    assert shown(again) == whole
    done = Bursts(part.model, Schedule(0, 1), saved())
    assert shown(done) == whole
    assert not done.cells.space.steps


def test_nothing_is_saved_before_it_is_time(tmp_path: Path) -> None:
    part = Case("tree", 2, "links", delay=1).bursts(tmp_path)
    with pytest.raises(UsageError, match="--states"):
        part.run(part.model.firsts(), 8_000)
    assert not list(tmp_path.iterdir())


def test_faults_and_endless_messages_are_still_known_when_a_search_is_resumed(
    tmp_path: Path,
) -> None:
    for rule in ("leaves", "chats", "raises"):
        first = Bursts(ToyModel(2, rule), Schedule(), SavedBursts(tmp_path / rule, rule))
        again = Bursts(ToyModel(2, rule), Schedule(), SavedBursts(tmp_path / rule, rule))
        found = run(first)
        assert run(again) == found != {}
        assert again.cells.troubles == []  # nothing is taken again


# Messages that pass


class Asked(Toy):
    """A question, by 5, is answered by 1; `rule` says when it is not, or not alone."""

    def on_timeout(self) -> Effects:
        if self.id == 0 and self.value == 0:
            return [Send(1, Word(5)), Send(1, Word(6))]
        return []

    def on_message(self, message: Message, sender: int | None = None) -> Effects:
        assert isinstance(message, Word)
        if message.value == 6:
            self.value = 2
            return [Send(0, Word(1))] if self.rule == "equal" else []
        if message.value != 5:
            self.value = message.value
            return []
        if self.rule == "other" and self.value == 2:
            return [Send(0, Word(2))]
        if self.rule == "moves" and self.value == 2:
            self.value = 1
        return [Send(0, Word(1))]


class Asking(ToyModel):
    """0 asks 1, and tells it something."""

    starts = ("same", "other", "moves", "equal")
    passing = (Word,)

    def nodes(self, coins: Coins) -> list[Node]:
        return [Asked(id, self.start, coins) for id in (0, 1)]


def quiet_states(rule: str) -> tuple[set[bytes], Bursts]:
    bursts = Bursts(Asking(2, rule), Schedule(0, 1))
    judged = bursts.run(bursts.model.firsts(), ALL)
    cells = bursts.cells
    return {cells.space.digest(cells.state(it)) for it in judged.codes.tolist()}, bursts


def test_a_question_is_heard_at_once_and_nothing_is_missed() -> None:
    found, bursts = quiet_states("same")
    wide = Wide(Asking(2, "same"), Schedule(0, 1))
    judged = wide.run(wide.model.firsts(), ALL)
    quiet = judged.codes[wide.cells.quiet(judged.codes)].tolist()
    assert found == {wide.cells.space.digest(wide.cells.state(it)) for it in quiet}
    assert bursts.passing.heard
    assert bursts.between < len(judged.codes) - len(quiet)


@pytest.mark.parametrize(
    ("rule", "said"), [("other", "same"), ("moves", "same"), ("equal", "twice")]
)
def test_a_message_that_does_not_pass_is_noticed(rule: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        quiet_states(rule)


def test_what_was_wrongly_heard_at_once_is_not_saved(tmp_path: Path) -> None:
    saved = SavedBursts(tmp_path, "other")
    with pytest.raises(UsageError, match="same"):
        run(Bursts(Asking(2, "other"), Schedule(0, 1), saved))
    assert not list(tmp_path.iterdir())


def test_nothing_is_heard_before_what_was_sent_before_it_on_its_link() -> None:
    bursts = Bursts(Asking(2, "other"), Schedule(0, 1, fifo=True))
    run(bursts)
    assert not bursts.passing.heard


def orders(data: bytes) -> Iterator[TreeHostState]:
    """The same state of a host with its answers in every order."""
    place = decode_state(TreeHostState, data).place
    for answers in permutations(place.answers):
        for asked in permutations(place.asked):
            again = decode_state(TreeHostState, data)
            again.place.answers, again.place.asked = list(answers), list(asked)
            yield again


def test_in_which_order_answers_to_a_search_came_is_no_matter(
    seeds: Callable[[int, int], int],
) -> None:
    """So a search may keep them sorted (`TreeModel.plain`)."""
    bursts = Case("tree", 3, "resting", delay=1).bursts()
    bursts.run([next(iter(bursts.model.firsts()))], ALL)
    space, tried = bursts.cells.space, 0
    with constants(bursts.model.constants):
        for at, own, input in Random(1).sample(sorted(space.steps), seeds(200, 2_000)):
            for again in orders(space.locals[own]):
                other = space.local(encode_state(again))
                assert space.step(at, other, input) == space.step(at, own, input)
                tried += other != own
    assert tried > 100


def test_bursts_are_printed_with_how_many_states_were_between(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["verify", "sorted-ring", "--n", "3", "--bursts"]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "360 states (all of them)" in said
    assert "more; those above have nothing in flight" in said
    assert main([*command, "--sample", "60", "--seed", "4"]) == 0
    assert "fewer than 4.87% of all do" in capsys.readouterr().out
    assert main([*command, "--part", "0:1"]) == 2
    assert main([*command, "--parts", "2"]) == 2
    with mutated(next(it for it in MUTANTS if it.name == "contest")):
        assert main(command) == 1
        assert "starts lead to one, as --part " in capsys.readouterr().out
