"""What applications ask of a broker: by topic too, and refused in one line where it cannot be."""

from random import Random
from typing import Any

import pytest

from planaria.core.codec import Codec
from planaria.core.errors import UsageError
from planaria.core.node import Publish, Send, Subscribe, Unsubscribe
from planaria.filters.filters import Filter
from planaria.filters.timestamps import Timestamp
from planaria.filters.values import Values
from planaria.protocols.routing.broker import Broker
from planaria.protocols.routing.commands import DeliverTo, PublishContent, SubscribeTo
from planaria.protocols.routing.notifications import NOTIFICATION_BYTES_MAX
from planaria.protocols.routing.overlay import RoutingOverlay
from planaria.protocols.routing.timing import timing


def broker() -> Broker:
    found = Broker(0, timing(3, (0, 1.5), 2), Random(1))
    found.set_links([1, 2], 1)
    return found


def deliveries(effects: Any) -> list[DeliverTo]:
    return [it for it in effects if isinstance(it, DeliverTo)]


def test_a_subscription_by_topic_is_client_0s_until_it_ends() -> None:
    it = broker()
    told = it.on_command(Subscribe("a/#"))
    assert [send.target for send in told if isinstance(send, Send)] == [1, 2]
    (given,) = deliveries(it.on_command(Publish("a/b", b"x")))
    assert (given.topic, given.client, given.payload) == ("a/b", 0, b"x")
    assert deliveries(it.on_command(Publish("b", b"x"))) == []
    it.on_command(Unsubscribe("a/#"))
    assert deliveries(it.on_command(Publish("a/b", b"y"))) == []


@pytest.mark.parametrize("topic", ["a/+", "#", "a/#", "", "a#", "$SYS/x"])
def test_nobody_publishes_on_a_pattern(topic: str) -> None:
    for command in (Publish(topic, b""), PublishContent({"topic": topic})):
        with pytest.raises(UsageError, match="topic"):
            broker().on_command(command)


@pytest.mark.parametrize("pattern", ["a/#/b", "", "a+"])
def test_a_pattern_that_is_none_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError):
        broker().on_command(Subscribe(pattern))


def test_gaps_are_not_promised() -> None:
    with pytest.raises(UsageError, match="no gaps"):
        broker().on_command(Subscribe("a", ordered=True))


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
        ({"topic": 5}, b"", "topic is text"),
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
        it.on_command(PublishContent(attributes, payload))
    assert "\n" not in str(refused.value)
    assert it.snapshot() == before


@pytest.mark.parametrize("value", [-(1 << 63), (1 << 64) - 1, 1e300, "é", True, Timestamp(-5)])
def test_what_can_be_published_can_be_sent(value: Any) -> None:
    it, codec = broker(), Codec(RoutingOverlay.messages)
    it.on_command(SubscribeTo(0, (Filter(),)))
    it.strategy = "flooding"
    sent = [e for e in it.on_command(PublishContent({"a": value})) if isinstance(e, Send)]
    assert len(sent) == 2
    assert all(codec.decode(codec.encode(it.message)) == it.message for it in sent)


@pytest.mark.parametrize(
    "values", [Values(), Values(numbers=(((10**30, 0), (10**31, 1)),)), Values(topics=("a/#/b",))]
)
def test_a_filter_that_cannot_be_leased_is_refused(values: Values) -> None:
    it = broker()
    with pytest.raises(UsageError, match="filter"):
        it.on_command(SubscribeTo(0, (Filter((("a", values),)),)))
    assert it.clients == {}
