"""When a subscriber asks which supervisor, and whose answer it obeys."""

from itertools import pairwise
from random import Random

import pytest

from planaria.protocols.skipring.inquiry import (
    DUE_MAX,
    PATIENCE,
    RETRY,
    ROUNDS_MAX,
    VERSION_AGE_MAX,
    Inquiry,
)
from planaria.protocols.skipring.messages import WINDOW_MAX, SetData

FIRST, SECOND, THIRD, STRANGER = 100, 101, 102, 999


def calm_inquiry(seed: int = 1) -> Inquiry:
    inquiry = Inquiry((FIRST, SECOND, THIRD), Random(seed))
    inquiry.calm()
    return inquiry


def answer(supervisor: int = FIRST, version: int = 5) -> SetData:
    return SetData("news", supervisor, version, 0, None, None, 1, False)


def test_calm_one_asks_with_its_probability() -> None:
    for probability in (0.0, 0.25, 1.0):
        inquiry, asked = calm_inquiry(), 0
        for _ in range(1000):
            asked += inquiry.on_timeout(probability, 5)
            inquiry.calm()
        assert abs(asked - 1000 * probability) <= 60


@pytest.mark.parametrize("window", [1, 2, 7, WINDOW_MAX, 10**9, -3])
def test_alarmed_one_asks_within_its_window(window: int) -> None:
    waits = []
    for seed in range(200):
        inquiry = calm_inquiry(seed)
        inquiry.alarm(window)
        waits.append(next(at for at in range(1, 100) if inquiry.on_timeout(0.0, 1)))
    bound = min(max(window, 1), WINDOW_MAX)
    assert max(waits) <= bound
    assert len(set(waits)) > bound / 2, "requests are not spread"


def test_further_alarm_never_postpones_a_request() -> None:
    for seed in range(50):
        inquiry = calm_inquiry(seed)
        inquiry.alarm(3)
        due = inquiry.due
        inquiry.alarm(WINDOW_MAX)
        assert inquiry.due == due


@pytest.mark.parametrize("due", [-5, 0, 10**6])
def test_corrupt_due_time_does_not_silence_it(due: int) -> None:
    inquiry = calm_inquiry()
    inquiry.due = due
    assert any(inquiry.on_timeout(0.0, 1) for _ in range(WINDOW_MAX))


def test_silent_supervisor_is_left_for_the_next_one_and_all_for_oneself() -> None:
    inquiry = calm_inquiry()
    inquiry.alarm(1)
    asked = []
    for _ in range(PATIENCE * ROUNDS_MAX * 3 + 2):
        inquiry.on_timeout(0.0, 1)
        asked.append(inquiry.supervisor)
        if inquiry.hopeless:
            break
    assert inquiry.hopeless
    assert list(dict.fromkeys(asked)) == [FIRST, SECOND, THIRD]
    inquiry.calm()
    assert not inquiry.hopeless


def test_hopeless_one_asks_all_supervisors_in_turn() -> None:
    """Drawn at random, the only one alive may not be asked for hundreds of intervals."""
    inquiry = calm_inquiry()
    inquiry.waiting = inquiry.version_age = inquiry.waiting_max
    inquiry.alarm(1)
    asked = [inquiry.supervisor for _ in range(300) if inquiry.on_timeout(0.0, 9)]
    assert len(asked) > 30
    assert all(asked[at] == asked[at + 3] != asked[at + 1] for at in range(len(asked) - 3))


def test_routine_request_without_answer_becomes_an_alarm() -> None:
    inquiry = calm_inquiry()
    assert inquiry.on_timeout(1.0, 1)
    asked = [inquiry.on_timeout(0.0, 1) for _ in range(RETRY + 1)]
    assert any(asked)


@pytest.mark.parametrize("waiting", range(1, DUE_MAX))
def test_request_without_answer_is_repeated_with_half_of_the_patience_left(waiting: int) -> None:
    """In a large topic it came after a whole window, and the answer after all patience."""
    for seed in range(40):
        inquiry = calm_inquiry(seed)
        inquiry.waiting, inquiry.version_age = waiting, PATIENCE
        while not inquiry.on_timeout(0.0, WINDOW_MAX):
            assert inquiry.waiting < PATIENCE // 2


@pytest.mark.parametrize(
    ("source", "to", "moved"),
    [
        (SECOND, FIRST, True),
        (SECOND, SECOND, False),
        (SECOND, THIRD, False),
        (THIRD, FIRST, False),
        (SECOND, STRANGER, False),
    ],
)
def test_only_the_supervisor_it_asks_may_send_it_on_and_only_to_a_closer_one(
    source: int, to: int, moved: bool
) -> None:
    """Whoever could be sent farther away could be passed to and fro for ever."""
    inquiry = calm_inquiry()
    inquiry.contact = 1
    assert inquiry.move(source, to) == moved
    assert inquiry.supervisor == (to if moved else SECOND)


def test_one_sent_on_has_all_its_patience_for_the_closer_supervisor() -> None:
    inquiry = calm_inquiry()
    inquiry.contact, inquiry.waiting = 1, PATIENCE - 1
    inquiry.move(SECOND, FIRST)
    inquiry.on_timeout(0.0, 1)
    assert inquiry.supervisor == FIRST


def test_word_of_a_stranger_is_not_heeded() -> None:
    assert not calm_inquiry().heed(answer(STRANGER))


