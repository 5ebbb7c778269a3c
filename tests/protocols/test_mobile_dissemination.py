"""Dissemination (Tables 4 and 5, amended): who gets what, how often, at what cost, from whom."""

from collections.abc import Callable
from random import Random

import pytest

from planaria.core.codec import Codec
from planaria.core.errors import CapacityExceeded
from planaria.core.ids import NodeId
from planaria.core.node import Deliver, LinkUp, Publish, Published, Subscribe
from planaria.lab.mobile.figures import TOPIC
from planaria.lab.mobile.variants import ORIENTATIONS, oriented
from planaria.protocols.mobile import dissemination
from planaria.protocols.mobile.dissemination import (
    LOCAL_MAX,
    MEMORY_TIMEOUTS,
    REPLAY_TIMEOUTS,
    STORE_MAX,
    Dissemination,
    Kept,
)
from planaria.protocols.mobile.heights import Heights
from planaria.protocols.mobile.link import Link
from planaria.protocols.mobile.messages import GENERATIONS_MAX, ITEMS_MAX, Beat, Item, padded
from planaria.protocols.mobile.node import MobileNode
from planaria.protocols.mobile.overlay import unwrap
from planaria.simulator.delays import INTERVAL
from planaria.simulator.trial import Spec, Trial, must_heal
from planaria.simulator.worlds.graphs import Edge, Graph, grid
from planaria.simulator.worlds.mobile import MovingOverlay
from planaria.studies.mobile.runs import SCRIPTED, ScriptedOverlay


def publish(trial: Trial, id: NodeId, payload: bytes) -> None:
    trial.simulator.command(id, Publish(TOPIC, payload))


def reached_by(overlay: MovingOverlay) -> list[int]:
    """How many have each publication."""
    book = overlay.world.book
    return [len(book.holders(it)) for it in book.published.values()]


@pytest.mark.parametrize(("echo", "sends"), [(True, 24), (False, 12)])
@pytest.mark.parametrize("orientation", list(ORIENTATIONS))
def test_one_publication_on_a_grid_then_silence(echo: bool, sends: int, orientation: str) -> None:
    """Erratum 13 and 15: with the amendment it is flooding, 2|E| sends, or |E| without echo."""
    for seed in range(5):
        overlay = oriented(orientation, "grid:3x3", echo=echo)
        trial = Trial(overlay, Spec(9, seed, "legitimate"))
        trial.simulator.run(500)
        publish(trial, seed, b"one")
        trial.simulator.run(4000)
        book, measures = overlay.world.book, overlay.world.measures
        assert measures.copies == sends
        assert len(book.holders(book.find(b"one"))) == 9
        trial.simulator.run(4000)
        assert measures.copies == sends


@pytest.mark.parametrize("orientation", list(ORIENTATIONS))
@pytest.mark.parametrize("graph", ["path:12", "ring:12", "grid:4x4", "star:9", "rgg:20:6"])
def test_every_subscriber_gets_every_publication_once(graph: str, orientation: str) -> None:
    overlay = oriented(orientation, graph, publications=6)
    outcome = must_heal(overlay, Spec(12, 3, "legitimate"))
    figures = outcome.metrics
    assert figures["delivered"] == 6 * figures["nodes"]
    assert figures["sends"] == 6 * figures["links"]
    assert (figures["missed"], figures["duplicated"], figures["acyclic"]) == (0, 0, True)


