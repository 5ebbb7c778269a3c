"""One broker, input by input: what it believes, what it tells whom, and what it refuses."""

import subprocess
import sys
from random import Random
from typing import Any

import pytest

from planaria.core.codec import Codec
from planaria.core.errors import MalformedMessage, UsageError
from planaria.core.message import Message
from planaria.core.node import Deliver, Effects, Notice, Publish, Send, Subscribe
from planaria.filters.filters import Filter, filter_id
from planaria.filters.sql import parse
from planaria.filters.timestamps import Timestamp
from planaria.filters.values import Values
from planaria.protocols.routing import recent
from planaria.protocols.routing.broker import Broker
from planaria.protocols.routing.link import RESEND_AFTER
from planaria.protocols.routing.messages import (
    LEASES_MAX,
    STAMPS,
    Acquainted,
    Beat,
    Notify,
    Received,
    Update,
)
from planaria.protocols.routing.notifications import ATTRIBUTES_MAX
from planaria.protocols.routing.overlay import RoutingOverlay
from planaria.protocols.routing.timing import timing

TIMING = timing(3, (0, 1.5), 2)


def broker(strategy: str = "covering", *, hierarchical: bool = False, links: int = 3) -> Broker:
    """Broker 0 with neighbours 1, 2, ..., all in session 0; the first of them is its parent."""
    found = Broker(0, TIMING, Random(1), strategy=strategy, hierarchical=hierarchical)
    found.set_links(list(range(1, links + 1)), 1)
    for link in found.links.values():
        link.theirs = 0
    return found


def lease(condition: str) -> tuple[int, Filter]:
    (filter,) = parse(condition)
    return filter_id(filter), filter


def update(sender: int, *conditions: str, stamp: int = 1, **options: Any) -> Update:
    return Update(sender, stamp, tuple(lease(it) for it in conditions), **options)


def notify(sender: int, number: int, **attributes: Any) -> Notify:
    return Notify(sender, number.to_bytes(16, "big"), attributes)


def acquainted(it: Broker, *neighbours: int) -> Broker:
    """The same after these neighbours said hello, each with its id for a session."""
    for id in neighbours:
        it.on_message(Update(id, 0, (), (), id))
    return it


def sent(effects: Effects, target: int) -> list[Notify]:
    sends = [it for it in effects if isinstance(it, Send) and it.target == target]
    return [it.message for it in sends if isinstance(it.message, Notify)]


def targets(effects: Effects, kind: type[Message]) -> list[int]:
    sends = [it for it in effects if isinstance(it, Send)]
    return [it.target for it in sends if isinstance(it.message, kind)]


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
    assert (delivery.client, delivery.topic, delivery.payload) == (4, "news/x", b"p")
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


def test_a_neighbour_holds_what_it_has_acknowledged_and_nothing_else() -> None:
    it = acquainted(broker(links=2), 1, 2)
    it.on_message(update(1, "a > 0", stamp=2, session=1))
    for number in (1, 2):
        it.on_message(notify(2, number, a=1))
    ids = [notify(0, number).id for number in (1, 2)]
    assert [it.memory.recent[0][id].holders for id in ids] == [[2], [2]]
    received = Received(1, 1, (ids[0],))
    for false in ((received, None), (received, 2), (Received(1, 9, (ids[0],)), 1)):
        it.on_message(*false)  # forged, of somebody else, of an end that was there before
        assert list(it.links[1].outgoing) == ids
    it.on_message(received, 1)
    assert list(it.links[1].outgoing) == [ids[1]]
    assert [it.memory.recent[0][id].holders for id in ids] == [[2, 1], [2]]


def test_what_is_not_acknowledged_is_sent_again_as_old_as_it_is() -> None:
    it = acquainted(broker(links=2), 1, 2)
    it.on_message(update(1, "a > 0", stamp=2, session=1))
    first = sent(it.on_message(notify(2, 1, a=1)), 1)
    again = [copy for _ in range(RESEND_AFTER) for copy in sent(it.on_timeout(), 1)]
    assert [(copy.id, copy.age) for copy in first + again] == [
        (notify(0, 1).id, age) for age in (0, RESEND_AFTER)
    ]