def test_word_of_a_farther_supervisor_is_heeded_only_after_all_patience_with_the_own() -> None:
    """H3."""
    inquiry = calm_inquiry()
    inquiry.alarm(1)
    for _ in range(PATIENCE):
        inquiry.on_timeout(0.0, 1)
        inquiry.contact = 0
        assert inquiry.heed(answer(SECOND)) == (inquiry.waiting >= PATIENCE)
    assert inquiry.supervisor == SECOND
    assert inquiry.heed(answer(FIRST)), "a closer one is always heeded"


def test_refused_word_of_a_farther_supervisor_is_a_reason_to_ask() -> None:
    """F8: else one that clings to a dead supervisor waits for its own coin, 2^k intervals."""
    inquiry = calm_inquiry()
    assert not inquiry.heed(answer(SECOND))
    assert inquiry.on_timeout(0.0, 1)


@pytest.mark.parametrize("waiting", [-1, -(10**15), 10**15, 1 << 100])
@pytest.mark.parametrize("window", [1, WINDOW_MAX])
@pytest.mark.parametrize("calm", [True, False])
def test_corrupt_counters_are_put_back_into_their_range(
    waiting: int, window: int, calm: bool
) -> None:
    """F1: waiting = -1 raised in every timeout of one without a label."""
    inquiry = calm_inquiry()
    inquiry.waiting, inquiry.contact, inquiry.due = waiting, waiting, None if calm else waiting
    inquiry.version_age = inquiry.version = waiting
    asked = []
    for _ in range(WINDOW_MAX):
        asked.append(inquiry.on_timeout(0.0, window))
        assert 0 <= inquiry.waiting <= PATIENCE * ROUNDS_MAX * 3
        assert 0 <= inquiry.version_age <= inquiry.waiting_max
        assert 0 <= inquiry.contact < 3
    assert any(asked) or calm


def test_overtaken_configuration_is_still_an_answer() -> None:
    inquiry = calm_inquiry()
    inquiry.version, inquiry.version_age, inquiry.waiting = 1 << 60, 0, PATIENCE - 1
    assert not inquiry.heed(answer(version=6))
    inquiry.on_timeout(0.0, 1)
    assert inquiry.supervisor == FIRST


def test_configuration_that_a_newer_one_overtook_is_refused_for_a_while() -> None:
    inquiry = calm_inquiry()
    assert inquiry.heed(answer(version=7))
    assert not inquiry.heed(answer(version=6))
    assert inquiry.heed(answer(version=7))


def test_absurd_version_does_not_shut_it_for_good() -> None:
    """The version remembered may be corrupt: it counts for a few timeouts only."""
    inquiry = calm_inquiry()
    inquiry.version, inquiry.version_age = 1 << 60, 0
    assert not inquiry.heed(answer(version=6))
    for _ in range(VERSION_AGE_MAX):
        inquiry.on_timeout(0.0, 1)
    assert inquiry.heed(answer(version=6))


@pytest.mark.parametrize("waiting", [47, 48, 10**18])
def test_corrupt_wait_makes_no_orphan_of_one_whose_request_is_in_a_queue(waiting: int) -> None:
    """Nobody has waited for longer than since its last configuration."""
    inquiry = Inquiry((FIRST,), Random(1))
    inquiry.heed(answer())
    inquiry.waiting = waiting
    for _ in range(inquiry.waiting_max - 1):
        inquiry.on_timeout(0.0, 5)
        assert not inquiry.hopeless
    inquiry.on_timeout(0.0, 5)
    assert inquiry.hopeless, "without any answer it must come to that"


@pytest.mark.parametrize("age", [-(10**18), 10**18])
def test_corrupt_age_of_the_configuration_makes_no_orphan_either(age: int) -> None:
    inquiry = Inquiry((FIRST,), Random(1))
    inquiry.waiting, inquiry.version_age = 48, age
    inquiry.on_timeout(0.0, 5)
    assert not inquiry.hopeless


def test_second_request_leaves_the_queue_half_a_window() -> None:
    for seed in range(100):
        inquiry = calm_inquiry(seed)
        inquiry.alarm(1)
        asked = [at for at in range(100) if inquiry.on_timeout(0.0, 10)]
        assert {5 < after - before <= 10 for before, after in pairwise(asked)} == {True}


@pytest.mark.parametrize(
    ("contact", "supervisors", "asked"),
    [
        (1, (FIRST, SECOND), SECOND),
        (1, (STRANGER, FIRST, SECOND), SECOND),
        (2, (THIRD,), THIRD),
        (0, (SECOND, THIRD), SECOND),
        (2, (), None),
    ],
)
def test_another_set_of_supervisors_moves_only_who_asked_one_that_is_gone(
    contact: int, supervisors: tuple[int, ...], asked: int | None
) -> None:
    inquiry = calm_inquiry()
    inquiry.contact, before = contact, inquiry.supervisors[contact]
    inquiry.prefer(supervisors, 5)
    assert inquiry.supervisor == asked
    assert (inquiry.due is None) is (before in supervisors)


def test_without_a_supervisor_one_waits_and_asks_the_first_that_comes() -> None:
    inquiry = Inquiry((), Random(1))
    for _ in range(3 * PATIENCE * ROUNDS_MAX):
        inquiry.on_timeout(1.0, 3)
        assert inquiry.supervisor is None
    assert inquiry.hopeless
    assert not inquiry.heed(answer())
    assert not inquiry.move(FIRST, SECOND)
    inquiry.prefer((SECOND, FIRST), 3)
    assert inquiry.supervisor == SECOND
    assert not inquiry.hopeless
    assert any(inquiry.on_timeout(0.0, 3) for _ in range(3))
    assert inquiry.heed(answer(SECOND))
