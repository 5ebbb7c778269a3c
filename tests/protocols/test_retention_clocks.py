"""What clocks and settings must not do to a topic: the scenarios that lost data."""

import pytest

from planaria.core.node import Send
from planaria.protocols.publications.antientropy_messages import Push
from planaria.protocols.publications.retention import Retention
from planaria.records.record import Draft, seal
from retention_lab import DAY, HOUR, MINUTE, YEAR, Topic

TEN = [b"%d" % number for number in range(10)]
WEEK = Retention(age=7 * DAY)
JUMPS = [sign * size for size in (5 * MINUTE, 3 * HOUR, 2 * YEAR) for sign in (1, -1)]


def publish(topic: Topic, payloads: list[bytes]) -> None:
    for number, payload in enumerate(payloads):
        topic.publish(number % len(topic.nodes), payload)


def assert_all_there(topic: Topic, payloads: list[bytes]) -> None:
    for id in range(len(topic.nodes)):
        assert topic.shown(id) >= set(payloads)
        assert {topic.handed[id][payload] for payload in payloads} == {1}


@pytest.mark.parametrize("jump", JUMPS)
@pytest.mark.parametrize("wrong", [(0,), (0, 1, 2)], ids=["one", "all"])
def test_clocks_wrong_then_corrected_lose_nothing_without_an_age_limit(
    jump: int, wrong: tuple[int, ...]
) -> None:
    topic = Topic(3, interval=HOUR)
    for id in wrong:
        topic.skew[id] = jump
    topic.pass_time(2 * HOUR)
    publish(topic, TEN)
    topic.skew = [0, 0, 0]
    topic.read_clocks()
    assert_all_there(topic, TEN)
    topic.pass_time(3 * DAY)
    assert_all_there(topic, TEN)


@pytest.mark.parametrize("retention", [Retention(), WEEK], ids=["no age", "a week"])
@pytest.mark.parametrize("jump", JUMPS)
def test_two_members_of_whom_one_has_a_wrong_clock_lose_nothing(
    jump: int, retention: Retention
) -> None:
    topic = Topic(2, retention, interval=HOUR)
    publish(topic, TEN)
    topic.skew[1] = jump
    topic.pass_time(2 * DAY)
    assert_all_there(topic, TEN)


@pytest.mark.parametrize("retention", [Retention(), WEEK], ids=["no age", "a week"])
@pytest.mark.parametrize("jump", JUMPS)
def test_clocks_corrected_while_publications_are_in_flight(jump: int, retention: Retention) -> None:
    topic = Topic(3, retention, interval=HOUR)
    topic.skew = [jump, jump, jump]
    topic.pass_time(2 * HOUR)
    topic.held_back = True
    publish(topic, TEN)
    topic.skew = [0, 0, 0]
    topic.read_clocks()
    topic.held_back = False
    topic.pass_time(DAY)
    assert {*topic.handed[0].values(), *topic.handed[2].values()} == {1}
    if retention.age is None or jump > -retention.age:
        assert_all_there(topic, TEN)
    else:
        assert not topic.shown(0), "delivered, but stamped two years ago: nobody keeps them"


