"""What an application is handed: cases by hand, and random runs against a stupid reference."""

from random import Random
from typing import Any

import pytest

from planaria.core.node import Deliver, Delivery, Effect, Notice
from planaria.protocols.publications.deliveries import position_id
from planaria.protocols.publications.holdings import Holdings
from planaria.protocols.publications.reader import PATIENCE, PATIENCE_MAX, Reader
from planaria.records import positions
from planaria.records.memory import MemoryStore
from planaria.records.positions import Mark
from planaria.records.record import Draft, Record, Stream, seal
from planaria.records.window import Window

INCARNATION = b"incarnation!"
STREAM: Stream = (1, INCARNATION)


def item(
    first: int, *, low: int = 0, publisher: int = 1, time: int = 5, said: str = "", count: int = 1
) -> Record:
    drafts = [Draft((said or str(first + at)).encode()) for at in range(count)]
    return seal((publisher, INCARNATION), first, drafts, time=time, low=low)


class Application:
    """A reader with its store."""

    def __init__(self, *, ordered: bool, window: Window | None = None) -> None:
        self.holdings = Holdings(MemoryStore())
        self.reader = Reader("t", self.holdings, ordered=ordered)
        if window is not None:
            self.holdings.show(window)

    def offer(self, *records: Record, history: bool = False) -> list[Any]:
        """As a history does it."""
        effects: list[Effect] = []
        if self.reader.holes and self.holdings.tight(sum(it.count for it in records)):
            effects += self.reader.give_up()
        effects += self.reader.arrived(self.holdings.append(records), history=history)
        return in_short(effects)

    def wait(self, timeouts: int) -> list[Any]:
        return [short for _ in range(timeouts) for short in in_short(self.reader.on_timeout())]


def in_short(effects: list[Effect]) -> list[Any]:
    """Numbers delivered and notices, in short."""
    short: list[Any] = []
    for effect in effects:
        assert isinstance(effect, Deliver | Notice)
        assert effect.topic == "t"
        if isinstance(effect, Deliver):
            short += [it.sequence for it in effect.publications]
        else:
            assert effect.detail["incarnation"] == INCARNATION.hex()
            short.append((effect.kind, effect.detail["first"], effect.detail["last"]))
    return short


def test_by_default_each_publication_is_delivered_at_once() -> None:
    any_order = Application(ordered=False)
    assert [any_order.offer(item(n)) for n in (2, 0, 1)] == [[2], [0], [1]]
    assert any_order.wait(2 * PATIENCE_MAX) == []
    assert any_order.holdings.store.vector() == {STREAM: Mark(3)}


def test_in_order_a_publication_waits_for_those_before_it() -> None:
    app = Application(ordered=True)
    assert [app.offer(item(n)) for n in (2, 0, 1, 3)] == [[], [0], [1, 2], [3]]


def test_what_waits_behind_a_hole_is_handed_out_even_if_a_fault_took_the_hole_away() -> None:
    app = Application(ordered=True)
    assert [app.offer(item(n, count=5)) for n in (0, 10)] == [[*range(5)], []]
    app.reader.holes = {}
    assert app.offer(item(5, count=5)) == [*range(5, 15)]


def test_a_delivery_names_the_publication() -> None:
    said = Draft(b"x", b"key", (("colour", b"red"),), 7_000)
    record = seal(STREAM, 4, [Draft(b"w"), said], time=5, low=4)
    for ordered in (True, False):
        app = Application(ordered=ordered)
        (effect,) = app.reader.arrived(app.holdings.append([record]))
        assert isinstance(effect, Deliver)
        id = position_id(1, INCARNATION, 5)
        expected = Delivery(id, b"x", 1, 5, {}, b"key", {"colour": "red"}, 7)
        assert effect.publications[1] == effect.publications[-1] == expected
        assert [it.payload for it in effect.publications] == [b"w", b"x"]
        assert len(effect.publications) == 2
        with pytest.raises(IndexError):
            effect.publications[2]


def test_a_hole_is_a_gap_after_patience_and_its_filling_is_late_once() -> None:
    app = Application(ordered=True)
    app.offer(item(0))
    assert app.offer(item(3)) == []
    assert app.wait(PATIENCE - 1) == []
    assert app.wait(1) == [("gap", 1, 2), 3]
    assert app.reader.marks[STREAM] == Mark(4, ((1, 3),)), "what was skipped is not read"
    assert app.offer(item(2)) == [("late", 2, 2), 2]
    assert app.offer(item(2)) == []
    assert app.reader.marks[STREAM] == Mark(4, ((1, 2),))
    assert app.holdings.store.vector() == {STREAM: Mark(1)}, "number 1 may still come"


