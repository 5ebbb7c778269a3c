"""The search itself, on toys of which the answer is known by hand."""

from pathlib import Path

import pytest

import verify_toys
from planaria.core.errors import UsageError
from planaria.verify.check import Result, Search
from planaria.verify.coins import Coins
from planaria.verify.counterexample import counterexample
from planaria.verify.model import First, constants
from planaria.verify.models.sorted_ring import SortedRingModel
from planaria.verify.space import Schedule, Space
from verify_toys import ToyModel, ToyState, Word


def searched(rule: str, channel: int = 2, delay: int = 0) -> Result:
    return Search(ToyModel(2, rule), Schedule(channel, delay)).run()


def kinds(result: Result) -> set[str]:
    return {it.kind for it in result.findings}


def test_a_loop_without_a_legitimate_state_is_a_livelock_and_a_trap() -> None:
    result = searched("swaps")
    assert kinds(result) == {"trap", "livelock"}
    assert result.complete
    livelock = next(it for it in result.findings if it.kind == "livelock")
    assert {action for action, _ in livelock.loop} == {0, 1}  # every timeout comes in it
    assert livelock.loop[-1][1] == livelock.stem[-1][1]  # and it closes


def test_a_coin_ends_what_no_scheduler_would() -> None:
    assert not searched("coin").findings


@pytest.mark.parametrize(("channel", "delay"), [(2, 0), (1, 0), (0, 0), (2, 1), (0, 1)])
def test_a_message_that_is_never_heard_is_no_livelock(channel: int, delay: int) -> None:
    """Timeouts alone change nothing for ever; but what they send must be heard, and heals."""
    result = searched("tells", channel, delay)
    assert not result.findings
    assert 0 < result.legitimate < result.states


def test_a_state_that_nothing_leaves_is_a_trap() -> None:
    assert kinds(searched("stuck")) == {"trap", "livelock"}


def test_a_step_out_of_a_legitimate_state_breaks_closure() -> None:
    result = searched("leaves")
    assert kinds(result) == {"closure", "livelock"}  # one may always be elsewhere
    finding = result.findings[0]
    assert "zero" in finding.detail


def test_an_exception_is_found_with_the_way_there() -> None:
    search = Search(ToyModel(2, "raises"), Schedule(2))
    finding = next(it for it in search.run().findings if it.kind == "exception")
    assert finding.detail == "timeout of 1: node 1 raised ZeroDivisionError: two"
    [step] = counterexample(search, finding)["steps"]
    assert (step["what"], step["leads_to"]) == ("timeout of 1", "")


def test_messages_that_never_end_are_found_where_no_timeout_is_due() -> None:
    found = searched("chats", channel=0).findings
    assert any("never end" in it.detail for it in found)


@pytest.mark.parametrize(("fifo", "first"), [(False, [2, 0]), (True, [2])])
def test_over_a_stream_nothing_is_overtaken(fifo: bool, first: list[int]) -> None:
    """Two words on one link and one on the other; each word is heard as the next of its link."""
    space = Space(ToyModel(2, "stuck"), Schedule(fifo=fifo))
    words = [(0, 1, Word(2)), (0, 1, Word(0)), (1, 0, Word(1))]
    start = space.first(First({0: ToyState(0), 1: ToyState(0)}, tuple(words)))
    heard = [space.messages[action - space.n] for action, _ in space.after(start)]
    assert [it.value for _, target, it in heard if target == 1] == first  # type: ignore[attr-defined]
    assert [it.value for _, target, it in heard if target == 0] == [1]  # type: ignore[attr-defined]
    result = Search(ToyModel(2, "tells"), Schedule(fifo=fifo)).run()
    assert not result.findings
    assert ("order sent" in result.schedule) is fifo
    other = space.first(First({0: ToyState(0), 1: ToyState(0)}, (words[1], words[0], words[2])))
    assert space.digest(other) == space.digest(start)  # first states are sets: the same one


def test_constants_are_put_back_and_must_exist() -> None:
    with constants({"verify_toys:STEP": 0}):
        assert not searched("leaves").complete or verify_toys.STEP == 0
    assert verify_toys.STEP == 1
    with pytest.raises(UsageError, match="no constant"), constants({"verify_toys:STEEP": 0}):
        pass


def test_coins_give_every_outcome_once() -> None:
    coins = Coins()
    seen = []
    for _ in coins.scripts():
        first = coins.randrange(3)
        seen.append((first, coins.random() < 0.5 if first == 1 else None, coins.choice("ab")))
    assert len(seen) == len(set(seen)) == 8
    assert not coins.thinned


def test_a_search_that_was_interrupted_ends_as_one_that_was_not(tmp_path: Path) -> None:
    whole = Search(SortedRingModel(2, "labels"), Schedule(4)).run()
    first = Search(SortedRingModel(2, "labels"), Schedule(4)).run(500, directory=tmp_path)
    assert first.expanded == 500 < first.states
    again = Search(SortedRingModel(2, "labels"), Schedule(4)).run(directory=tmp_path)
    for name in ("starts", "states", "expanded", "transitions", "legitimate", "cut", "findings"):
        assert getattr(again, name) == getattr(whole, name)
    with pytest.raises(UsageError, match="another search"):
        Search(SortedRingModel(2, "right"), Schedule(4)).run(directory=tmp_path)


def test_a_search_of_other_code_is_not_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Search(SortedRingModel(2, "labels"), Schedule(4)).run(500, directory=tmp_path)
    monkeypatch.setattr("planaria.verify.check.code_version", lambda: "0.0+other")
    with pytest.raises(UsageError, match="another search"):
        Search(SortedRingModel(2, "labels"), Schedule(4)).run(directory=tmp_path)
