"""Whatever memory can hold: no handler of a history raises, and everything is put right."""

from collections.abc import Callable
from random import Random

import pytest
from msgspec import convert, to_builtins

from planaria.core.chance import any_integer, stream
from planaria.core.codec import Codec
from planaria.core.node import Send
from planaria.protocols.publications.antientropy import AntiEntropy
from planaria.protocols.publications.antientropy_messages import Digest, More, Sketch
from planaria.protocols.publications.exchange import Exchange
from planaria.protocols.publications.exchanges import STRIKES_MAX
from planaria.protocols.publications.holdings import Holdings
from planaria.protocols.publications.retention import Rejected, Retention
from planaria.protocols.skipring.arbitrary_history import any_publication_message, corrupt_history
from planaria.protocols.skipring.arcs import Share
from planaria.protocols.skipring.batch_messages import Reviewed
from planaria.protocols.skipring.broadcast import Handed, Seen, View
from planaria.protocols.skipring.deposit_messages import Held, NotHeld
from planaria.protocols.skipring.history import PUBLICATION_MESSAGES, History
from planaria.protocols.skipring.labels import CIRCLE
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.records.memory import MemoryStore
from planaria.records.record import TIME_MAX, Draft, Record, seal
from planaria.records.window import Window
from retention_lab import DAY, MINUTE, Topic

RETENTIONS = [
    Retention(),
    Retention(age=DAY),
    Retention(count=4),
    Retention(count=6, per_publisher=2),
    Retention(age=DAY, count=5, per_publisher=3),
]


@pytest.mark.parametrize("part", range(6))
def test_arbitrary_memory_raises_nothing_and_ends_in_agreement(
    part: int, seeds: Callable[[int, int], int]
) -> None:
    for seed in range(part, seeds(60, 10_000), 6):
        chance = stream(seed, "arbitrary histories")
        topic = Topic(3, chance.choice(RETENTIONS))
        for number in range(chance.randrange(12)):
            topic.publish(number % 3, b"%d" % number)
        for node in topic.nodes:
            corrupt_history(node, (0, 1, 2), chance)
        for _ in range(30):
            act(topic, chance.randrange(3), chance)
        topic.pass_time(70 * MINUTE)
        held = [frozenset(shown(node)) for node in topic.nodes]
        assert len(set(held)) == 1, seed
        digests = {node.holdings.digest(node.holdings.window.lo, TIME_MAX) for node in topic.nodes}
        assert len(digests) == 1, seed
        topic.publish(0, b"and it works")
        assert all(b"and it works" in topic.shown(id) for id in range(3)) or held[0], seed
        assert [handed[b"and it works"] for handed in topic.handed] == [1, 1, 1], seed


def shown(node: History) -> list[Record]:
    """What a node shows, each intact: the store gives nothing else."""
    return node.holdings.at(node.holdings.places(0, TIME_MAX))


def act(topic: Topic, id: int, rng: Random) -> None:
    """One input of any kind at one node, before it had a timeout to repair itself."""
    node, peer = topic.nodes[id], (id + 1) % 3
    draw = rng.randrange(8)
    if draw == 0:
        topic.perform(id, node.on_digest(peer, topic.nodes[peer].digest()))
    elif draw == 1:
        topic.perform(id, node.link_down(topic.view(id), peer))
    elif draw == 2:
        node.snapshot()
    elif draw == 3:
        node.read_clock(any_integer(rng, TIME_MAX))
    elif draw == 4:
        topic.publish(id, b"now")
    else:
        message = any_publication_message("t", (0, 1, 2), rng)
        topic.perform(id, node.on_message(topic.view(id), message))


def test_everything_that_a_repaired_history_sends_passes_the_codec() -> None:
    codec, sent = Codec(RingOverlay.messages), 0
    for seed in range(60):
        chance = stream(seed, "arbitrary wires")
        topic = Topic(2, chance.choice(RETENTIONS))
        for number in range(8):
            topic.publish(number % 2, b"%d" % number)
        corrupt_history(topic.nodes[0], (0, 1), chance)
        topic.read_clocks()
        effects = topic.nodes[0].on_timeout([1])
        for lo in (0, topic.nodes[0].holdings.window.lo):
            effects += topic.nodes[0].on_digest(1, Digest(topic.now, lo, TIME_MAX, 77))
        for effect in effects:
            if isinstance(effect, Send):
                assert codec.decode(codec.encode(effect.message)) == effect.message
                sent += 1
    assert sent > 30


@pytest.mark.parametrize("strikes", [-(10**30), -5, 0, 10**30])
def test_sketches_come_into_doubt_however_low_the_count_of_strikes(strikes: int) -> None:
    one = AntiEntropy("t", 1, Holdings(MemoryStore()))
    one.peers[2] = (one.holdings.version, strikes)
    found = []
    for _ in range(STRIKES_MAX + 1):
        found.append(one._strike(2, 0))
        one.peers[2] = (one.holdings.version, one.peers[2][1])
    assert any(found)