@pytest.mark.parametrize("jump", JUMPS)
@pytest.mark.parametrize("wrong", [(0,), (0, 1), (0, 1, 2, 3, 4)], ids=["one", "two", "all"])
def test_clocks_that_jump_delete_nothing_that_is_due(jump: int, wrong: tuple[int, ...]) -> None:
    """Also when a majority is wrong, for twenty hours: less than the grace."""
    topic = Topic(5, WEEK, interval=HOUR // 2)
    publish(topic, TEN)
    topic.pass_time(2 * DAY)
    for id in wrong:
        topic.skew[id] = jump
    topic.pass_time(20 * HOUR)
    assert all(topic.in_memory(id) >= set(TEN) for id in range(5))
    topic.skew = [0] * 5
    topic.read_clocks()
    topic.pass_time(HOUR)
    assert_all_there(topic, TEN)
    topic.interval = HOUR  # of which 22 minutes count for the grace
    topic.pass_time(8 * DAY)
    assert not any(topic.shown(id) for id in range(5)), "and the age limit holds all the same"
    assert not any(topic.in_memory(id) for id in range(5))


def test_a_node_alone_in_another_time_deletes_nothing_while_the_others_show_it() -> None:
    """Node 0 and whom it hears live two years ahead for longer than the grace."""
    topic = Topic(3, WEEK, interval=HOUR)
    publish(topic, TEN)
    for _ in range(48):
        topic.skew[0] = 2 * YEAR
        topic.pass_time(HOUR)
        liar = topic.nodes[0].horizon
        liar.votes = {9: (liar.seconds or 0, topic.nodes[1].horizon.lo, 0)}
        topic.nodes[0].read_clock(topic.now + 2 * YEAR)
        topic.nodes[0].on_timeout([9])
        assert not topic.shown(0)
        assert topic.in_memory(0) == set(TEN)


@pytest.mark.parametrize("retention", [Retention(count=10), Retention(per_publisher=10)])
@pytest.mark.parametrize("moving", [True, False], ids=["time passes", "in one second"])
def test_retention_never_decides_delivery(retention: Retention, moving: bool) -> None:
    topic = Topic(3, retention)
    payloads = [b"%d" % number for number in range(1000)]
    for number, payload in enumerate(payloads):
        topic.publish(number % 3, payload)
        if moving and number % 50 == 0:
            topic.pass_time(MINUTE)
    topic.pass_time(5 * MINUTE)
    for id in range(3):
        assert topic.handed[id] == dict.fromkeys(payloads, 1)
        kept = 10 if retention.count else 30
        assert len(topic.shown(id)) == len(topic.in_memory(id)) == kept
    assert topic.shown(0) == topic.shown(1) == topic.shown(2)
    if moving:
        assert topic.shown(0) <= set(payloads[-51:]), "the newest by time"


def test_what_anti_entropy_brings_to_a_full_topic_is_delivered_once_though_not_kept() -> None:
    topic = Topic(2, Retention(count=2))
    publish(topic, TEN)
    older = seal((7, bytes(12)), 0, [Draft(b"late")], time=topic.now - HOUR)
    for number in range(2):
        topic.perform(0, [Send(1, Push("t", 0, number, [older.data, older.data], []))])
        assert topic.handed[1][b"late"] == 1
    assert topic.in_memory(1) <= set(TEN)


CHANGES = [
    (Retention(), WEEK),
    (WEEK, Retention(age=8 * DAY)),
    (Retention(age=14 * DAY), WEEK),
    (WEEK, Retention()),
    (Retention(age=8 * DAY), Retention(age=7 * DAY, count=100)),
]


@pytest.mark.parametrize(("before", "after"), CHANGES)
@pytest.mark.parametrize("restarted", [False, True], ids=["at once", "by a restart"])
def test_changed_age_hides_and_deletes_nothing_that_it_keeps(
    before: Retention, after: Retention, restarted: bool
) -> None:
    topic = Topic(2, before, interval=HOUR)
    payloads = [b"%d" % number for number in range(100)]
    publish(topic, payloads)
    topic.pass_time(DAY)
    if restarted:
        topic.restart(after)
    else:
        topic.retain(after)
    assert_all_there(topic, payloads)
    topic.pass_time(DAY)
    assert_all_there(topic, payloads)


READINGS = 72  # in a grace: it wants 64 of them
SHORTER = [Retention(age=HOUR), Retention(count=3), Retention(per_publisher=2, count=3)]


FULL = Retention(age=7 * DAY, count=len(TEN))  # what is published fills it


@pytest.mark.parametrize("shorter", SHORTER)
@pytest.mark.parametrize("wide", [Retention(), Retention(age=7 * DAY, count=50), FULL])
@pytest.mark.parametrize("restarted", [False, True], ids=["at once", "by a restart"])
def test_shortening_hides_at_once_and_lengthening_brings_back_until_the_grace_is_over(
    shorter: Retention, wide: Retention, restarted: bool
) -> None:
    interval = max(MINUTE, shorter.grace // READINGS)  # all of a grace counts, and no faster
    topic = Topic(2, wide, interval=interval)
    publish(topic, TEN)
    topic.pass_time(3 * HOUR)
    change = topic.restart if restarted else topic.retain
    change(shorter)
    assert len(topic.shown(0)) == (0 if shorter.age else 3)
    topic.pass_time(shorter.grace * 9 // 10)
    assert len(topic.shown(0)) == (0 if shorter.age else 3)
    change(wide)
    assert_all_there(topic, TEN)
    change(shorter)
    topic.pass_time(shorter.grace * 13 // 10)
    change(wide)
    assert len(topic.in_memory(0)) == len(topic.shown(0)) == (0 if shorter.age else 3)
    topic.pass_time(HOUR)
    assert {count for counts in topic.handed for count in counts.values()} == {1}


def test_full_topic_holds_no_more_than_its_count_however_much_is_published() -> None:
    """Neither the grace nor a window that moves with time makes a hidden heap of it."""
    for retention in (Retention(count=10), Retention(count=10, age=DAY)):
        topic = Topic(2, retention)
        for number in range(600):
            topic.publish(0, b"%d" % number)
            if number % 20 == 0:
                topic.pass_time(MINUTE)
        assert len(topic.shown(1)) == 10
        assert len(topic.in_memory(1)) == 10