def test_two_holes_known_for_long_are_given_up_one_after_the_other() -> None:
    app = Application(ordered=True)
    for number in (0, 5, 2):
        app.offer(item(number))
    assert app.wait(PATIENCE) == [("gap", 1, 1), 2]
    assert app.wait(PATIENCE) == [("gap", 3, 4), 5]


def test_low_declares_what_is_lost_at_once() -> None:
    app = Application(ordered=True)
    for number in (0, 4):
        app.offer(item(number))
    assert app.offer(item(9, low=7)) == [("gap", 1, 3), ("gap", 5, 6), 4]
    assert app.offer(item(7, low=7)) == [7]
    assert app.offer(item(8, low=7)) == [8, 9]


def test_a_stream_starts_at_its_low_and_not_with_a_gap() -> None:
    app = Application(ordered=True)
    assert app.offer(item(57, low=57)) == [57]
    assert app.offer(item(56, low=50)) == [("late", 56, 56), 56]


def test_a_late_joiner_gets_history_in_publisher_order_without_a_gap() -> None:
    """Records come in the order of their keys, over far longer than the patience."""
    records = [item(first, publisher=1 + first % 3, count=3) for first in range(0, 900, 3)]
    shuffled = sorted(records, key=lambda record: record.key)
    for ordered in (True, False):
        app = Application(ordered=ordered)
        found: list[Any] = []
        for at in range(0, len(shuffled), 6):
            found += app.offer(*shuffled[at : at + 6], history=True)
            found += app.wait(1)
        numbers = [it for it in found if isinstance(it, int)]
        assert found == numbers
        assert sorted(numbers) == list(range(900))
        if ordered:
            assert numbers == sorted(numbers)


def test_a_hole_is_not_waited_for_without_end_while_history_comes_in() -> None:
    app = Application(ordered=True)
    app.offer(item(1))
    found = []
    for number in range(PATIENCE_MAX):
        found += app.offer(item(number, publisher=2), history=True)
        found += app.wait(1)
    assert found[-2:] == [("gap", 0, 0), 1]


def test_two_payloads_with_one_number_are_reported_and_one_is_delivered() -> None:
    for ordered in (True, False):
        app = Application(ordered=ordered)
        assert app.offer(item(0)) == [0]
        assert app.offer(item(0, said="other")) == [("equivocation", 0, 0)]


def test_a_restamped_publication_is_not_delivered_again_and_is_no_equivocation() -> None:
    for ordered in (True, False):
        app = Application(ordered=ordered)
        assert app.offer(item(0, time=5)) == [0]
        assert app.offer(item(0, time=9)) == []


def test_other_boundaries_bring_only_what_is_new() -> None:
    for ordered in (True, False):
        app = Application(ordered=ordered)
        assert app.offer(item(0, count=5)) == [0, 1, 2, 3, 4]
        assert app.offer(item(3, count=4)) == [5, 6]


