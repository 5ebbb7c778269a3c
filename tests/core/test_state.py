"""State is a value: it goes through bytes and back, and what cannot be read starts fresh."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import field

from planaria.core.state import State, Stateful


class CounterState(State, frozen=True):
    count: int = 0
    names: dict[int, str] = field(default_factory=dict)


class Counter(Stateful):
    __slots__ = ("count", "names", "step")
    state_type = CounterState

    def __init__(self, step: int) -> None:
        self.step, self.count = step, 0
        self.names: dict[int, str] = {}

    def repair(self) -> None:
        self.count = min(max(self.count, 0), 1 << 40)


class HouseState(State, frozen=True):
    front: CounterState = CounterState()
    rooms: dict[str, CounterState] = field(default_factory=dict)
    place: tuple[int, int] | None = None


class House(Stateful):
    __slots__ = ("front", "place", "rooms")
    state_type = HouseState

    def __init__(self) -> None:
        self.front = Counter(7)
        self.rooms: dict[str, Counter] = {}
        self.place: tuple[int, int] | None = None

    def part(self, name: str, key: str) -> Counter:
        return Counter(len(key))

    def repair(self) -> None:
        for it in (self.front, *self.rooms.values()):
            it.repair()


def house() -> House:
    made = House()
    made.front.count, made.front.names = 3, {-5: "five"}
    made.rooms = {"attic": Counter(5)}
    made.rooms["attic"].count = 9
    made.place = (1, 2)
    return made


def test_a_state_goes_through_bytes_and_back_and_configuration_stays() -> None:
    other = House()
    assert other.restore(house().snapshot()) is None
    assert other.state() == house().state()
    assert (other.front.step, other.rooms["attic"].step) == (7, 5)


def test_a_restored_state_shares_nothing_with_the_one_it_came_from() -> None:
    first, second = house(), House()
    second.restore(first.snapshot())
    second.front.names[1] = "one"
    second.rooms["attic"].count = 0
    assert first.state() == house().state()


def test_numbers_that_no_message_can_carry_are_repaired_before_they_are_stored() -> None:
    made = house()
    made.rooms["attic"].count = 1 << 100
    other = House()
    assert other.restore(made.snapshot()) is None
    assert other.rooms["attic"].count == 1 << 40


@given(st.binary(max_size=60))
def test_foreign_bytes_start_fresh_and_say_why(data: bytes) -> None:
    made = House()
    if made.restore(data) is not None:
        assert made.state() == House().state()


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_truncated_bytes_start_fresh_and_say_why(cut: int) -> None:
    made = House()
    assert made.restore(house().snapshot()[:-cut])
    assert made.state() == House().state()


def test_the_state_of_another_component_is_not_taken() -> None:
    counter = Counter(1)
    assert "HouseState" in str(counter.restore(house().snapshot()))
    assert counter.state() == CounterState()


def test_what_an_older_version_stored_is_read_with_fresh_values_for_the_rest() -> None:
    class Older(State, frozen=True, tag="HouseState"):
        place: tuple[int, int] | None = None

    class Old(Stateful):
        state_type = Older
        place = (4, 5)

    made = House()
    assert made.restore(Old().snapshot()) is None
    assert (made.place, made.rooms) == ((4, 5), {})
