"""Who published? Guessed by observers of k nodes: from arrivals, their times, their sizes."""

from collections import Counter
from collections.abc import Callable
from math import sqrt
from random import Random
from typing import ClassVar

import pytest

from planaria.core.codec import Codec
from planaria.core.ids import NodeId
from planaria.core.node import LinkUp, Publish, Subscribe
from planaria.lab.mobile.anonymity import (
    Sighting,
    best_guess,
    bound,
    bound_of_first,
    first_sender,
    walk_ends,
    watched,
)
from planaria.lab.mobile.attack import (
    Log,
    Watch,
    by_lessons,
    by_turns,
    floods,
    knowing_when,
    replay,
    success,
)
from planaria.lab.mobile.figures import Eyes, guesses, log_of, turns
from planaria.protocols.mobile.arbitrary import forged
from planaria.protocols.mobile.dissemination import EMBARGO, Dissemination, Outbox
from planaria.protocols.mobile.messages import STEM, Beat, Item, MobileMessage, padded
from planaria.protocols.mobile.node import MobileNode
from planaria.simulator.engine import Entry
from planaria.simulator.trial import Spec, Trial
from planaria.simulator.worlds.graphs import parse_graph
from planaria.simulator.worlds.mobile import MovingOverlay

Seeds = Callable[[int, int], int]

TOPIC = "layer/0"
CASES = [("grid:4x4", (5,)), ("ring:16", (0,)), ("grid:4x4", (0, 15)), ("rgg:16:5", (3, 8))]


def neighbours_of(graph: str) -> dict[NodeId, list[NodeId]]:
    return parse_graph(graph, 16, Random(0)).neighbours()


def watch(
    graph: str, observers: tuple[NodeId, ...], seed: int, times: int = 8, walk: int = 0
) -> tuple[Eyes, dict[bytes, NodeId], Log]:
    """Every honest node publishes so many times, in random order, one by one."""
    overlay = MovingOverlay(graph, walk=walk)
    trial = Trial(overlay, Spec(16, seed, "legitimate"))
    eyes, rng = Eyes(observers, trial.simulator.nodes), Random(seed)
    trial.simulator.watch(eyes)
    publishers = [id for id in trial.simulator.nodes if id not in observers] * times
    rng.shuffle(publishers)
    published = {b"%d" % number: id for number, id in enumerate(publishers)}
    for payload, publisher in published.items():
        trial.simulator.command(publisher, Publish(TOPIC, payload))
        trial.simulator.run(rng.randrange(100, 300))
    trial.simulator.run(4000)
    return eyes, published, log_of(overlay)


# First arrivals


@pytest.mark.parametrize(("graph", "observers"), CASES[:3])
def test_observer_of_first_arrivals_does_no_better_than_the_bound(
    graph: str, observers: tuple[NodeId, ...]
) -> None:
    limit = bound_of_first(neighbours_of(graph), observers)
    lessons: list[Sighting] = []
    judged: list[Sighting] = []
    for seed, found in ((1, lessons), (2, judged)):
        eyes, published, _ = watch(graph, observers, seed)
        links = {payload: (seen[0][0], seen[0][2]) for payload, seen in eyes.seen.items()}
        found += [Sighting(links[payload], publisher) for payload, publisher in published.items()]
    assert all(it.link in watched(neighbours_of(graph), observers) for it in judged)
    assert 0 < first_sender(judged) <= limit < 0.5
    assert best_guess(lessons, judged) <= limit
    assert best_guess(judged, judged) <= limit  # not even knowing all the answers beforehand


# All arrivals, and all times


@pytest.mark.parametrize(("graph", "observers"), CASES[:3])
def test_replay_of_turns_is_what_the_observers_see(
    graph: str, observers: tuple[NodeId, ...]
) -> None:
    """The attack's model of a flood is the protocol: every publication looks like the replay of
    one that began with a turn of its publisher."""
    eyes, published, log = watch(graph, observers, 3, times=4)
    numbers = log.numbers()
    looks = {
        (id, tuple(sorted(replay(log, numbers, Watch(observers), start))))
        for start, id in enumerate(log.turns)
        if id not in observers
    }
    seen = {payload: tuple(sorted(eyes.seen[payload])) for payload in published}
    assert all((publisher, seen[payload]) in looks for payload, publisher in published.items())


