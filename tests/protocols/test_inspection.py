"""What nobody entitled published is found in a store and dropped, however much is published on."""

from collections.abc import Iterable

import pytest

from planaria.core.ids import NodeId
from planaria.core.node import Send
from planaria.protocols.publications.admission import EVERYTHING, Admission
from planaria.protocols.publications.antientropy_messages import (
    PLACE_BYTES,
    REFUSED_MAX,
    Push,
    Refused,
)
from planaria.protocols.publications.holdings import Holdings
from planaria.protocols.publications.inspection import INSPECTED, INSPECTED_MAX, Inspection
from planaria.records.memory import MemoryStore
from planaria.records.record import Draft, Place, Record, seal
from retention_lab import START, Topic

FORGER: NodeId = 99
RATE = 5 * INSPECTED  # records that come in an interval: more than are verified in it


class Judge(Admission):
    """Knows who may not publish, and counts what it is asked."""

    judges = True

    def __init__(self) -> None:
        self.asked: list[Record] = []

    def admits(self, record: Record) -> bool:
        self.asked.append(record)
        return record.publisher != FORGER


def forged(number: int = 0, time: int = START) -> Record:
    return seal((FORGER, bytes(12)), number, [Draft(b"forged %d" % number)], time=time)


def true(number: int) -> Record:
    return seal((7, bytes(12)), number, [Draft(b"true %d" % number)], time=START + number)


def named(places: Iterable[Place]) -> list[bytes]:
    return [it.to_bytes(PLACE_BYTES, "big") for it in places]


def judging(topic: Topic) -> Topic:
    for node in topic.nodes:
        node.inspection._admission = Judge()
    return topic


def publish_on(topic: Topic, intervals: int) -> None:
    """A stream of publications that is never quiet."""
    for _ in range(intervals):
        for number in range(RATE):
            topic.publish(1, b"%d at %d" % (number, topic.now))
        topic.pass_time(topic.interval)


@pytest.mark.parametrize("members", [2, 3])
def test_what_neighbours_refuse_is_dropped_while_others_publish_on(members: int) -> None:
    """Digests differ anyway then: two that agree on nothing else never strike."""
    topic = judging(Topic(members))
    publish_on(topic, 20)
    topic.nodes[0].holdings.append([forged()])
    topic.nodes[0].inspection._last = forged().place  # the pass has been there
    assert b"forged 0" in topic.shown(0)
    publish_on(topic, 3)
    assert all(topic.shown(id) == topic.shown(1) for id in range(members))
    assert not any(b"forged 0" in topic.shown(id) for id in range(members))


def test_who_pushes_what_is_refused_is_told_where_it_is() -> None:
    node = judging(Topic(2)).nodes[0]
    many = [forged(number) for number in range(REFUSED_MAX + 1)]
    pushed = Push("t", 1, 3, [true(1).data, *(it.data for it in many)], [])
    sent = [it for it in node.on_message(Topic(2).view(0), pushed) if isinstance(it, Send)]
    places = named(it.place for it in many[:REFUSED_MAX])
    assert sent == [Send(1, Refused("t", 0, 3, places))]
    assert [*node.holdings.store.index.order] == [true(1).place]


def test_the_word_of_a_neighbour_drops_nothing() -> None:
    topic = judging(Topic(2))
    topic.publish(0, b"true")
    held = [*topic.nodes[0].holdings.store.index.order]
    lies = named([*held, 0, (1 << 8 * PLACE_BYTES) - 1])
    topic.nodes[0].on_message(topic.view(0), Refused("t", 1, 1, lies))
    topic.pass_time(topic.interval)
    assert topic.shown(0) == {b"true"}


def inspected(count: int, admission: Admission) -> tuple[Holdings, Inspection]:
    holdings = Holdings(MemoryStore())
    holdings.append([true(number) for number in range(count)])
    return holdings, Inspection("t", holdings, admission)


def test_a_neighbour_that_lies_has_a_bounded_number_verified() -> None:
    judge = Judge()
    holdings, inspection = inspected(2 * INSPECTED_MAX, judge)
    for _ in range(3):
        inspection.suspect(named(holdings.store.index.order))
    inspection.on_timeout()
    assert len(judge.asked) == INSPECTED_MAX + INSPECTED
    inspection.on_timeout()
    assert len(judge.asked) == INSPECTED_MAX + 2 * INSPECTED


def test_where_nothing_is_judged_nothing_is_suspect() -> None:
    holdings, inspection = inspected(3, EVERYTHING)
    inspection.suspect(named(holdings.store.index.order))
    assert inspection._suspects == []


def test_a_pass_ends_though_more_come_than_are_verified() -> None:
    judge = Judge()
    holdings, inspection = inspected(10 * INSPECTED, judge)
    inspection.on_timeout()
    holdings.append([forged()])  # behind the pass: the next one finds it
    for at in range(1, 20):
        inspection.on_timeout()
        holdings.append([true(at * RATE + 10 * INSPECTED + more) for more in range(RATE)])
    assert forged().place not in holdings.store.index.order


def test_what_is_stamped_ahead_is_verified_though_others_are_published_before_it() -> None:
    judge, ahead = Judge(), forged(time=START + 10**6)
    holdings, inspection = inspected(10 * INSPECTED, judge)
    for _ in range(3):
        inspection.on_timeout()
    holdings.append([ahead])
    for at in range(100):
        inspection.on_timeout()
        holdings.append([true(at * RATE + 10 * INSPECTED + more) for more in range(RATE)])
    assert ahead.place not in holdings.store.index.order


@pytest.mark.parametrize("verified", [0, 1, 2, 3, 20, 37])
@pytest.mark.parametrize("held", [INSPECTED_MAX - 1, 3 * INSPECTED_MAX // 2])
def test_a_doubt_has_all_verified_wherever_the_pass_is(held: int, verified: int) -> None:
    judge = Judge()
    holdings, inspection = inspected(held, judge)
    for _ in range(verified):
        inspection.on_timeout()
    judge.asked.clear()
    holdings.doubt()
    for _ in range(-(-held // INSPECTED_MAX)):
        inspection.on_timeout()
        holdings.audit_due = 0  # the audit has seen to it
    assert {it.place for it in judge.asked} == {*holdings.store.index.order}
