"""The table that forgets, against a naive twin that knows when each entry came."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planaria.core.forgetting import Forgetful, ForgetfulState
from planaria.core.state import State, Stateful, decode_state


class OwnerState(State):
    table: ForgetfulState[int, str]


class Owner(Stateful):
    state_type = OwnerState

    def __init__(self) -> None:
        self.table: Forgetful[int, str] = Forgetful(4, 3)


@given(
    st.integers(1, 6),
    st.integers(1, 5),
    st.integers(1, 4),
    st.lists(st.none() | st.integers(0, 9), max_size=80),
)
def test_an_entry_is_kept_until_its_generation_is_thrown_away(
    room: int, timeouts: int, count: int, inputs: list[int | None]
) -> None:
    """None is a timeout, a number an entry; the twin keeps one list of (generation, name)."""
    table: Forgetful[int, int] = Forgetful(room, timeouts, count)
    twin: dict[int, int] = {}  # name: the timeout it came in
    now = 0
    for name in inputs:
        if name is None:
            table.on_timeout()
            now += 1
            epoch = now // timeouts
            twin = {it: came for it, came in twin.items() if epoch - came // timeouts < count}
        elif name not in table:
            fits = len(twin) < room
            assert table.put(name, name * name) is fits
            if fits:
                twin[name] = now
        assert list(table) == list(twin)
        assert len(table) == len(twin)
        assert table.full is (len(twin) >= room)
        assert all(table.get(it) == it * it for it in twin)


def test_an_entry_outlives_all_generations_but_its_own() -> None:
    for count in (1, 2, 4):
        for before in range(5):
            table: Forgetful[str, None] = Forgetful(9, 5, count)
            for _ in range(before):
                table.on_timeout()
            table.put("it", None)
            lived = 0
            while "it" in table:
                table.on_timeout()
                lived += 1
            assert (count - 1) * 5 < lived <= count * 5


def test_an_entry_can_be_taken_out_and_the_older_half_forgotten_early() -> None:
    table: Forgetful[str, int] = Forgetful(2, 9)
    table.put("a", 1)
    table.forget()
    table.put("b", 2)
    assert not table.put("c", 3)
    table.forget()
    assert table.put("c", 3)
    assert list(table) == ["b", "c"]
    assert (table.pop("b"), table.pop("b"), table.get("b")) == (2, None, None)


@pytest.mark.parametrize("generations", [[], [{1: "x"}], [{1: "x"}] * 2 + [{2: "y"}] * 3])
@pytest.mark.parametrize("age", [-(1 << 70), -1, 0, 2, 3, 1 << 70])
def test_any_generations_and_any_age_are_repaired_and_forgotten(
    generations: list[dict[int, str]], age: int
) -> None:
    owner = Owner()
    owner.table.load(ForgetfulState([dict(it) for it in generations], age))
    assert owner.table.pop(1) == ("x" if generations else None)
    while len(owner.table):
        owner.table.forget()
    assert owner.table.put(5, "z")
    for _ in range(2 * 3 + 1):  # one more where the age was just below 0
        owner.table.on_timeout()
    assert len(owner.table) == 0
    assert 0 <= owner.table.age < 3


def test_a_table_comes_back_from_the_bytes_of_its_owner() -> None:
    owner, again = Owner(), Owner()
    for name in range(3):
        owner.table.put(name, str(name))
        owner.table.on_timeout()
    again.load(decode_state(OwnerState, owner.snapshot()))
    assert again.state() == owner.state()
    assert (list(again.table), again.table.age) == (list(owner.table), owner.table.age)


def test_an_entry_that_is_there_stays_what_it_was_and_a_full_table_takes_none() -> None:
    table: Forgetful[str, int] = Forgetful(2, 9)
    assert table.setdefault("a", 1) == 1
    table.forget()
    assert table.setdefault("a", 2) == 1, "of whatever generation"
    assert table.setdefault("b", 3) == 3
    assert table.setdefault("c", 4) is None
    assert list(table) == ["a", "b"]
    table.generations = table.generations[:1]  # a fault
    table.setdefault("d", 5)
    assert len(table.generations) == 2
