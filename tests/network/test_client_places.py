"""Where a subscription is: compared with plain sets of numbers that were taken."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planaria.core.errors import UsageError
from planaria.network.client.events import Event
from planaria.network.client.messages import Position
from planaria.network.client.parcels import TOKEN_MILLISECONDS, TOKENS_MAX, Tokens
from planaria.network.client.places import Places, beginning
from planaria.network.client.publishing import TOKEN_HEADER
from planaria.network.client.servers import SERVERS_MAX, Servers, addresses_in

STREAM = (7, bytes(12))
OTHER = (8, bytes(12))

steps = st.lists(
    st.tuples(st.sampled_from(["take", "skip", "resume"]), st.integers(0, 30), st.integers(1, 9)),
    max_size=30,
)


@given(steps)
def test_every_number_is_unread_until_it_is_taken_whatever_comes_between(
    done: list[tuple[str, int, int]],
) -> None:
    """Random pieces in any order and with repeats, holes skipped, vectors stored and read back."""
    places, taken, late = Places(5), set[int](), set[int]()
    for kind, lo, size in done:
        if kind == "take":
            wanted = range(lo, lo + size)
            end = places.mark("a", STREAM).next
            parts = places.unread("a", STREAM, lo, lo + size)
            found = [number for start, stop, _ in parts for number in range(start, stop)]
            fresh = [it for it in wanted if it not in taken and (it >= end or it in late)]
            assert found == fresh
            for start, stop, is_late in parts:
                assert all((number < end) == is_late for number in range(start, stop))
                places.take("a", STREAM, start, stop)
            taken |= set(found)
            late -= set(found)
        elif kind == "skip":
            end = places.mark("a", STREAM).next
            late |= set(range(end, max(end, lo)))
            places.skip("a", STREAM, lo)
        else:
            places = Places.from_json(json.loads(json.dumps(places.to_json())))
    assert places.floor == 5


@given(st.integers(0, 20), st.lists(st.integers(0, 19), unique=True))
def test_going_back_undoes_what_was_taken(end: int, skipped: list[int]) -> None:
    holes = tuple((it, it + 1) for it in sorted(skipped) if it < end)
    for number in range(end):
        places = Places()
        places.move("a", Position(*STREAM, end, holes))
        before = places.unread("a", STREAM, 0, end)
        late = any(lo <= number < hi for lo, hi, _ in before)
        for lo, hi, _ in places.unread("a", STREAM, number, number + 1 if late else end):
            places.take("a", STREAM, lo, hi)
        if late:
            places.back("a", STREAM, number, late=True)
            assert places.unread("a", STREAM, 0, end) == before
        else:
            places.back("a", STREAM, number, late=False)
            assert places.mark("a", STREAM).next == number


def test_a_node_that_is_behind_does_not_move_us_back() -> None:
    places = Places()
    places.move("a", Position(*STREAM, 10, ((2, 4),)))
    places.move("a", Position(*STREAM, 9))
    assert places.to_json()["topics"]["a"] == {f"7/{'00' * 12}": [[10], [2, 4]]}


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"floor": -1, "topics": {}},
        {"floor": True, "topics": {}},
        {"floor": 0, "topics": []},
        {"floor": 0, "topics": {"a/#": {}}},
        {"floor": 0, "topics": {"a": {"x": 1}}},
        "tomorrow",
        -1,
        None,
    ],
)
def test_what_is_no_beginning_is_refused_in_one_line(wrong: object) -> None:
    with pytest.raises(UsageError) as caught:
        beginning(wrong)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_times_are_seconds_since_1970() -> None:
    assert beginning(datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC))[:2] == ("time", 10**9)
    assert beginning(10**9 + 0.9)[:2] == ("time", 10**9)
    with pytest.raises(UsageError, match="a time since 1970"):
        beginning(datetime.min)  # of which no clock knows the seconds


def event(token: str | None, sequence: int, timestamp: int = 0, topic: str = "a") -> Event:
    headers = {} if token is None else {TOKEN_HEADER: token}
    return Event(topic, b"", None, headers, 7, bytes(12), sequence, timestamp)


def test_a_token_is_new_once_in_ten_minutes_and_topic() -> None:
    tokens = Tokens()
    assert tokens.new([event("x", 0), event("x", 1), event("y", 2), event(None, 3)]) == [
        event(None, 0),
        event(None, 2),
        event(None, 3),
    ]
    assert tokens.new([event("x", 4, topic="b")]) == [event(None, 4, topic="b")]
    assert tokens.new([event("x", 0)]) == [event(None, 0)]  # the same one, read again
    assert tokens.new([event("x", 5, TOKEN_MILLISECONDS)]) == []
    assert tokens.new([event("x", 6, TOKEN_MILLISECONDS + 1)]) != []
    many = [event(f"{number}", number) for number in range(TOKENS_MAX)]
    assert len(tokens.new(many)) == TOKENS_MAX
    assert tokens.new([event("x", 7)]) != []


def test_servers_are_tried_in_the_order_of_luck() -> None:
    servers = Servers(["a:1", "b:2", "b:2", "c"])
    assert list(servers) == ["a:1", "b:2", "c:7400"]
    servers.bad("a:1")
    assert list(servers) == ["b:2", "c:7400", "a:1"]
    servers.good("c:7400")
    assert list(servers) == ["c:7400", "b:2", "a:1"]
    servers.bad("z:9")
    servers.learn(["d:4", "b:2", "d:4"])
    assert list(servers) == ["c:7400", "b:2", "a:1", "d:4"]


def test_learned_servers_are_bounded_and_given_ones_stay() -> None:
    servers = Servers(["a:1"])
    for round in range(3):
        servers.learn(f"h{round}:{port}" for port in range(1000))
        assert len(list(servers)) == SERVERS_MAX
        assert next(iter(servers)) == "a:1"
        assert sum(it.startswith(f"h{round}:") for it in servers) == SERVERS_MAX - 1


@pytest.mark.parametrize(
    "status", [None, [], {}, {"contacts": 1}, {"contacts": [1, {}, {"addresses": 3}]}]
)
def test_a_strange_status_names_no_servers(status: object) -> None:
    assert addresses_in(status) == []


def test_addresses_of_contacts_are_read_and_rubbish_left() -> None:
    contacts = [{"addresses": ["127.0.0.1:7401", "x:y:z"]}, {"addresses": ["[::1]:7402"]}]
    assert addresses_in({"contacts": contacts}) == ["127.0.0.1:7401", "[::1]:7402"]