def test_flood_after_a_walk_looks_like_one_that_began_elsewhere() -> None:
    """Those it walked through take part as if they had heard nothing before."""
    eyes, published, log = watch("grid:4x4", (5,), 4, times=4, walk=3)
    numbers = log.numbers()
    looks: dict[object, list[NodeId]] = {}
    for start, id in enumerate(log.turns):
        look = tuple(sorted(replay(log, numbers, Watch((5,)), start)))
        looks.setdefault(look, []).append(id)
    handed_over = dict.fromkeys(eyes.handed)
    began = [looks[tuple(sorted(eyes.seen[it]))] for it in published if it not in handed_over]
    publishers = [publisher for it, publisher in published.items() if it not in handed_over]
    elsewhere = [id not in ids for id, ids in zip(publishers, began, strict=True)]
    assert len(began) > 30
    assert sum(elsewhere) > len(began) / 2


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize(("graph", "observers"), CASES)
def test_one_who_knows_all_turns_does_no_better_than_the_bound(
    graph: str, observers: tuple[NodeId, ...], silent: bool
) -> None:
    log = turns(graph, seed=5, intervals=120)
    judged = floods(log, Watch(observers, silent))
    for walk in (0, 1, 4):
        ends = walk_ends(log.neighbours, observers, walk)
        limit = bound(log.neighbours, observers, walk)
        best = success(judged, ends, by_turns(judged, ends))
        assert 1 / len(ends) <= best <= limit + 1e-9
        if not walk:
            assert limit == 1.0


def test_several_arrivals_name_the_publisher_unless_it_walked() -> None:
    """The attack works: what the bound of first arrivals does not hold against."""
    observers = (0, 3, 12, 15)
    logs = [turns("grid:4x4", seed=seed, intervals=120) for seed in range(6)]
    seen = [floods(log, Watch(observers)) for log in logs]
    found = {}
    for walk in (0, 8):
        ends = walk_ends(logs[0].neighbours, observers, walk)
        lessons = by_lessons([flood for known in seen[1:] for flood in known], ends)
        knowing = success(seen[0], ends, by_turns(seen[0], ends))
        found[walk] = success(seen[0], ends, lessons), knowing
    assert found[0][0] > bound_of_first(logs[0].neighbours, observers) > 0.5
    assert found[0][1] > 0.8
    assert max(found[8]) <= bound(logs[0].neighbours, observers, 8) < 0.35
    assert knowing_when(logs[0], Watch(observers), 5) > 0.8


@pytest.mark.parametrize(("graph", "observers"), CASES[:3])
def test_measured_guesses_keep_to_the_bound(
    graph: str, observers: tuple[NodeId, ...], seeds: Seeds
) -> None:
    """In the simulator, at any time, with walks; at most four standard errors above."""
    named = [it for seed in range(seeds(2, 20)) for it in guesses(graph, observers, 4, seed)]
    limit = bound(neighbours_of(graph), observers, 4)
    assert sum(named) / len(named) <= limit + 4 * sqrt(limit * (1 - limit) / len(named))
    if observers == (0, 15):  # a ring with one observer that sends on gains nothing from walks
        plain = guesses(graph, observers, 0, 0)
        assert sum(plain) / len(plain) > 1.3 * limit


def test_ends_of_walks_are_those_of_a_stupid_walk() -> None:
    neighbours, observers, rng = neighbours_of("rgg:16:5"), (3, 8), Random(1)
    ends = walk_ends(neighbours, observers, 3)
    for publisher in (0, 5):
        counts: Counter[object] = Counter()
        for _ in range(20_000):
            here, there = publisher, rng.choice(neighbours[publisher])
            while there not in observers and rng.random() >= 1 / 3:
                here, there = there, rng.choice(neighbours[there])
            counts[(here, there) if there in observers else there] += 1
        assert sum(ends[publisher].values()) == pytest.approx(1, abs=1e-5)
        for end, share in ends[publisher].items():
            assert counts[end] / 20_000 == pytest.approx(share, abs=0.02)


def test_bound_is_one_where_an_observer_is_all_that_a_node_has() -> None:
    star = neighbours_of("star:16")
    assert bound(star, (0,), 8) == pytest.approx(1)
    assert bound(star, (1,), 8) < 0.1
    assert bound_of_first(star, (1,)) == pytest.approx(1 / 15)


# Sizes


