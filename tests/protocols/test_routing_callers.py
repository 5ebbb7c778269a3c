"""What applications ask of a broker: by topic too, and refused in one line where it cannot be."""

from random import Random
from typing import Any

import pytest

from planaria.core.codec import Codec
from planaria.core.errors import UsageError
from planaria.core.node import (
    Deliver,
    Effects,
    Joined,
    Publish,
    Published,
    Send,
    Subscribe,
    Unsubscribe,
)
from planaria.filters.filters import Filter
from planaria.filters.sql import parse
from planaria.filters.timestamps import Timestamp
from planaria.filters.values import Values
from planaria.protocols.routing.messages import Received, Update
from planaria.protocols.routing.node import Broker
from planaria.protocols.routing.notifications import NOTIFICATION_BYTES_MAX
from planaria.protocols.routing.overlay import RoutingOverlay
from planaria.protocols.routing.timing import timing


def broker() -> Broker:
    found = Broker(0, timing(3, (0, 1.5), 2), Random(1))
    found.set_links([1, 2], 1)
    return found


def deliveries(effects: Effects) -> list[Deliver]:
    return [it for it in effects if isinstance(it, Deliver)]


def test_a_subscription_by_topic_is_client_0s_until_it_ends() -> None:
    it = broker()
    effects = it.on_command(Subscribe("a/#"))
    assert [send.target for send in effects if isinstance(send, Send)] == [1, 2]
    (given,) = deliveries(it.on_command(Publish("a/b", b"x")))
    assert (given.topic, given.client, given.publications[0].payload) == ("a/b", 0, b"x")
    assert deliveries(it.on_command(Publish("b", b"x"))) == []
    it.on_command(Unsubscribe("a/#"))
    assert deliveries(it.on_command(Publish("a/b", b"y"))) == []


@pytest.mark.parametrize("topic", ["a/+", "#", "a/#", "", "a#", "$SYS/x"])
def test_nobody_publishes_on_a_pattern(topic: str) -> None:
    for command in (Publish(topic, b""), Publish(topic, b"", {"a": 1})):
        with pytest.raises(UsageError, match="topic"):
            broker().on_command(command)


@pytest.mark.parametrize("pattern", ["a/#/b", "", "a+"])
def test_a_pattern_that_is_none_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError):
        broker().on_command(Subscribe(pattern))


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (Subscribe("a", ordered=True), "subscribe without `ordered`"),
        (Subscribe("a", where=5), "write SQL"),
        (Subscribe("a", where=("a = 1",)), "write SQL"),
        (Subscribe("a", where="lower(a) = 'x'"), "LOWER"),
        (Subscribe("a/#", where="topic = 'b'"), "ask for less"),
        (Subscribe("a", client=-1), "client"),
        (Unsubscribe("a", client=1 << 40), "client"),
        (Publish("a", key=b"k"), "no key: put it into `attributes`"),
        (Publish("a", headers={"h": "1"}), "no headers: put it into `attributes`"),
        (Publish("a", timestamp=5), "no timestamp: put it into `attributes`"),
        (Publish("a", attributes={"topic": "b"}), "give it as `topic`"),
        (Publish(5), "a topic is text"),  # type: ignore[arg-type]
    ],
)
def test_what_content_cannot_do_it_says_in_one_line_with_what_to_do(
    command: Any, says: str
) -> None:
    it = broker()
    before = it.snapshot()
    with pytest.raises(UsageError, match=says) as refused:
        it.on_command(command)
    assert "\n" not in str(refused.value)
    assert it.snapshot() == before


def test_a_subscription_is_a_pattern_and_a_condition_of_one_client() -> None:
    it = broker()
    it.on_command(Subscribe("a/+", where="level > 3 OR urgent", client=7))
    assert deliveries(it.on_command(Publish("b/x", b"", {"level": 9}))) == []
    assert deliveries(it.on_command(Publish("a/x", b"", {"level": 3}))) == []
    first, *rest = it.on_command(Publish("a/x", b"p", {"level": 9, "urgent": True}))
    (given,) = deliveries(rest)
    id = given.publications[0].id
    assert first == Published("a/x", id)
    attributes = {"level": 9, "urgent": True}
    assert given == Deliver.one("a/x", id, b"p", attributes=attributes, client=7)
    it.on_command(Unsubscribe("a/+", where=parse("level > 3 OR urgent"), client=7))
    assert deliveries(it.on_command(Publish("a/x", b"", {"level": 9}))) == []
    assert it.clients == {7: {}}


