"""A broker and its acknowledged links, input by input: holders, resends, gaps, beats."""

from random import Random

import pytest

from broker_lab import TIMING, acquainted, broker, notify, sent, targets, update
from planaria.core.node import Deliver, Notice, Publish, Send, Subscribe
from planaria.protocols.routing import recent
from planaria.protocols.routing.link import LARGE, RESEND_AFTER, WINDOW_BYTES
from planaria.protocols.routing.messages import (
    Acquainted,
    Beat,
    Notify,
    Received,
)
from planaria.protocols.routing.node import Broker


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
    effects = it.on_message(notify(1, 1, a=1))
    given = [e.publications[0].attributes for e in effects if isinstance(e, Deliver)]
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
    noticed, gaps = [], []
    for _ in range(4 * TIMING.memory):
        effects = it.on_timeout()
        noticed += [e for e in effects if isinstance(e, Notice)]
        gaps += [m for m in sent(effects, 1) if m.gap]
        if gaps:
            break
    assert noticed == [Notice("news", "gap", {"lost": 1})]
    other = acquainted(Broker(1, TIMING, Random(2)), 0)
    other.set_links([0, 5], None)
    effects = other.on_message(gaps[0])
    assert [e for e in effects if isinstance(e, Notice)] == noticed
    assert targets(effects, Notify) == [5]
    assert [e for e in other.on_message(gaps[0]) if isinstance(e, Notice)] == []


def test_a_notification_that_a_full_memory_pushed_out_is_a_gap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recent, "RECENT_MAX", 3)
    it = acquainted(broker("flooding", links=1), 1)
    for number in range(7):
        it.on_command(Publish("t", b"%d" % number))
    noticed = [e for _ in range(2) for e in it.on_timeout() if isinstance(e, Notice)]
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


@pytest.mark.parametrize("size", [LARGE - 1, LARGE])
def test_a_large_one_is_acknowledged_at_once(size: int) -> None:
    """Its neighbour may wait for that with all that follows."""
    it = acquainted(broker(links=1), 1)
    effects = it.on_message(Notify(1, bytes(16), {}, bytes(size)), 1)
    assert targets(effects, Received) == [1] * (size >= LARGE)


def test_what_waits_at_a_neighbour_has_a_size() -> None:
    it = acquainted(broker("flooding", links=1), 1)
    sends = [it.on_message(Notify(9, bytes([n] * 16), {}, bytes(WINDOW_BYTES))) for n in (1, 2)]
    assert [len(sent(effects, 1)) for effects in sends] == [1, 0]
