"""A newcomer does not wait for timeouts: it asks for its place, and then for what it missed."""

from random import Random

import pytest

from planaria.core.codec import Codec
from planaria.core.message import Message
from planaria.core.node import Clock, Publish, Send, Subscribe
from planaria.protocols.publications.antientropy_messages import Estimate
from planaria.protocols.publications.holdings import Holdings
from planaria.protocols.publications.retention import Retention
from planaria.protocols.skipring.membership import CLOCKS_APART
from planaria.protocols.skipring.messages import GetConfiguration, Ref, SetData
from planaria.protocols.skipring.node import RingNode
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.protocols.skipring.peer import Peer
from planaria.records.memory import MemoryStore
from planaria.records.record import TIME_MAX, decode
from planaria.simulator.delays import fixed
from planaria.simulator.engine import Simulator
from records_lab import A, B, record, shuffled
from ring_lab import hear

ME, CHIEF, BEFORE, AFTER = 50, 1000, 14, 15
TOPIC = "news"


def sent(effects: object, kind: type[Message]) -> list[int]:
    """To whom messages of this kind went."""
    assert isinstance(effects, list | tuple)
    sends = [it for it in effects if isinstance(it, Send)]
    return [send.target for send in sends if isinstance(send.message, kind)]


def configuration(label: int | None, pred: Ref | None, succ: Ref | None) -> SetData:
    return SetData(TOPIC, CHIEF, 1, label, pred, succ, 9, False)


def test_whoever_subscribes_asks_at_once_and_once() -> None:
    one = Peer(ME, (CHIEF,), Random(1))
    assert sent(one.on_command(Subscribe(TOPIC)), GetConfiguration) == [CHIEF]
    assert sent(one.on_command(Subscribe(TOPIC)), GetConfiguration) == [], "its request is out"
    assert sent(one.on_timeout(), GetConfiguration) == [CHIEF], "it may be lost"


def test_whoever_knows_no_supervisor_or_has_a_place_asks_nobody() -> None:
    assert not Peer(ME, (), Random(1)).on_command(Subscribe(TOPIC))
    one = Peer(ME, (CHIEF,), Random(1))
    one.on_command(Subscribe(TOPIC))
    hear(one, configuration(2, (4, BEFORE), (5, AFTER)))
    one.topics[TOPIC].subscriber.inquiry.alarm(1)
    assert sent(one.on_command(Subscribe(TOPIC)), GetConfiguration) == [], "nor if it is alarmed"


def test_a_newcomer_asks_one_neighbour_for_what_it_missed() -> None:
    one = Peer(ME, (CHIEF,), Random(1))
    one.on_command(Subscribe(TOPIC))
    effects = hear(one, configuration(2, (4, BEFORE), (5, AFTER)))
    assert sent(effects, Estimate) == [BEFORE], "two would push the same"
    assert not sent(hear(one, configuration(3, (6, 16), (5, AFTER))), Estimate), "it is in"


def test_the_first_of_all_has_nobody_to_ask() -> None:
    one = Peer(ME, (CHIEF,), Random(1))
    one.on_command(Subscribe(TOPIC))
    assert sent(hear(one, configuration(0, None, None)), Estimate) == []


def test_whoever_leaves_asks_for_nothing() -> None:
    one = Peer(ME, (CHIEF,), Random(1))
    one.on_command(Subscribe(TOPIC))
    one.topics[TOPIC].subscriber.leaving = True
    assert sent(hear(one, configuration(2, (4, BEFORE), (5, AFTER))), Estimate) == []


@pytest.mark.parametrize("seed", range(4))
def test_a_newcomer_has_the_past_within_an_interval(seed: int) -> None:
    """With messages that take a hundredth of an interval, before neighbours would have spoken."""
    simulator = Simulator(seed, delay=fixed(1))
    for id in (*range(4), CHIEF):
        node = RingNode(id, (CHIEF,), simulator.rng, supervise=id == CHIEF)
        simulator.add(node)
    for id in range(3):
        simulator.command(id, Subscribe(TOPIC))
    for _ in range(12):
        simulator.run_interval()
    for number in range(300):
        simulator.command(0, Publish(TOPIC, b"%d" % number))
    for _ in range(12):
        simulator.run_interval()
    simulator.command(3, Subscribe(TOPIC))
    simulator.run_interval()
    newcomer = simulator.nodes[3]
    assert isinstance(newcomer, RingNode)
    assert len(newcomer.peer.topics[TOPIC].history.holdings) == 300


@pytest.mark.parametrize("seed", range(4))
def test_what_is_pushed_is_in_publishers_order_within_a_second(seed: int) -> None:
    """In the order of keys a reader could hand out nothing before nearly all of it came."""
    # Numbers go on from second to second.
    records = [
        record(of, 9 * (time - 8) + first, time=time)
        for time in (8, 9)
        for of in (A, B)
        for first in range(9)
    ]
    holdings = Holdings(MemoryStore())
    holdings.append(shuffled(records, seed))
    places = holdings.places(0, 1 << 30)
    pushed = [decode(data) for data in holdings.bodies(places)]
    assert [(it.time, it.stream, it.first) for it in pushed] == [
        (it.time, it.stream, it.first) for it in records
    ]
    some = Random(seed).sample(places, 7)
    few = [decode(data) for data in holdings.bodies([*sorted(some), (1 << 40) - 1])]
    assert sorted(it.place for it in few) == sorted(some), "and nothing that is not here"


def test_a_new_topic_knows_the_time_before_the_clock_is_read_again() -> None:
    """Else a member would take what is too old, as long as it knows no time."""
    one = Peer(ME, (CHIEF,), Random(1), retention={TOPIC: Retention(age=3600)})
    one.on_command(Clock(1_000_000))
    one.on_command(Subscribe(TOPIC))
    lo = one.topics[TOPIC].history.horizon.lo
    assert 0 < lo < 1_000_000 - 3600
    again = Peer(ME, (CHIEF,), Random(1), retention={"other": Retention(age=3600)})
    again.load(one.state())
    again.on_command(Subscribe("other"))
    assert again.topics["other"].history.horizon.lo == lo, "a state has it"


def test_a_newcomer_compares_all_but_what_its_neighbour_is_about_to_drop() -> None:
    """Nothing is on its way to it; a neighbour refuses what its clock has dropped."""
    one = Peer(ME, (CHIEF,), Random(1), retention={TOPIC: Retention(age=3600)})
    one.on_command(Clock(1_000_000))
    one.on_command(Subscribe(TOPIC))
    (asked,) = [
        it.message
        for it in hear(one, configuration(2, (4, BEFORE), (5, AFTER)))
        if isinstance(it, Send) and isinstance(it.message, Estimate)
    ]
    lo = one.topics[TOPIC].history.horizon.lo
    assert (asked.state.lo, asked.state.cut) == (lo + CLOCKS_APART, TIME_MAX)


@pytest.mark.parametrize("lo", [-7, TIME_MAX])
def test_whatever_memory_takes_for_a_window_a_newcomer_sends_what_can_be_read(lo: int) -> None:
    one = Peer(ME, (CHIEF,), Random(1))
    one.on_command(Subscribe(TOPIC))
    holdings = one.topics[TOPIC].history.holdings
    holdings.store.index.window = holdings.window._replace(lo=lo)
    asked = [it for it in hear(one, configuration(2, (4, BEFORE), (5, AFTER))) if type(it) is Send]
    assert any(isinstance(it.message, Estimate) for it in asked)
    codec = Codec(RingOverlay.messages)
    assert all(codec.decode(codec.encode(it.message)) == it.message for it in asked)
