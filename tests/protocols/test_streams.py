"""Publisher order at a subscriber: cases by hand, and random runs against a stupid reference."""

from random import Random
from typing import Any

import pytest

from planaria.core.node import Deliver, Effect, Notice
from planaria.protocols.publications import streams as module
from planaria.protocols.publications.publication import Publication
from planaria.protocols.publications.streams import PATIENCE, Streams


def item(
    sequence: int, *, low: int = 0, publisher: int = 1, time: int = 5, payload: bytes = b""
) -> Publication:
    return Publication(publisher, 77, sequence, low, time, payload or str(sequence).encode())


def told(effects: list[Effect]) -> list[Any]:
    """Numbers delivered and notices, in short."""
    short: list[Any] = []
    for effect in effects:
        if isinstance(effect, Deliver):
            assert effect.topic == "t"
            short.append(effect.sequence)
        elif isinstance(effect, Notice):
            assert effect.topic == "t"
            assert (effect.detail["publisher"], effect.detail["incarnation"]) == (1, 77)
            rest = [effect.detail[k] for k in ("first", "last", "sequence") if k in effect.detail]
            short.append((effect.kind, *rest))
    return short


def wait(streams: Streams, timeouts: int, lo: int = 0) -> list[Any]:
    found: list[Any] = []
    for _ in range(timeouts):
        found += told(streams.on_timeout(lo))
    return found


def test_by_default_each_publication_is_delivered_at_once() -> None:
    streams = Streams("t")
    assert [told(streams.offer(item(n))) for n in (2, 0, 1)] == [[2], [0], [1]]
    assert wait(streams, 2 * PATIENCE) == []
    assert streams.vector() == {"1/77": 2}


def test_in_order_a_publication_waits_for_those_before_it() -> None:
    streams = Streams("t", ordered=True)
    assert [told(streams.offer(item(n))) for n in (2, 0, 1, 3)] == [[], [0], [1, 2], [3]]


def test_a_delivery_names_the_publication() -> None:
    publication = item(0)
    numbers = (1, publication.incarnation, 0)
    id = b"".join(number.to_bytes(8, "big") for number in numbers)
    expected = Deliver("t", id, publication.payload, 1, 0)
    assert Streams("t").offer(publication) == [expected]
    assert Streams("t", ordered=True).offer(publication) == [expected]


@pytest.mark.parametrize("ordered", [True, False])
def test_a_hole_is_a_gap_after_patience_and_its_filling_is_late_once(ordered: bool) -> None:
    streams = Streams("t", ordered)
    streams.offer(item(0))
    at_once = told(streams.offer(item(3)))
    assert at_once == ([] if ordered else [3])
    assert wait(streams, PATIENCE - 1) == []
    assert wait(streams, 1) == ([("gap", 1, 2), 3] if ordered else [("gap", 1, 2)])
    assert told(streams.offer(item(2))) == [("late", 2), 2]
    assert told(streams.offer(item(2))) == []
    assert streams.vector() == {"1/77": 3}


def test_two_holes_known_for_long_are_given_up_together() -> None:
    streams = Streams("t", ordered=True)
    for number in (0, 5, 2):
        streams.offer(item(number))
    assert wait(streams, PATIENCE) == [("gap", 1, 1), 2, ("gap", 3, 4), 5]


def test_a_hole_seen_later_is_waited_for_from_then_on() -> None:
    streams = Streams("t", ordered=True)
    streams.offer(item(1))
    wait(streams, PATIENCE - 1)
    streams.offer(item(3))
    assert wait(streams, 1) == [("gap", 0, 0), 1]
    assert wait(streams, PATIENCE - 2) == []
    assert wait(streams, 1) == [("gap", 2, 2), 3]


def test_low_declares_what_is_lost_at_once() -> None:
    streams = Streams("t", ordered=True)
    for number in (0, 4):
        streams.offer(item(number))
    assert told(streams.offer(item(9, low=7))) == [("gap", 1, 3), 4, ("gap", 5, 6)]
    assert told(streams.offer(item(7, low=7))) == [7]
    assert told(streams.offer(item(8, low=7))) == [8, 9]