def wire_sizes(padding: int) -> dict[int, list[NodeId]]:
    """Bytes of a beat with one publication -> who published it; everybody's are of one length."""

    class Scale:
        kinds = ("deliver",)
        codec = Codec(MovingOverlay.messages)
        weighed: ClassVar[dict[bytes, int]] = {}

        def record(self, tick: int, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
            if isinstance(entry.message, Beat) and len(entry.message.items) == 1:
                beat = entry.message
                short = Beat(beat.layer, beat.sender, 0, None, (0,), beat.items)
                self.weighed[beat.items[0].payload] = len(self.codec.encode(short))

    trial = Trial(MovingOverlay("grid:4x4", padding=padding), Spec(16, 1, "legitimate"))
    scale = Scale()
    trial.simulator.watch(scale)
    for id in trial.simulator.nodes:
        trial.simulator.command(id, Publish(TOPIC, bytes([id + 1]) * (20 * id + 1)))
        trial.simulator.run(1500)
    found: dict[int, list[NodeId]] = {}
    for payload, size in scale.weighed.items():
        found.setdefault(size, []).append(payload[0] - 1)
    return found


def test_sizes_name_the_publisher_unless_they_are_padded() -> None:
    """Everybody's publications have a length of their own, and one sees the length of beats."""
    assert sorted(map(len, wire_sizes(0).values())) == [1] * 16
    assert [sorted(ids) for ids in wire_sizes(512).values()] == [list(range(16))]


# All links


class AllLinks:
    """Who sent each publication first, over any link."""

    kinds = ("send",)

    def __init__(self) -> None:
        self.first: dict[bytes, NodeId] = {}

    def record(self, tick: int, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
        if isinstance(entry.message, Beat):
            for item in entry.message.items:
                self.first.setdefault(item.payload, entry.message.sender)


@pytest.mark.parametrize("walk", [0, 4])
def test_observer_of_all_links_knows_the_publisher(walk: int) -> None:
    """What nothing hides: whoever sees every link of a node sees it speak first."""
    graph = parse_graph("grid:3x3", 9, Random(0)).neighbours()
    assert bound(graph, tuple(id for id in range(9) if id != 4), walk) > 0.999
    trial, links = Trial(MovingOverlay("grid:3x3", walk=walk), Spec(9, 3, "legitimate")), AllLinks()
    trial.simulator.watch(links)
    published = {b"%d" % number: number % 9 for number in range(45)}
    for payload, publisher in published.items():
        trial.simulator.command(publisher, Publish(TOPIC, payload))
        trial.simulator.run(200)
    trial.simulator.run(2000)
    assert links.first == published


def test_walk_takes_as_many_steps_as_asked_for_and_costs_no_copy() -> None:
    overlay = MovingOverlay("grid:4x4", walk=4)
    trial = Trial(overlay, Spec(16, 1, "legitimate"))
    for number in range(300):
        trial.simulator.command(number % 16, Publish(TOPIC, b"%d" % number))
        trial.simulator.run(200)
    trial.simulator.run(6000)
    book, measures = overlay.world.book, overlay.world.measures
    assert measures.handed_over / 300 == pytest.approx(4, rel=0.15)
    assert measures.copies == 300 * 24
    assert all(len(book.holders(it)) == 16 for it in book.published.values())
    assert STEM > 15


def test_node_that_does_not_walk_floods_what_is_handed_to_it() -> None:
    news = Dissemination()
    copy = Item(b"i" * 16, STEM, padded(b"m", 0))
    assert len(news.receive(copy, 1, "t")) == 1
    news.repair()
    outboxes = {1: Outbox(), 2: Outbox()}
    news.collect(outboxes, Random(0))
    assert [box.waiting for box in outboxes.values()] == [{copy.id: 15}] * 2
    assert news.hidden == {}


def test_walk_that_is_lost_ends_in_a_flood_of_whoever_waited() -> None:
    """Nobody hears of it again: the one it walked through begins, after a while drawn at random."""
    waited = []
    for seed in range(20):
        news, rng = Dissemination(walk=3), Random(seed)
        item = news.publish(b"m", rng, [])
        boxes = {1: Outbox(), 2: Outbox()}
        news.collect(boxes, rng)
        assert sorted(map(len, (box.waiting for box in boxes.values()))) == [0, 1]
        timeouts = 0
        while item.id not in news.local:
            news.age(list(boxes.values()))
            timeouts += 1
        waited.append(timeouts)
        news.collect(boxes, rng)
        assert [box.waiting for box in boxes.values()] == [{item.id: 15}] * 2
    assert EMBARGO <= min(waited) < max(waited) <= 2 * EMBARGO


def test_who_vouches_for_a_link_is_neither_used_nor_kept() -> None:
    """The same messages, vouched for by their hop, by another, by nobody: the same node."""

    def states(vouching: Callable[[NodeId], NodeId | None]) -> list[tuple[object, bytes]]:
        node, rng = MobileNode(1, Random(1), walk=3), Random(5)
        node.on_command(Subscribe(TOPIC))
        for peer in (2, 3, 4):
            node.on_command(LinkUp(peer))
        found: list[tuple[object, bytes]] = []
        for _ in range(300):
            if rng.random() < 0.2:
                effects = node.on_timeout()
            else:
                message = forged(TOPIC, [2, 3, 4], rng)
                assert isinstance(message, MobileMessage)
                effects = node.on_message(message, vouching(message.sender))
            found.append((list(effects), node.snapshot()))
        return found

    vouched = states(lambda hop: hop)
    assert any(effects for effects, _ in vouched)
    assert vouched == states(lambda hop: 9 - hop) == states(lambda _: None)


def test_nothing_that_is_sent_names_anybody_but_the_hop() -> None:
    """Ids and bodies of publications are the same whoever makes them, given the same draws."""
    beats = []
    for publisher in (1, 8):
        node = MobileNode(publisher, Random(3), padding=32)
        node.on_command(Subscribe(TOPIC))
        item = node.layers[TOPIC].publish(b"secret", node.rng)
        beats.append(Beat(TOPIC, 5, 0, None, (0,), (item,)))
    assert beats[0] == beats[1]
