"""One broker, input by input: what it believes, what it tells whom, and what it refuses."""

import subprocess
import sys
from typing import Any

import pytest

from broker_lab import TIMING, broker, lease, notify, sent, targets, update
from planaria.core.codec import Codec
from planaria.core.errors import MalformedMessage, UsageError
from planaria.core.message import Message
from planaria.core.node import Deliver, Publish, Send, Subscribe
from planaria.filters.filters import Filter, filter_id
from planaria.filters.sql import parse
from planaria.filters.timestamps import Timestamp
from planaria.filters.values import Values
from planaria.protocols.routing.messages import (
    LEASES_MAX,
    STAMPS,
    Notify,
    Update,
)
from planaria.protocols.routing.notifications import ATTRIBUTES_MAX
from planaria.protocols.routing.overlay import RoutingOverlay


def test_a_notification_goes_where_it_is_wanted_and_never_back() -> None:
    it = broker()
    it.on_message(update(1, "a = 1"))
    it.on_message(update(2, "a > 0"))
    assert targets(it.on_message(notify(1, 1, a=1)), Notify) == [2]
    assert targets(it.on_message(notify(3, 2, a=1)), Notify) == [1, 2]
    assert targets(it.on_message(notify(3, 3, a=2)), Notify) == [2]
    assert it.on_message(notify(3, 4, a=-1)) == []
    assert it.on_message(notify(2, 3, a=2)) == []  # seen before


def test_a_new_filter_is_told_at_once_to_all_but_its_source() -> None:
    it = broker()
    assert targets(it.on_message(update(2, "a > 0")), Update) == [1, 3]
    assert targets(it.on_message(update(2, "a > 5", stamp=2)), Update) == []  # covered
    assert targets(it.on_message(update(3, "a > 5")), Update) == [2]  # covered for all but 2


def test_hierarchical_tells_the_parent_alone_and_sends_everything_up() -> None:
    it = broker(hierarchical=True)
    assert targets(it.on_message(update(2, "a > 0")), Update) == [1]
    assert targets(it.on_message(update(1, "a > 0")), Update) == []
    assert targets(it.on_message(notify(3, 1, a=9)), Notify) == [1, 2]
    assert targets(it.on_message(notify(3, 2, a=-9)), Notify) == [1]


def test_flooding_tells_nobody_and_sends_everything_everywhere() -> None:
    it = broker("flooding")
    assert it.on_message(update(2, "a > 0")) == []
    assert it.table.entries == {}
    assert targets(it.on_message(notify(3, 1, b=1)), Notify) == [1, 2]


def test_a_late_cancel_does_not_remove_what_a_newer_message_renewed() -> None:
    it = broker()
    id, _ = lease("a = 1")
    it.on_message(update(1, "a = 1", stamp=STAMPS - 1))
    it.on_message(update(1, "a = 1", stamp=3))  # stamps go round
    it.on_message(Update(1, STAMPS - 1, (), (id,)))
    assert id in it.table.of(1)
    it.on_message(Update(1, 4, (), (id,)))
    assert it.table.of(1) == {}


def test_a_lost_cover_and_what_it_hid_travel_in_one_message() -> None:
    it = broker(links=2)
    it.on_message(update(2, "a > 0", "a > 5"))
    it.on_message(Update(2, 2, (), (lease("a > 0")[0],)))
    sends = [it.message for it in it.on_timeout() if isinstance(it, Send) and it.target == 1]
    (said,) = [it for it in sends if isinstance(it, Update)]
    assert said.leases == (lease("a > 5"),)
    assert said.cancels == (lease("a > 0")[0],)


def test_cancels_wait_if_their_news_do_not_fit_into_one_message() -> None:
    it = broker(links=2)
    it.on_message(update(2, "a >= 0"))
    many = [f"a = {number}" for number in range(LEASES_MAX + 10)]
    it.on_message(update(2, *many[:LEASES_MAX], stamp=2))
    it.on_message(update(2, *many[LEASES_MAX:], stamp=3))
    it.on_message(Update(2, 4, (), (lease("a >= 0")[0],)))
    first = [m.message for m in it.on_timeout() if isinstance(m, Send) and m.target == 1]
    second = [m.message for m in it.on_timeout() if isinstance(m, Send) and m.target == 1]
    assert [len(m.leases) for m in first if isinstance(m, Update)] == [LEASES_MAX, 10]
    assert all(m.cancels == () for m in first if isinstance(m, Update))
    assert [m.cancels for m in second if isinstance(m, Update)] == [(lease("a >= 0")[0],)]


@pytest.mark.parametrize(
    "false",
    [
        Update(1, 1, ((5, parse("a = 1")[0]),)),  # an id that names another filter
        Update(1, 1, ((filter_id(Filter((("a", Values()),))), Filter((("a", Values()),))),)),
        Update(0, 1, (lease("a = 1"),)),  # from myself
        Notify(0, bytes(16), {"a": 1}),
        Notify(1, bytes(16), {f"a{number}": 1 for number in range(ATTRIBUTES_MAX + 1)}),
        Notify(1, bytes(16), {"a": 1}, b"", 10**6),  # older than anybody remembers
    ],
)
def test_what_no_broker_says_is_dropped(false: Message) -> None:
    it = broker()
    before = it.snapshot()
    assert it.on_message(false) == []
    it.announcer.ids.clear()  # it was looked at
    assert it.snapshot() == before