def test_publications_that_wait_behind_others_are_not_forgotten_unsent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A turn carries 16 and six nodes take turns: the last waits longer than one is kept."""
    monkeypatch.setattr(dissemination, "ITEMS_MAX", 16)
    overlay = MovingOverlay("complete:6")
    trial = Trial(overlay, Spec(6, 0, "legitimate"))
    for number in range(LOCAL_MAX):
        publish(trial, 0, b"%d" % number)
    trial.simulator.run(REPLAY_TIMEOUTS * INTERVAL)
    reached = reached_by(overlay)
    assert min(reached) == 1  # some did not get their turn while a publication is kept
    trial.simulator.run(2 * REPLAY_TIMEOUTS * INTERVAL)
    reached = reached_by(overlay)
    assert reached == [6] * LOCAL_MAX
    trial.simulator.run(2 * REPLAY_TIMEOUTS * INTERVAL)
    nodes = map(unwrap, trial.simulator.nodes.values())
    assert [len(it.layers[TOPIC].news.store) for it in nodes] == [0] * 6


def test_publisher_is_told_no_before_anything_unsent_is_forgotten() -> None:
    """More than a turn carries is published at every interval, until the store is full of it."""
    overlay = MovingOverlay("complete:6")
    trial = Trial(overlay, Spec(6, 0, "legitimate"))
    book = overlay.world.book

    def publish_too_much() -> None:
        for number in range(2 * STORE_MAX):
            publish(trial, 0, b"%d" % number)
            if number % 200 == 0:
                trial.simulator.run_interval()

    with pytest.raises(CapacityExceeded, match="wait to be sent: try again later"):
        publish_too_much()
    assert len(book.published) > STORE_MAX
    trial.simulator.run(STORE_MAX // ITEMS_MAX * 8 * INTERVAL)
    assert set(reached_by(overlay)) == {6}
    publish(trial, 0, b"later")


def test_relay_that_is_sent_more_than_it_can_keep_forgets_the_oldest_and_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A burst above the store of the hub through which all must pass: a stated loss, no storm."""
    monkeypatch.setattr(dissemination, "ITEMS_MAX", 4)
    monkeypatch.setattr(dissemination, "STORE_MAX", 16)
    overlay = MovingOverlay("star:7")
    trial = Trial(overlay, Spec(7, 1, "legitimate"))
    for number in range(70):
        publish(trial, number % 7, b"%d" % number)
    trial.simulator.run(2 * REPLAY_TIMEOUTS * INTERVAL)
    reached = reached_by(overlay)
    assert min(reached) < 7, "the burst was too small to fill the hub's store"
    nodes = map(unwrap, trial.simulator.nodes.values())
    assert [len(it.layers[TOPIC].news.store) for it in nodes] == [0] * 7
    publish(trial, 3, b"later")
    trial.simulator.run(8 * INTERVAL)
    assert reached_by(overlay)[-1] == 7


def two_grids(links: int) -> tuple[Graph, dict[Edge, int]]:
    """Two 4x4 grids side by side, and `links` links between them that come up at second 40."""
    left = grid(4, 4)
    right = [(a + 16, b + 16) for a, b in left.edges]
    places = tuple((x / 2 + side / 2, y) for side in (0, 1) for x, y in left.places)
    bridges = {(4 * row + 3, 16 + 4 * row): 40 for row in range(links)}
    return Graph(places, (*left.edges, *right)), bridges


@pytest.mark.parametrize("orientation", ["heights", "edge-bits"])
@pytest.mark.parametrize("links", [1, 2, 4])
def test_two_grids_that_ran_apart_merge(links: int, orientation: str) -> None:
    """Erratum 9: three states may deadlock from two links on; these do not."""
    graph, bridges = two_grids(links)
    overlay = SCRIPTED[orientation](graph, bridges)
    trial = Trial(overlay, Spec(32, links, "legitimate"))
    trial.simulator.run(800)
    if orientation == "heights":  # one side ran longer than the other
        for id in range(16):
            height = unwrap(trial.simulator.nodes[id]).layers[TOPIC].orientation
            assert isinstance(height, Heights)
            height.height += 50
            height.loud = 20
    publish(trial, 0, b"before, left")
    publish(trial, 31, b"before, right")
    trial.simulator.run(3000)
    book = overlay.world.book
    assert len(book.holders(book.find(b"before, left"))) == 16
    trial.simulator.run(300)  # the links come up
    publish(trial, 5, b"after")
    outcome = trial.run()
    assert outcome.failure is None
    assert outcome.metrics["delivered"] == 3 * 32
    assert outcome.metrics["acyclic"]
    assert outcome.metrics["links"] == 48 + links