def renewal(it: Broker) -> dict[int, list[int]]:
    """The stamps of the next renewal, by neighbour, each of which asks to be acknowledged."""
    while True:
        sends = [e for e in it.on_timeout() if isinstance(e, Send)]
        found: dict[int, list[int]] = {}
        for send in sends:
            if isinstance(send.message, Update) and send.message.asks:
                found.setdefault(send.target, []).append(send.message.stamp)
        if found:
            return found


def test_who_subscribes_has_joined_when_all_neighbours_acknowledged_a_renewal() -> None:
    it = broker()
    for id in (1, 2):
        it.on_message(Update(id, 1, (), (), session=id))
    effects = it.on_command(Subscribe("a", where="x = 1", client=3))
    assert not any(isinstance(e, Joined) for e in effects)
    stamps = renewal(it)
    assert sorted(stamps) == [1, 2]

    def acknowledge(id: int, session: int) -> list[Joined]:
        message = Received(id, session, (), tuple(stamps[id]))
        return [e for e in it.on_message(message, id) if isinstance(e, Joined)]

    assert acknowledge(1, 1) == []
    assert acknowledge(2, 99) == []  # of an end that was there before
    assert [e for e in it.on_message(Received(2, 2, (), (0,)), 2) if isinstance(e, Joined)] == []
    stamps = renewal(it)  # it is asked again, and only who has not answered
    assert list(stamps) == [2]
    assert acknowledge(2, 2) == [Joined("a", 3)]
    assert it.joining.waiting == []


def test_who_is_alone_has_joined_at_once_and_who_unsubscribes_never() -> None:
    alone = Broker(0, timing(3, (0, 1.5), 2), Random(1))
    assert alone.on_command(Subscribe("a")) == [Joined("a")]
    it = broker()
    it.on_command(Subscribe("a"))
    it.on_command(Unsubscribe("a"))
    assert it.joining.waiting == []
    it.on_command(Subscribe("b"))
    it.set_links([], None)
    assert [e for e in it.on_timeout() if isinstance(e, Joined)] == [Joined("b")]


@pytest.mark.parametrize(
    ("attributes", "payload", "says"),
    [
        ({"a": [1]}, b"", "type list"),
        ({"a": b"x"}, b"", "type bytes"),
        ({"a": None}, b"", "type NoneType"),
        ({"a": 10**30}, b"", "64 bits"),
        ({"a": -(1 << 63) - 1}, b"", "64 bits"),
        ({"a": Timestamp(1 << 70)}, b"", "64 bits"),
        ({"a": "\ud800"}, b"", "not valid Unicode text"),
        ({"": 1}, b"", "name"),
        ({"a" * 257: 1}, b"", "name"),
        ({7: 1}, b"", "name"),
        ({"a": 1}, "text", "publish bytes"),
        ({"a": 1}, bytes(NOTIFICATION_BYTES_MAX), "at most"),
    ],
)
def test_what_cannot_be_sent_is_refused_at_publishing(
    attributes: dict[Any, Any], payload: Any, says: str
) -> None:
    it = broker()
    before = it.snapshot()
    with pytest.raises(UsageError, match=says) as refused:
        it.on_command(Publish("t", payload, attributes))
    assert "\n" not in str(refused.value)
    assert it.snapshot() == before


@pytest.mark.parametrize("value", [-(1 << 63), (1 << 64) - 1, 1e300, "é", True, Timestamp(-5)])
def test_what_can_be_published_can_be_sent(value: Any) -> None:
    it, codec = broker(), Codec(RoutingOverlay.messages)
    it.on_command(Subscribe())
    it.strategy = "flooding"
    sent = [e for e in it.on_command(Publish("t", b"", {"a": value})) if isinstance(e, Send)]
    assert len(sent) == 2
    assert all(codec.decode(codec.encode(it.message)) == it.message for it in sent)


@pytest.mark.parametrize(
    "values", [Values(), Values(numbers=(((10**30, 0), (10**31, 1)),)), Values(topics=("a/#/b",))]
)
def test_a_filter_that_cannot_be_leased_is_refused(values: Values) -> None:
    it = broker()
    with pytest.raises(UsageError, match="filter"):
        it.on_command(Subscribe(where=Filter((("a", values),))))
    assert it.clients == {}