def test_leases_of_a_lost_link_run_out_and_are_not_cancelled() -> None:
    it = broker()
    it.on_message(update(2, "a = 1"))
    assert it.link_down(2) == []
    assert targets(it.on_timeout(), Update) == []
    assert lease("a = 1")[0] in it.table.of(2)
    cancels = []
    for _ in range(2 * TIMING.pi):
        sends = [m.message for m in it.on_timeout() if isinstance(m, Send)]
        cancels += [m.cancels for m in sends if isinstance(m, Update) and m.cancels]
    assert it.table.of(2) == {}
    assert cancels == [(lease("a = 1")[0],)] * 2


def test_a_new_link_gets_the_table_and_what_it_missed() -> None:
    it = broker(links=2)
    it.on_message(update(1, "a = 1"))
    it.on_message(notify(1, 1, a=7))
    effects = it.link_up(3)
    assert targets(effects, Update) == [3]
    assert targets(effects, Notify) == []
    assert targets(it.on_message(update(3, "a = 7")), Notify) == [3]
    assert targets(it.on_message(update(3, "a = 7", stamp=2)), Notify) == []


def test_a_replayed_notification_says_how_long_it_was_kept() -> None:
    """Kept anew at each broker it would outlive the ids that keep it from coming twice."""
    it = broker(links=2)
    it.on_message(Notify(1, bytes(16), {"a": 7}, b"", 4))
    for _ in range(5):
        it.on_timeout()
    effects = [*it.link_up(3), *it.on_message(update(3, "a = 7"))]
    (kept,) = [e.message for e in effects if isinstance(e, Send) and isinstance(e.message, Notify)]
    assert kept.age == 4 + 5
    for _ in range(2 * TIMING.memory):
        it.on_timeout()
    late = sent([*it.link_up(4), *it.on_message(update(4, "a = 7"))], 4)
    assert [m for m in late if not m.gap] == []
    assert it.memory.knows(bytes(16))


def test_a_neighbour_that_starts_anew_is_told_everything_again() -> None:
    it = broker(links=2)
    it.on_message(update(1, "a = 1"))
    it.on_message(update(2, "a = 7"))
    it.on_message(notify(1, 1, a=7))
    effects = it.on_message(update(2, session=77))
    assert targets(effects, Update) == [2]
    assert targets(effects, Notify) == [2]
    assert it.on_message(update(2, session=77, stamp=2)) == []


def test_a_client_is_served_by_any_of_its_filters_and_by_topic() -> None:
    it = broker()
    it.on_command(Subscribe(where="a = 1 OR topic = 'news/#'", client=4))
    effects = it.on_command(Publish("news/x", b"p", {"a": 1}))
    (delivery,) = [it for it in effects if isinstance(it, Deliver)]
    assert (delivery.client, delivery.topic, delivery.publications[0].payload) == (
        4,
        "news/x",
        b"p",
    )
    assert any(isinstance(it, Deliver) for it in it.on_command(Publish("news", b"q")))


def test_a_caller_is_told_what_cannot_be() -> None:
    it = broker()
    many = {str(number): 1 for number in range(ATTRIBUTES_MAX + 1)}
    with pytest.raises(UsageError, match="attributes"):
        it.on_command(Publish("t", attributes=many))
    with pytest.raises(UsageError, match="strategy"):
        broker("quantum")


def test_state_can_be_stored_and_loaded() -> None:
    it = broker()
    it.on_message(update(1, "a = 1"))
    it.on_message(notify(2, 1, a=1))
    other = broker()
    assert list(other.restore(it.snapshot())) == []
    assert other.snapshot() == it.snapshot()
    assert targets(other.on_message(notify(2, 1, a=1)), Notify) == []
    assert targets(other.on_message(notify(2, 2, a=1)), Notify) == [1]


def test_messages_survive_the_wire_with_all_kinds_of_values() -> None:
    codec = Codec(RoutingOverlay.messages)
    attributes: dict[str, Any] = {"n": 1.5, "s": "x", "b": True, "t": Timestamp(5), "i": -3}
    message = Notify(1, bytes(range(16)), attributes, b"p", 3)
    again = codec.decode(codec.encode(message))
    assert again == message
    assert isinstance(again, Notify)
    assert [type(it) for it in again.attributes.values()] == [float, str, bool, Timestamp, int]
    conditions = (
        "a = 1 AND b <> 'x' AND t < TIMESTAMP '2013-01-01' AND f AND topic = 'a/#'",
        "x IS NOT NULL",
    )
    asked = update(1, *conditions, cancels=(5,), session=9, asks=True)
    assert codec.decode(codec.encode(asked)) == asked
    with pytest.raises(MalformedMessage):
        codec.decode(codec.encode(Notify(1, b"short", {})))


def test_a_run_is_the_same_under_every_hash_seed() -> None:
    program = (
        "from planaria.protocols.routing.overlay import RoutingOverlay\n"
        "from planaria.simulator.trial import Spec, Trial\n"
        "trial = Trial(RoutingOverlay('merging'), Spec(n=7, seed=3))\n"
        "print(trial.run())\n"
        "print([node.snapshot() for node in trial.simulator.nodes.values()])\n"
    )
    results = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "77")
    ]
    assert len(results[0]) > 1_000
    assert results[0] == results[1] == results[2]