def relay_goes(seed: int, *, goodbye: bool) -> tuple[Trial, Callable[[NodeId], bool]] | None:
    """p - q - r, q holds m and goes, at second 12 r links to p; None: q had its turn before."""
    line = Graph(((0, 0), (0.5, 0), (1, 0)), ((0, 1), (1, 2)))
    overlay = ScriptedOverlay(line, {(0, 2): 12})
    trial = Trial(overlay, Spec(3, seed, "legitimate"))
    publish(trial, 0, b"m")
    book = overlay.world.book
    publication = book.find(b"m")

    def has(id: NodeId) -> bool:
        return id in book.holders(publication)

    while not has(1):
        trial.simulator.run(1)
    relay = unwrap(trial.simulator.nodes[1]).layers[TOPIC]
    assert len(relay.news.input) == 1
    if goodbye:
        relay.leaving = 0  # no time to hand over
        trial.simulator.run(200)
    else:
        trial.simulator.remove(1)
    return None if has(2) else (trial, has)


@pytest.mark.parametrize("goodbye", [True, False])
def test_agreement_holds_when_a_relay_leaves_with_the_message(goodbye: bool) -> None:
    """Erratum 14: nobody would send m again; here p replays it to its new neighbour r."""
    gone = [it for seed in range(12) if (it := relay_goes(seed, goodbye=goodbye)) is not None]
    assert gone
    for trial, has in gone:
        trial.simulator.run(1500 - trial.simulator.tick)
        assert trial.run().failure is None
        assert has(2)


def test_lost_beats_lose_no_publication() -> None:
    """Items are sent again until the neighbour acknowledges them."""

    class Deaf:
        left = 40

        def apply(
            self, source: NodeId, target: NodeId, message: object, delays: list[int]
        ) -> list[int]:
            if isinstance(message, Beat) and message.items and self.left:
                self.left -= 1
                return []
            return delays

        def delay_max(self, ticks: int) -> int:
            return ticks

    overlay = MovingOverlay("path:6", publications=3)
    trial = Trial(overlay, Spec(6, 4, "legitimate"))
    trial.simulator.rules.append(Deaf())
    outcome = trial.run()
    assert outcome.failure is None
    assert outcome.metrics["delivered"] == 18
    assert outcome.metrics["sends"] == 3 * 5 + 40


# Nothing in a message names its publisher


def test_first_hop_from_a_publisher_looks_like_any_other_hop() -> None:
    """The same node publishes m, or hears m and passes it on: the observer sees the same beat."""

    def beat_of(*, publisher: bool) -> Beat:
        node = MobileNode(1, Random(7), padding=64)
        node.on_command(Subscribe(TOPIC))
        layer = node.layers[TOPIC]
        for peer in (2, 3):
            node.on_command(LinkUp(peer))
            other = Heights(peer, Random(peer))
            other.height = 5
            assert layer.orientation.link_up(peer, other.greet())
            layer.connect(peer, Link(replayed=True))
        if publisher:
            published, effect = node.on_command(Publish(TOPIC, b"secret"))
            assert isinstance(published, Published)
            assert isinstance(effect, Deliver)
            (given,) = effect.publications
            assert (published.publisher, published.sequence) == (given.publisher, given.sequence)
            assert (published.publisher, published.sequence, published.id) == (None, None, given.id)
        else:
            item = MobileNode(9, Random(8), padding=64)
            item.on_command(Subscribe(TOPIC))
            copy: Item = item.layers[TOPIC].publish(b"longer secret", Random(3))
            word = Heights(3, Random(3)).greet()
            node.on_message(Beat(TOPIC, 3, 1, None, word, (copy,)))
            node.on_message(Beat(TOPIC, 3, 2, None, (2, 5, 99, 1), ()))
        for effect in node.on_timeout():
            message = getattr(effect, "message", None)
            if getattr(effect, "target", None) == 2 and isinstance(message, Beat):
                return message
        raise AssertionError("no beat to the observer")

    own, relayed = beat_of(publisher=True), beat_of(publisher=False)
    assert (own.sender, own.word, own.serial) == (relayed.sender, relayed.word, relayed.serial)
    (mine,), (passed,) = own.items, relayed.items
    assert (mine.generation, len(mine.body)) == (passed.generation, len(passed.body))
    assert len(mine.id) == len(passed.id)