@pytest.mark.parametrize("ordered", [True, False])
def test_retention_decides_nothing_about_delivery(ordered: bool) -> None:
    """A count of ten, and hundreds published, with a hole: each is delivered once, in order."""
    for seed in range(20):
        app, random = Application(ordered=ordered, window=Window(limit=10)), Random(seed)
        numbers = [number for number in range(300) if number != 40]
        found: list[Any] = []
        while numbers:
            near = [numbers.pop(0) for _ in range(min(len(numbers), random.randrange(1, 7)))]
            random.shuffle(near)
            for number in near:
                found += app.offer(item(number, time=5 + number // 20))
        found += app.wait(2 * PATIENCE)
        delivered = [it for it in found if isinstance(it, int)]
        assert sorted(delivered) == [number for number in range(300) if number != 40]
        if ordered:
            on_time = [it for at, it in enumerate(found) if isinstance(it, int)
                       and not (at and isinstance(found[at - 1], tuple)
                                and found[at - 1][0] == "late")]  # fmt: skip
            assert on_time == sorted(on_time)


def test_what_is_kept_and_what_is_not_may_come_in_one_message_in_any_order() -> None:
    """Ring, ordered, seed 97 of the property of states: number 0 was handed out twice."""
    kept, dropped = item(0, time=9), item(1, time=5)
    for records in ([kept, dropped], [dropped, kept]):
        app = Application(ordered=True, window=Window(lo=0, limit=1))
        assert app.offer(*records) == [0, 1]
    app = Application(ordered=True, window=Window(lo=0, limit=1))
    app.offer(item(0, publisher=2, time=99))
    later = [item(number, time=5) for number in (3, 1, 2, 0)]
    assert app.offer(*later) == [0, 1, 2, 3]


def test_false_marks_and_holes_lose_nothing_that_is_yet_to_come() -> None:
    for number, fault in enumerate([Mark(50), Mark(-(10**9)), Mark(2**90, ((7, 3), (-5, 99)))]):
        app = Application(ordered=True)
        app.offer(item(0))
        app.reader.marks[STREAM], app.reader.holes[STREAM] = fault, (7, -(10**9))
        app.reader.turn = app.reader.quiet = -number
        found = app.wait(3)
        for it in range(1, 20):
            found += app.offer(item(it))
        assert [it for it in found if isinstance(it, int) and it] == list(range(1, 20))


def test_what_the_cursor_hands_out_is_marked_though_a_fault_took_its_mark() -> None:
    """Unmarked it was handed out again when it came in another record: ring, ordered, seed 82."""
    app = Application(ordered=True)
    app.offer(item(0), item(4))
    app.holdings.store.delivered._streams.clear()
    assert app.wait(PATIENCE) == [("gap", 1, 3), 4]
    assert app.offer(item(3, count=3)) == [("late", 3, 3), 3, 5]


def test_without_order_false_marks_and_holes_deliver_nothing_again() -> None:
    app = Application(ordered=False)
    assert app.offer(item(3)) == [3]
    app.reader.holes[STREAM] = (0, 99)
    assert app.reader.give_up() == []
    assert app.wait(2 * PATIENCE) == []


def test_streams_that_the_store_forgot_are_forgotten() -> None:
    app = Application(ordered=True)
    app.offer(item(0))
    app.reader.marks[9, bytes(12)] = Mark(4)
    app.wait(4)
    assert list(app.reader.marks) == [STREAM]


@pytest.mark.parametrize("ordered", [False, True])
def test_more_holes_than_are_remembered_are_given_up_with_a_notice(
    ordered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(positions, "INTERVALS_MAX", 3)
    one = Application(ordered=ordered)
    said = [short for number in (0, 10, 20, 30) for short in one.offer(item(number))]
    assert [it for it in said if isinstance(it, tuple)] == [("given_up", 1, 9)]
    assert one.offer(item(5)) == [], "as the notice says"
    assert 15 in (one.offer(item(15)) if not ordered else [15])


@pytest.mark.parametrize("seed", range(100))
def test_random_runs_deliver_all_that_came_once_and_in_order_but_what_is_late(seed: int) -> None:
    """Loss, delay, repetition, other boundaries and a moving low, at random; one stream."""
    random, app = Random(seed), Application(ordered=True)
    loss, delay = random.choice([0, 0.1, 0.4]), random.choice([1, 5, 40])
    flight: list[tuple[int, Record]] = []
    for number in range(0, 80, 2):
        low = max(0, number - 25) if random.random() < 0.2 else 0
        record = item(number, low=low, count=random.choice([1, 2, 2, 3]))
        copies = [random.randrange(delay) for _ in range(random.choice([1, 1, 2]))]
        flight += [(number // 2 + d, record) for d in copies if random.random() >= loss]
    found: list[Any] = app.offer(item(0))
    for now in range(500):
        found += app.offer(*(record for at, record in flight if at == now))
        found += app.wait(1)
    came = {number for _, it in flight for number in range(it.first, it.end)} | {0}
    late = {n for it in found if isinstance(it, tuple) and it[0] == "late"
            for n in range(it[1], it[2] + 1)}  # fmt: skip
    gaps = {n for it in found if isinstance(it, tuple) and it[0] == "gap"
            for n in range(it[1], it[2] + 1)}  # fmt: skip
    numbers = [it for it in found if isinstance(it, int)]
    assert sorted(numbers) == sorted(came)
    assert late <= gaps
    on_time = [number for number in numbers if number not in late]
    assert on_time == sorted(on_time)
    assert gaps - late == set(range(max(numbers) + 1)) - came