def test_a_stream_starts_at_its_low_and_not_with_a_gap() -> None:
    streams = Streams("t", ordered=True)
    assert told(streams.offer(item(57, low=57))) == [57]
    assert told(streams.offer(item(56, low=50))) == [("late", 56), 56]


def test_a_low_above_its_own_number_loses_nothing() -> None:
    streams = Streams("t", ordered=True)
    assert told(streams.offer(item(3, low=99))) == [3]
    assert told(streams.offer(item(4))) == [4]


def test_two_payloads_with_one_number_are_both_delivered_and_reported() -> None:
    for ordered in (True, False):
        streams = Streams("t", ordered)
        assert told(streams.offer(item(0))) == [0]
        assert told(streams.offer(item(0, payload=b"other"))) == [("equivocation", 0), 0]


def test_a_restamped_publication_is_not_delivered_again() -> None:
    for ordered in (True, False):
        streams = Streams("t", ordered)
        assert told(streams.offer(item(0, time=5))) == [0]
        assert told(streams.offer(item(0, time=9))) == []


def test_an_old_stream_is_forgotten_and_comes_back_at_its_low() -> None:
    streams = Streams("t", ordered=True)
    streams.offer(item(0, time=5))
    streams.offer(item(3, time=5))
    assert wait(streams, 1, lo=5) == []
    assert wait(streams, 1, lo=6) == [("gap", 1, 2), 3]
    assert len(streams) == 0
    assert told(streams.offer(item(9, low=9, time=8))) == [9]


def test_streams_beyond_the_bound_push_out_the_quietest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STREAMS_MAX", 2)
    streams = Streams("t", ordered=True)
    streams.offer(item(1))
    streams.offer(item(0, publisher=2))
    assert told(streams.offer(item(0, publisher=3))) == [("gap", 0, 0), 1, 0]
    assert sorted(streams.vector()) == ["2/77", "3/77"]


def test_a_stream_with_too_many_waiting_gives_its_hole_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAITING_MAX", 3)
    streams = Streams("t", ordered=True)
    assert [told(streams.offer(item(n))) for n in (1, 2, 4)] == [[], [], []]
    assert told(streams.offer(item(5))) == [("gap", 0, 0), 1, 2]


def test_memory_of_payloads_stays_within_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAID_MAX", 4)
    streams = Streams("t")
    for number in range(20):
        streams.offer(item(number))
    assert len(streams.said) == 4
    assert told(streams.offer(item(0, payload=b"?"))) == [("late", 0), 0], "and never lost"


def test_the_token_names_only_the_publishers_wanted() -> None:
    streams = Streams("t")
    for publisher in (3, 1, 2):
        streams.offer(item(0, publisher=publisher))
    streams.offer(item(7, publisher=9))
    assert list(streams.vector()) == ["1/77", "2/77", "3/77"]
    assert streams.vector([2, 5]) == {"2/77": 0}


def test_deadlines_lost_or_moved_by_a_fault_are_made_anew() -> None:
    for fault in range(4):
        streams = Streams("t", ordered=True)
        streams.offer(item(3))
        if fault == 0:
            streams.deadlines.clear()
        elif fault == 1:
            streams.clock = -(10**9)
        elif fault == 2:
            streams.streams[1, 77].waiting[3] = (10**9, item(3))
        else:
            streams.streams[1, 77].next = 50
        found = wait(streams, 3 * module.REBUILD_TIMEOUTS)
        assert [short for short in found if isinstance(short, int)] == [3]
        assert not streams.streams[1, 77].waiting
        assert streams.vector() == {"1/77": 49 if fault == 3 else 3}