def test_padding_hides_the_size_and_nothing_is_lost() -> None:
    news = MobileNode(0, Random(0), padding=100)
    news.on_command(Subscribe(TOPIC))
    payloads = [b"", b"x", b"\0" * 98 + b"\x80", b"\0"]
    items = [news.layers[TOPIC].publish(it, Random(len(it))) for it in payloads]
    assert [item.payload for item in items] == payloads
    beats = [Beat(TOPIC, 1, 1, None, (0,), (item,)) for item in items]
    assert len({len(Codec(MovingOverlay.messages).encode(beat)) for beat in beats}) == 1


# How long copies and memories live


def news_with(generation: int) -> tuple[Dissemination, Item]:
    news, copy = Dissemination(), Item(b"i" * 16, generation, padded(b"x", 0))
    news.receive(copy, None, TOPIC)
    news.collect({}, Random(0))
    return news, copy


def test_copy_is_replayed_fifteen_times_from_link_to_link_and_no_more() -> None:
    """Each holder hands it to one that it meets when the one before is gone."""
    generation, holders = GENERATIONS_MAX, 0
    while True:
        news, copy = news_with(generation)
        outbox = news.replay()
        sent = news.batch(outbox, 0)
        if not sent:
            break
        assert [(it.id, it.generation) for it in sent] == [(copy.id, generation - 1)]
        generation, holders = sent[0].generation, holders + 1
    assert holders == GENERATIONS_MAX


@pytest.mark.parametrize("apart", [1, ITEMS_MAX])
def test_what_is_new_overtakes_what_is_replayed_and_probably_known(apart: int) -> None:
    """Two nodes share sixteen turns' publications, part, and publish some before they meet again
    and one after: that comes within 8 intervals, where all that is replayed takes 16."""
    overlay = MovingOverlay("path:2")
    trial = Trial(overlay, Spec(2, 0, "legitimate"))
    shared = 16 * ITEMS_MAX
    for number in range(shared):
        publish(trial, number % 2, b"shared %d" % number)
    trial.simulator.run(REPLAY_TIMEOUTS // 2 * INTERVAL)
    layers = [unwrap(trial.simulator.nodes[id]).layers[TOPIC] for id in range(2)]
    assert [len(layer.news.store) for layer in layers] == [shared] * 2
    for layer in layers:
        layer.lose(1 - layer.id)
    for number in range(2 * apart):
        publish(trial, number % 2, b"apart %d" % number)
    while not all(link.replayed for layer in layers for link in layer.links.values()):
        trial.simulator.run(1)
    publish(trial, 0, b"new")
    publish(trial, 1, b"new too")
    trial.simulator.run(8 * INTERVAL)
    assert reached_by(overlay)[shared:] == [2] * (2 * apart + 2)


def test_the_newest_publications_are_replayed_first() -> None:
    news = Dissemination()
    ids = [news.publish(b"%d" % number, Random(number), []).id for number in range(4)]
    news.collect({}, Random(0))
    late = news.publish(b"late", Random(4), []).id
    outbox = news.replay()
    news.collect({1: outbox}, Random(0))
    assert [it.id for it in news.batch(outbox, 0)] == [late, *reversed(ids)]


@pytest.mark.parametrize("wrong", [10**9, MEMORY_TIMEOUTS + 5, -(10**9), -MEMORY_TIMEOUTS - 1])
def test_time_that_cannot_be_is_taken_for_now_and_passes_like_any_other(wrong: int) -> None:
    """To remember for too long is better than to forget what was delivered, but not for ever."""
    news, copy = news_with(3)
    news.seen[copy.id] = news.now + wrong
    news.store[copy.id] = Kept(copy.generation, copy.body, news.now + wrong)
    for _ in range(REPLAY_TIMEOUTS):
        news.age([])
    assert copy.id in news.store
    news.age([])
    assert copy.id not in news.store
    for _ in range(MEMORY_TIMEOUTS - REPLAY_TIMEOUTS - 1):
        news.age([])
    assert news.receive(copy, None, TOPIC) == []
    news.age([])
    assert len(news.receive(copy, None, TOPIC)) == 1


@pytest.mark.parametrize("now", [10**9, -(10**9)])
def test_clock_that_jumps_forgets_nothing_that_was_delivered(now: int) -> None:
    news, copy = news_with(3)
    news.now = now
    for _ in range(5):
        news.age([])
    assert news.receive(copy, None, TOPIC) == []
    assert list(news.store) == [copy.id]