def test_exchange_with_impossible_numbers_is_dropped_before_it_speaks() -> None:
    for number, lo, cut in (
        (-1, 0, 9), (2**100, 0, 9), (3, -1, 9), (3, 2**100, 9), (3, 0, -1), (3, 0, 2**100),
    ):  # fmt: skip
        one = AntiEntropy("t", 1, Holdings(MemoryStore()))
        exchange = Exchange(number, lo, cut, started=False)
        exchange.sent = 4
        one.exchanges[2] = exchange
        effects = one.on_message(More("t", 2, number, 4, 2))
        assert not any(isinstance(e, Send) and isinstance(e.message, Sketch) for e in effects)
        one.on_timeout()
        assert one.exchanges == {}


def test_reroutes_and_hops_below_zero_do_not_keep_an_orphan_alive() -> None:
    topic = Topic(3)
    node, view = topic.nodes[0], View(0, 0, [(1, 1), (2, 2), (3, 3)])
    topic.publish(0, b"p")
    (said,) = shown(node)
    name = said.key
    for reroutes, hops, sent in ((-(10**9), 3, 2), (0, -(10**9), 0), (0, 10**9, 0)):
        seen = Seen()
        seen.reroutes = reroutes
        node.broadcast.seen.pop(name)
        node.broadcast.seen.put(name, seen)
        share = Share(1, 1, 1, CIRCLE - 1, 0)
        node.broadcast.handed.put((1, name, *share[2:]), Handed(said.data, share, hops))
        effects = node.broadcast.link_down(view, 1)
        assert len(effects) == sent, "a count that cannot be floods, hops that cannot be end"
        assert seen.flooded == bool(sent)


def test_an_index_that_forgot_what_is_held_is_made_anew_by_the_audit() -> None:
    """Whoever loses entries leaves the bytes, which alone say what is held."""
    holdings = Holdings(MemoryStore())
    holdings.append([seal((1, bytes(12)), n, [Draft(b"said")], time=0) for n in range(5)])
    index = holdings.store.index
    for place in list(index.shown)[3:]:
        del index.shown[place]
    holdings.on_timeout()
    assert len(holdings.places(0, TIME_MAX)) == len(holdings.store.index.shown) == 5
    mended = holdings.mended
    holdings.on_timeout()
    assert holdings.mended == mended


def test_an_index_that_contradicts_itself_is_made_anew_where_it_is_used() -> None:
    for use in range(4):
        store = MemoryStore()
        holdings = Holdings(store)
        records = [seal((1, bytes(12)), n, [Draft(b"said")], time=n) for n in range(9)]
        holdings.append(records[:8])
        store.index.order.clear()
        store.index.sums._times.clear()
        if use == 0:
            holdings.show(Window(lo=5))
        elif use == 1:
            holdings.show(Window(limit=3))
        elif use == 2:
            holdings.append(records[8:])
        holdings.doubt()
        for _ in range(3):
            holdings.on_timeout()
        count = (3, 3, 9, 8)[use]
        assert len(holdings.places(0, TIME_MAX)) == count == len(holdings)


@pytest.mark.parametrize("number", [-1, -(1 << 64), 1 << 64, 1 << 100])
def test_digest_can_be_sent_whatever_memory_holds(number: int) -> None:
    history = Topic(1).nodes[0]
    history.holdings.store.index.window = Window(number, 5)
    history.horizon.seconds = history.horizon.now = number
    history.holdings.store.index.sums._total = (number, number)
    digest = history.digest()
    assert convert(to_builtins(digest), Digest) == digest


@pytest.mark.parametrize("now", [-1, -(1 << 64), 1 << 64])
def test_publication_has_a_time_whatever_the_present_is_taken_for(now: int) -> None:
    topic = Topic(1)
    history = topic.nodes[0]
    history.horizon.now = now
    history.publish(topic.view(0), Draft(b"said"))
    assert [it.payloads(0, 1) for it in shown(history)] == [[b"said"]]


def test_damaged_publication_is_not_published_again() -> None:
    topic = Topic(2)
    history = topic.nodes[0]
    said = seal((0, bytes(12)), 0, [Draft(b"said")], time=3)
    history.horizon.now = history.horizon.lo = 10
    for damaged in (said.data[:-1], said.data[:-1] + b"x", b""):
        history.publisher.rejectable[said.key] = (damaged, 0)
        assert history.on_message(topic.view(0), Rejected("t", 1, said.key)) == []
    history.publisher.rejectable[said.key] = (said.data, 0)
    assert history.on_message(topic.view(0), Rejected("t", 1, said.key)) != []


def test_memory_that_was_corrupted_before_can_be_corrupted_again() -> None:
    """A false child may close a circle: following it never ended, and took all memory."""
    topic = Topic(1)
    for number in range(40):
        topic.publish(0, b"%d" % number)
    for seed in range(60):
        corrupt_history(topic.nodes[0], [0, 1, 2], stream(seed, "again"))


def test_every_kind_of_message_about_publications_is_drawn() -> None:
    drawn = [any_publication_message("t", (0, 1, 2), Random(seed)) for seed in range(400)]
    assert {type(it) for it in drawn} == {*PUBLICATION_MESSAGES, Held, NotHeld, Reviewed}
    codec = Codec(RingOverlay.messages)
    assert all(codec.decode(codec.encode(it)) == it for it in drawn)
