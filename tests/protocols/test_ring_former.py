"""Former neighbours: bounded in number and time, whatever memory holds."""

from random import Random

import pytest

from planaria.core.ids import NODE_ID_MAX
from planaria.protocols.skipring.arbitrary import aside, corrupt_former
from planaria.protocols.skipring.former import FORMER_MAX, FORMER_TIMEOUTS, Former

ME = 5


def test_each_is_kept_for_its_time_from_when_it_was_last_lost() -> None:
    former = Former(ME)
    former.lose([1, 2])
    former.age(3)
    former.lose([2])
    former.age(FORMER_TIMEOUTS - 3)
    assert former.left == {2: 3}
    former.age(2)
    assert former
    former.age()
    assert not former


def test_of_too_many_the_last_to_be_lost_are_kept() -> None:
    former = Former(ME)
    former.lose(range(100, 100 + FORMER_MAX))
    former.lose([100, 7])
    assert len(former.left) == FORMER_MAX
    assert list(former.left)[-2:] == [100, 7]
    assert 101 not in former.left


@pytest.mark.parametrize(
    ("id", "left"),
    [
        (ME, 3),
        (-1, 3),
        (NODE_ID_MAX + 1, 3),
        (1 << 100, 3),
        (9, 0),
        (9, -1),
        (9, -(1 << 100)),
        (9, FORMER_TIMEOUTS + 1),
        (9, 1 << 100),
    ],
)
def test_what_is_none_is_not_kept_and_the_others_are(id: int, left: int) -> None:
    former = Former(ME)
    former.left = {1: 1, id: left, 2: FORMER_TIMEOUTS}
    former.repair()
    assert former.left == {1: 1, 2: FORMER_TIMEOUTS}
    former.left[id] = left
    former.age()
    assert former.left == {2: FORMER_TIMEOUTS - 1}


def test_memory_that_holds_too_many_is_put_right() -> None:
    former = Former(ME)
    former.left = dict.fromkeys(range(100, 110 + FORMER_MAX), 4)
    former.age()
    assert list(former.left) == list(range(110, 110 + FORMER_MAX))


def test_arbitrary_ones_are_of_every_kind_and_gone_after_their_time() -> None:
    rng, drawn = Random(3), list[Former]()
    for _ in range(600):
        former = Former(ME)
        corrupt_former(former, range(8), rng)
        drawn.append(former)
    held = [(id, left) for it in drawn for id, left in it.left.items()]
    assert any(not it for it in drawn)
    assert any(len(it.left) > FORMER_MAX for it in drawn)
    assert {0, 1, FORMER_TIMEOUTS, FORMER_TIMEOUTS + 1, -1} <= {left for _, left in held}
    assert {ME, -1} <= {id for id, _ in held}
    assert max(held)[0] > NODE_ID_MAX
    for it in drawn:
        for _ in range(FORMER_TIMEOUTS):
            it.age()
        assert not it


def test_a_stream_aside_shifts_nothing_and_is_one_of_its_own() -> None:
    rng, other = Random(7), Random(7)
    beside = [aside(rng, name) for name in ("former", "coming", "former")]
    assert rng.getstate() == other.getstate()
    first, second, again = ([it.random() for _ in range(4)] for it in beside)
    assert first == again != second
    rng.random()
    assert aside(rng, "former").random() != first[0]