def test_a_notification_waits_for_the_one_before_it_and_both_are_acknowledged() -> None:
    it = acquainted(broker(links=2), 1, 2)
    it.on_command(Subscribe())
    early = Notify(1, notify(0, 2).id, {"a": 2}, after=notify(0, 1).id)
    assert it.on_message(early) == []
    given = [e.attributes for e in it.on_message(notify(1, 1, a=1)) if isinstance(e, Deliver)]
    assert given == [{"a": 1}, {"a": 2}]
    acknowledged = [e.message for e in it.on_timeout() if isinstance(e, Send) and e.target == 1]
    (said,) = [m for m in acknowledged if isinstance(m, Received)]
    assert said.ids == (notify(0, 1).id, notify(0, 2).id)
    assert said.session == it.links[1].session
    it.on_message(notify(1, 1, a=1))  # a copy: its acknowledgement was lost
    assert it.links[1].received == [notify(0, 1).id]


def test_who_sends_what_i_was_about_to_send_it_has_it() -> None:
    it = acquainted(broker("flooding", links=2), 1, 2)
    it.on_command(Publish("t"))
    (id,) = it.links[1].outgoing
    it.on_message(Notify(1, id, {"topic": "t"}))
    assert (list(it.links[1].outgoing), list(it.links[2].outgoing)) == ([], [id])


def test_what_a_former_neighbour_did_not_acknowledge_goes_over_the_next_link() -> None:
    it = acquainted(broker(links=2), 1, 2)
    it.on_message(update(1, "a > 0", stamp=2, session=1))
    it.on_message(notify(2, 1, a=1))
    it.set_links([2, 3], None)
    assert [m.id for m in sent(it.on_message(update(3, "a > 0", session=3)), 3)] == [
        notify(0, 1).id
    ]


def test_what_is_older_than_the_memory_is_a_gap_for_all_behind_that_link() -> None:
    it = acquainted(broker(links=2), 1, 2)
    it.on_message(update(1, "a > 0", stamp=2, session=1))
    it.on_message(Notify(2, bytes(16), {"a": 1, "topic": "news"}))
    noticed, told = [], []
    for _ in range(4 * TIMING.memory):
        effects = it.on_timeout()
        noticed += [e for e in effects if isinstance(e, Notice)]
        told += [m for m in sent(effects, 1) if m.gap]
        if told:
            break
    assert noticed == [Notice("news", "gap", {"lost": 1})]
    other = acquainted(Broker(1, TIMING, Random(2)), 0)
    other.set_links([0, 5], None)
    effects = other.on_message(told[0])
    assert [e for e in effects if isinstance(e, Notice)] == noticed
    assert targets(effects, Notify) == [5]
    assert [e for e in other.on_message(told[0]) if isinstance(e, Notice)] == []


def test_a_notification_that_a_full_memory_pushed_out_is_a_gap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recent, "RECENT_MAX", 3)
    it = acquainted(broker("flooding", links=1), 1)
    for number in range(7):
        it.on_command(Publish("t", b"%d" % number))
    noticed = [e for _ in range(9) for e in it.on_timeout() if isinstance(e, Notice)]
    assert noticed == [Notice("t", "gap", {"lost": 3})]


def test_trees_that_were_apart_for_longer_than_the_memory_say_so_once() -> None:
    it = acquainted(broker(links=2), 1, 2)
    for number in range(2 * TIMING.memory):
        it.on_timeout()
        it.on_message(Beat(1, number.to_bytes(16, "big")))
    assert it.contact.settled
    common, foreign = it.contact.shown()[-1], bytes([255] * 16)
    for beats, settled in (((common, foreign), True), ((foreign,), False), ((), False)):
        assert it.on_message(Acquainted(2, beats, settled), 2) == []
    it.contact.beats.pop(foreign)
    (notice,) = it.on_message(Acquainted(2, (foreign,), settled=True), 2)
    assert notice == Notice("", "gap", {"lost": 1})
    assert [m.gap for m in sent(it.on_timeout(), 1)] == [1]
    assert it.on_message(Acquainted(2, (bytes([9] * 16),), settled=True), 2) == []


def test_a_newcomer_has_missed_nothing() -> None:
    it = acquainted(broker(links=2), 1, 2)
    settled = Acquainted(1, (bytes([255] * 16),), settled=True)
    assert it.on_message(settled, 1) == []


def test_a_beat_of_the_root_goes_to_everybody_once() -> None:
    it = acquainted(broker(links=3), 1, 2, 3)
    assert targets(it.on_message(Beat(1, bytes(16))), Beat) == [2, 3]
    assert it.on_message(Beat(2, bytes(16))) == []
    assert it.on_message(Beat(7, bytes([1] * 16))) == []  # of no neighbour
    it.set_links([1, 2, 3], None)
    drawn = [e for _ in range(TIMING.memory) for e in it.on_timeout()]
    assert set(targets(drawn, Beat)) == {1, 2, 3}


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
