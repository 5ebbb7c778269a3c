"""Whatever memory can hold: no handler of a history raises, and everything is put right."""

from random import Random

import pytest
from msgspec import convert, to_builtins

from planaria.core.chance import any_integer, stream
from planaria.core.codec import Codec
from planaria.core.node import Send
from planaria.protocols.publications.antientropy import STRIKES_MAX, AntiEntropy
from planaria.protocols.publications.antientropy_messages import Digest, More, Sketch
from planaria.protocols.publications.exchange import Exchange
from planaria.protocols.publications.publication import TIME_MAX, Publication, key, sound
from planaria.protocols.publications.retention import Rejected, Retention
from planaria.protocols.publications.store import PublicationStore
from planaria.protocols.publications.streams import Stream, Streams
from planaria.protocols.publications.window import Window
from planaria.protocols.skipring.arbitrary_history import any_publication_message, corrupt_history
from planaria.protocols.skipring.arcs import Share
from planaria.protocols.skipring.broadcast import Handed, Seen
from planaria.protocols.skipring.labels import CIRCLE
from planaria.protocols.skipring.overlay import RingOverlay
from retention_lab import DAY, MINUTE, Topic

RETENTIONS = [
    Retention(),
    Retention(age=DAY),
    Retention(count=4),
    Retention(count=6, per_publisher=2),
    Retention(age=DAY, count=5, per_publisher=3),
]


@pytest.mark.parametrize("part", range(6))
def test_arbitrary_memory_raises_nothing_and_ends_in_agreement(part: int) -> None:
    for seed in range(part * 40, part * 40 + 40):
        chance = stream(seed, "arbitrary histories")
        topic = Topic(3, chance.choice(RETENTIONS))
        for number in range(chance.randrange(12)):
            topic.publish(number % 3, b"%d" % number)
        for node in topic.nodes:
            corrupt_history(node, (0, 1, 2), chance)
        for _ in range(30):
            act(topic, chance.randrange(3), chance)
        topic.pass_time(70 * MINUTE)
        held = [frozenset(node.store.publications()) for node in topic.nodes]
        assert len(set(held)) == 1, seed
        assert all(sound(p) for p in held[0])
        assert len({node.store.digest(node.store.window.lo) for node in topic.nodes}) == 1, seed
        topic.publish(0, b"and it works")
        assert all(b"and it works" in topic.shown(id) for id in range(3)) or held[0], seed
        assert [handed[b"and it works"] for handed in topic.handed] == [1, 1, 1], seed


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
        for lo in (0, topic.nodes[0].store.window.lo):
            effects += topic.nodes[0].on_digest(1, Digest(topic.now, lo, 77))
        for effect in effects:
            if isinstance(effect, Send):
                assert codec.decode(codec.encode(effect.message)) == effect.message
                sent += 1
    assert sent > 30


@pytest.mark.parametrize("strikes", [-(10**30), -5, 0, 10**30])
def test_sketches_come_into_doubt_however_low_the_count_of_strikes(strikes: int) -> None:
    one = AntiEntropy("t", 1, PublicationStore())
    one.peers[2] = (one.store.version, strikes)
    found = []
    for _ in range(STRIKES_MAX + 1):
        found.append(one._strike(2))
        one.peers[2] = (one.store.version, one.peers[2][1])
    assert any(found)


def test_exchange_with_impossible_numbers_is_dropped_before_it_speaks() -> None:
    for number, lo in ((-1, 0), (2**100, 0), (3, -1), (3, 2**100)):
        one = AntiEntropy("t", 1, PublicationStore())
        exchange = Exchange(number, lo, started=False)
        exchange.sent = 4
        one.exchanges[2] = exchange
        effects, _ = one.on_message(More("t", 2, number, 4, 2))
        assert not any(isinstance(e, Send) and isinstance(e.message, Sketch) for e in effects)
        one.on_timeout()
        assert one.exchanges == {}


def test_reroutes_and_hops_below_zero_do_not_keep_an_orphan_alive() -> None:
    topic = Topic(3)
    node, view = topic.nodes[0], topic.view(0)._replace(label=0, doubt=False)
    topic.publish(0, b"p")
    (said,) = node.store.publications()
    name = key(said)
    for reroutes, hops, sent in ((-(10**9), 3, 2), (0, -(10**9), 0), (0, 10**9, 0)):
        seen = Seen()
        seen.reroutes = reroutes
        node.broadcast.seen.pop(name)
        node.broadcast.seen.put(name, seen)
        share = Share(1, 1, 1, CIRCLE - 1, 0)
        node.broadcast.handed.put((1, name, *share[2:]), Handed(said, share, hops))
        effects = node.broadcast.link_down(view._replace(neighbours=[(1, 1), (2, 2), (3, 3)]), 1)
        assert len(effects) == sent, "a count that cannot be floods, hops that cannot be end"
        assert seen.flooded == bool(sent)


def test_stream_with_an_impossible_time_is_forgotten_wherever_it_stands() -> None:
    streams = Streams("t")
    for number in range(200):
        stream = Stream(0)
        stream.newest = TIME_MAX + 1 if number < 100 else 5
        streams.streams[number, 0] = stream
    for _ in range(20):
        streams.on_timeout(10)
    assert len(streams) == 0, "neither the impossible at the head nor the expired behind it stay"


def test_trie_over_what_is_shown_no_longer_is_made_anew_by_the_audit() -> None:
    """Whoever overwrites the log leaves the trie with the old one, to which all of it agrees."""
    store = PublicationStore()
    for number in range(5):
        store.insert(Publication(1, 0, number, 0, 0, b"said"))
    store.shown = dict(list(store.shown.items())[:3])
    assert store.audit(100) > 0
    assert list(store.trie(0).keys()) == sorted(store.shown)
    assert store.audit(100) == 0


@pytest.mark.parametrize("number", [-1, -(1 << 64), 1 << 64, 1 << 100])
def test_digest_can_be_sent_whatever_memory_holds(number: int) -> None:
    history = Topic(1).nodes[0]
    history.store.window = Window(number, 5)
    history.antientropy.clock = number
    history.store._digest = (history.store.version, max(0, min(number, TIME_MAX)), number)
    digest = history.digest()
    assert convert(to_builtins(digest), Digest) == digest


@pytest.mark.parametrize("now", [-1, -(1 << 64), 1 << 64])
def test_publication_has_a_time_whatever_the_present_is_taken_for(now: int) -> None:
    topic = Topic(1)
    history = topic.nodes[0]
    history.horizon.now = now
    history.publish(topic.view(0), b"said")
    assert [(it.payload, sound(it)) for it in history.store.publications()] == [(b"said", True)]


def test_damaged_publication_is_not_published_again() -> None:
    topic = Topic(2)
    history = topic.nodes[0]
    damaged = Publication(-5, 0, 0, 0, 3, b"said")
    history.publisher.rejectable[b"name"] = (damaged, 0)
    history.horizon.now = history.horizon.lo = 10
    assert history.on_message(topic.view(0), Rejected("t", 1, b"name")) == []


def test_memory_that_was_corrupted_before_can_be_corrupted_again() -> None:
    """A false child may close a circle: following it never ended, and took all memory."""
    topic = Topic(1)
    for number in range(40):
        topic.publish(0, b"%d" % number)
    for seed in range(60):
        corrupt_history(topic.nodes[0], [0, 1, 2], stream(seed, "again"))