class StupidSubscriber:
    """Remembers everything and looks everything up, for one stream from number 0."""

    def __init__(self) -> None:
        self.come: dict[int, int] = {}  # number: when
        self.settled: set[int] = set()
        self.now = 0

    def step(self, low: int) -> list[Any]:
        """Deliver or report whatever can be by now."""
        out: list[Any] = []
        while True:
            number = next(n for n in range(10_000) if n not in self.settled)
            above = [when for n, when in self.come.items() if n > number and n not in self.settled]
            if number in self.come:
                out.append(number)
            elif number < low or (above and min(above) + PATIENCE <= self.now):
                out.append(("lost", number))
            else:
                return out
            self.settled.add(number)

    def offer(self, number: int, low: int) -> list[Any]:
        if number in self.come:
            return []
        self.come[number] = self.now
        if number in self.settled:
            return [("late", number), number]
        return self.step(low)


def spelled_out(short: list[Any]) -> list[Any]:
    """A gap as the numbers in it, so that how holes are grouped does not matter."""
    out: list[Any] = []
    for entry in short:
        if isinstance(entry, tuple) and entry[0] == "gap":
            out += [("lost", number) for number in range(entry[1], entry[2] + 1)]
        else:
            out.append(entry)
    return out


@pytest.mark.parametrize("seed", range(150))
def test_random_runs_equal_a_stupid_subscriber(seed: int) -> None:
    """Loss, delay, repetition and a moving low, at random; ordered, one stream."""
    random = Random(seed)
    streams, stupid = Streams("t", ordered=True), StupidSubscriber()
    loss, delay = random.choice([0, 0.1, 0.4]), random.choice([1, 5, 40])
    flight: list[tuple[int, int, int]] = []
    for number in range(60):
        low = max(0, number - 25) if random.random() < 0.2 else 0
        copies = [random.randrange(delay) for _ in range(random.choice([1, 1, 2]))]
        flight += [(number // 2 + d, number, low) for d in copies if random.random() >= loss]
    flight.sort()
    delivered: list[int] = []
    streams.offer(item(0, payload=b"0"))  # both start at 0
    stupid.offer(0, 0)
    for now in range(200):
        for _, number, low in [entry for entry in flight if entry[0] == now]:
            ours = spelled_out(told(streams.offer(item(number, low=low))))
            assert ours == stupid.offer(number, low)
            delivered += [entry for entry in ours if isinstance(entry, int)]
        stupid.now += 1
        ours = spelled_out(told(streams.on_timeout(0)))
        assert ours == stupid.step(0)
        delivered += [entry for entry in ours if isinstance(entry, int)]
    assert sorted(delivered) == sorted({number for _, number, _ in flight} - {0})


@pytest.mark.parametrize("seed", range(30))
def test_unordered_runs_deliver_each_once_and_report_the_same_losses(seed: int) -> None:
    random = Random(seed)
    ordered, unordered = Streams("t", ordered=True), Streams("t")
    sent = [n for n in range(80) if random.random() > 0.2]
    arrivals = sorted((n + random.randrange(30), n) for n in sent)
    results: list[list[Any]] = [[], []]
    for now in range(150):
        for streams, found in zip((ordered, unordered), results, strict=True):
            for _, number in [entry for entry in arrivals if entry[0] == now]:
                found += told(streams.offer(item(number)))
            found += told(streams.on_timeout(0))
    losses = [[e for e in spelled_out(found) if isinstance(e, tuple)] for found in results]
    assert losses[0] == losses[1]
    for found in results:
        assert sorted(entry for entry in found if isinstance(entry, int)) == sent


def test_what_a_fault_put_into_the_waiting_room_is_marked_when_it_leaves() -> None:
    """Unmarked it was delivered again when it came in: ring, n = 16, seed 2, `corrupt`."""
    marked: list[Publication] = []
    streams = Streams("t", ordered=True, mark=marked.append)
    streams.offer(item(0))
    waiting = streams.streams[1, 77].waiting
    waiting[3], waiting[5] = (0, item(3)), (0, item(9))  # one of them under a wrong number
    streams.streams[1, 77].armed = False
    assert told(streams.offer(item(1))) == [1]
    assert wait(streams, 2 * PATIENCE) == [("gap", 2, 2), 3, ("gap", 4, 4)]
    assert [it.sequence for it in marked] == [0, 1, 3]
