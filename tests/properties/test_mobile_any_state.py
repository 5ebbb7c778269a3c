"""Counterexamples to 'from any state', each as the run that failed and as its cause."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from random import Random

import pytest

from mobile_lab import layers_of, violations
from planaria.core.chance import stream
from planaria.core.codec import Codec
from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.state import State, decode_state
from planaria.lab.mobile.three_state import ThreeState
from planaria.lab.mobile.variants import ORIENTATIONS, oriented
from planaria.protocols.mobile.dissemination import Dissemination, Kept, Outbox
from planaria.protocols.mobile.heights import GAP_MAX, HEIGHT_MAX, Heights
from planaria.protocols.mobile.layer import DRAIN_MAX, Layer
from planaria.protocols.mobile.legitimacy import LATE_MAX, QUIET_MAX
from planaria.protocols.mobile.link import ACKS, CLOSING, SERIALS, STALE_MAX, Link
from planaria.protocols.mobile.messages import (
    GENERATIONS_MAX,
    PAYLOAD_BYTES_MAX,
    STEM,
    Beat,
    Item,
    padded,
    receipt,
)
from planaria.protocols.mobile.orientation import LID_MAX
from planaria.protocols.mobile.overlay import unwrap
from planaria.simulator.engine import Entry
from planaria.simulator.links import SCHEDULERS
from planaria.simulator.schedule import NAMED, load_schedule, parse_schedule
from planaria.simulator.trial import Spec, Trial
from planaria.simulator.worlds.mobile import MovingOverlay

Seeds = Callable[[int, int], int]
Layers = Mapping[NodeId, Layer]

PAIR = {0: [1], 1: [0]}


def pair(seed: int, delay: str = "uniform:1:50") -> tuple[Trial, Layers]:
    """Two neighbours that are legitimate, and their layers."""
    trial = Trial(MovingOverlay("path:2"), Spec(2, seed, "legitimate", delay=delay))
    return trial, layers_of(trial)


def heights_of(layers: Layers) -> list[Heights]:
    found = [layers[id].orientation for id in (0, 1)]
    return [it for it in found if isinstance(it, Heights)]


def item(number: int, generation: int = GENERATIONS_MAX) -> Item:
    return Item(bytes([number]) * 16, generation, padded(b"%d" % number, 0))


# Publications lost by loss alone: acknowledgements that were repeated for ever


def test_loss_alone_loses_no_publication(seeds: Seeds) -> None:
    faults = parse_schedule(
        "at 0 for 300 loss rate=0.4\nat 10 publish count=1\nat 266 publish count=4"
    )
    for seed in range(seeds(12, 500)):
        spec = Spec(2, seed, "legitimate", faults, delay="fixed:23")
        outcome = Trial(MovingOverlay("path:2"), spec).run()
        assert (outcome.failure, outcome.metrics["missed"]) == (None, 0)


def test_receipt_acknowledges_neither_other_items_nor_another_beat() -> None:
    news, outbox = Dissemination(), Outbox()
    for number in (1, 2):
        news.receive(item(number), None, "t")
    outbox.waiting = {item(1).id: 3}
    news.batch(outbox, 7)
    for ack in (None, receipt(7, [item(2).id]), receipt(8, [item(1).id]), 7):
        outbox.acknowledged(ack)
        assert list(outbox.sent) == [item(1).id]
    outbox.acknowledged(receipt(7, [item(1).id]))
    assert outbox.sent == {}


def test_receipt_is_said_a_few_times_and_then_no_more() -> None:
    link = Link()
    link.got(9, (item(1),))
    said = [link.acknowledge() for _ in range(2 * ACKS)]
    assert said == [receipt(9, [item(1).id])] * ACKS + [None] * ACKS


@pytest.mark.parametrize(("damaged", "left"), [(1 << 70, ACKS), (ACKS + 1, ACKS), (-7, 0), (3, 3)])
def test_damaged_count_of_receipts_is_no_longer_than_a_right_one(damaged: int, left: int) -> None:
    link = Link(ack=7, acks=damaged)
    link.repair(known=False)
    assert [link.acknowledge() for _ in range(2 * ACKS)] == [7] * left + [None] * (2 * ACKS - left)


# Lost by a stale restart of a relay: links that outlived the process


def test_relay_that_restarts_with_an_old_state_loses_no_publication(seeds: Seeds) -> None:
    faults = parse_schedule("at 10 publish count=2\nat 12.3 restart count=1 state=stale")
    for seed in range(15, 15 + seeds(20, 500)):
        spec = Spec(3, seed, "legitimate", faults, delay="fixed:23")
        outcome = Trial(MovingOverlay("path:3"), spec).run()
        assert (outcome.failure, outcome.metrics["missed"]) == (None, 0)


# Heights that changed places for ever


@pytest.mark.parametrize("delay", ["fixed:50", "fixed:230", "fixed:400"])
def test_two_heights_far_apart_do_not_change_places_for_ever(delay: str) -> None:
    """In range, both views false, delays constant: words of 2 intervals ago did it, each time."""
    for seed in range(6):
        trial, layers = pair(seed, delay)
        low, high = heights_of(layers)
        low.height, low.views = 0, {1: (GAP_MAX + 1, high.lid)}
        high.height, high.views = 2 * GAP_MAX, {0: (254 * GAP_MAX, low.lid)}
        assert trial.run().failure is None


def test_nobody_comes_down_for_one_who_may_not_know_how_high_it_is() -> None:
    node = Heights(0, Random(0))
    node.height = 3 * GAP_MAX
    assert node.link_up(1, (0, 3, 9, 1))
    node.repair()
    node.hear(1, (0, 3, 9, 1))
    assert node.height == 3 * GAP_MAX
    node.hear(1, (0, 6, 9, 1), informed=True)
    assert node.height == 7


def test_word_is_informed_only_if_said_after_the_last_change_was_heard() -> None:
    trial, layers = pair(1)
    trial.simulator.run(1000)
    layer, peer = layers[0], layers[1]
    mine = layer.orientation
    assert isinstance(mine, Heights)
    word, since = layer.said
    assert word == mine.greet()

    def informed(heard: int | None) -> bool:
        serial = (peer.serial + 1) % SERIALS
        peer.serial = serial
        beat = Beat(layer.topic, 1, serial, None, peer.orientation.greet(), (), heard)
        layer.on_message(beat)
        return layer._informed(beat)

    asked = (None, since - 1, since, since + 1)
    serials = [None if it is None else it % SERIALS for it in asked]
    assert [informed(heard) for heard in serials] == [False, False, True, True]
    mine.height += 1
    assert not informed(since + 1)


# Variables that nobody repaired


@pytest.mark.parametrize("view", [-1, -2 * GAP_MAX, -(1 << 70), HEIGHT_MAX + 1, 1 << 70])
def test_view_that_no_height_can_be_does_no_harm(view: int) -> None:
    for seed in range(4):
        trial, layers = pair(seed, "fixed:50")
        for id, mine in enumerate(heights_of(layers)):
            mine.height, mine.views = 5, {1 - id: (view if id else 5, 1 << 80)}
        assert trial.run().failure is None


def test_what_is_out_of_range_is_repaired_before_anything_else() -> None:
    for orientation in ORIENTATIONS:
        overlay = oriented(orientation, "path:2")
        layer = unwrap(overlay.legitimate(2, Random(0))[0]).layers["layer/0"]
        layer.leave()
        layer.leaving = 1 << 70
        mine = layer.orientation
        if isinstance(mine, Heights | ThreeState):
            mine.views[1] = (-7, 1 << 70)
        if isinstance(mine, Heights):
            mine.loud = -5
        layer.repair()
        assert layer.leaving == DRAIN_MAX
        if isinstance(mine, Heights | ThreeState):
            assert mine.views[1] == (2 if isinstance(mine, ThreeState) else 0, LID_MAX)
        assert getattr(mine, "loud", 0) == 0


def test_flag_that_is_neither_true_nor_false_lets_nobody_be_refused_for_ever() -> None:
    for seed in (2, 3):
        trial, layers = pair(seed)
        heights_of(layers)[0].settled = 2
        layers[0].lose(1)
        layers[1].lose(0)
        assert trial.run().failure is None


WRONG = [
    Item(b"short", 3, b"x"),
    Item(b"i" * 16, -1, b"x"),
    Item(b"i" * 16, STEM + 5, b"x"),
    Item(b"i" * 16, 3, bytes(PAYLOAD_BYTES_MAX + 2)),
]


@pytest.mark.parametrize("wrong", WRONG, ids=["id", "negative", "generation", "body"])
def test_item_that_no_peer_would_decode_is_forgotten_and_the_others_are_sent(wrong: Item) -> None:
    news = Dissemination()
    news.receive(item(1), None, "t")
    news.store[wrong.id] = Kept(wrong.generation, wrong.body, 0)
    outbox = Outbox(waiting={wrong.id: wrong.generation, item(1).id: 99, b"never was": 0})
    sent = news.batch(outbox, 7)
    beat = Beat("t", 0, 7, None, (0,), sent)
    assert Codec(MovingOverlay.messages).decode(Codec(MovingOverlay.messages).encode(beat)) == beat
    assert [it.id for it in sent] == [item(1).id]
    assert list(news.store) == [item(1).id]


class OnTheWire:
    """Everything that is sent can be decoded."""

    kinds = ("send",)

    def __init__(self) -> None:
        self.codec = Codec(MovingOverlay.messages)

    def record(self, tick: int, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
        assert entry.message is not None
        assert self.codec.decode(self.codec.encode(entry.message)) == entry.message


@pytest.mark.parametrize("orientation", sorted(ORIENTATIONS))
def test_no_handler_raises_and_all_that_is_said_can_be_decoded(
    orientation: str, seeds: Seeds
) -> None:
    """Raw variables of every kind, written again and again between inputs."""
    for seed in range(seeds(12, 500)):
        rng = stream(seed, "raw")
        overlay = oriented(orientation, "complete:4", walk=rng.choice((0, 3)))
        trial = Trial(overlay, Spec(4, seed, "corrupt"), [OnTheWire()])
        for number in range(60):
            trial.simulator.run(rng.randrange(1, 60))
            for id in rng.sample(range(4), 2):
                overlay.corrupt(trial.simulator.nodes[id], range(4), rng)
            node = trial.simulator.nodes[rng.randrange(4)]
            command = (
                overlay.leave(node) if number % 10 == 9 else overlay.publication(node.id, number)
            )
            if command is not None:
                with suppress(UsageError):  # who has left publishes nothing
                    trial.simulator.command(node.id, command)


def variables_of(layer: Layer) -> dict[str, object]:
    """A copy of all variables of a layer and its parts."""
    found: dict[str, object] = {}
    for part in (layer, layer.orientation, layer.news):
        state = decode_state(part.state_type, part.snapshot())
        values = {name: getattr(state, name) for name in state.__struct_fields__}
        found |= {name: it for name, it in values.items() if not isinstance(it, State)}
    return found


def test_corruption_reaches_every_variable() -> None:
    """What it never changes, no test has tried; `turns` and `copies` are counted for reports."""
    for orientation in ORIENTATIONS:
        overlay = oriented(orientation, "path:3")
        (node,) = [it for it in overlay.legitimate(3, Random(0)) if it.id == 1]
        changed: dict[str, None] = {}
        for seed in range(40):
            before = variables_of(unwrap(node).layers["layer/0"])
            overlay.corrupt(node, [0, 1, 2], Random(seed))
            after = variables_of(unwrap(node).layers["layer/0"])
            changed.update({name: None for name in after if before[name] != after[name]})
        assert set(before) - set(changed) == {"leaving", "turns", "copies"}


def test_heals_from_any_state_under_any_fault_with_publications(seeds: Seeds) -> None:
    """All parameters are drawn apart from each other; what is sent must be decodable."""
    for seed in range(seeds(60, 5000)):
        rng = stream(seed, "mobile any state")
        n, graph = rng.randint(1, 8), rng.choice(("grid", "path", "ring", "star", "complete"))
        overlay = MovingOverlay(graph, publications=rng.choice((1, 4)), walk=rng.choice((0, 0, 3)))
        faults = load_schedule(rng.choice(sorted(NAMED)))
        delay = rng.choice(("fixed:1", "fixed:23", "fixed:50", "uniform:1:50"))
        start, scheduler = rng.choice(overlay.starts), rng.choice(SCHEDULERS)
        spec = Spec(n, seed, start, faults, scheduler, delay)
        outcome = Trial(overlay, spec, [OnTheWire()]).run()
        assert outcome.failure is None, spec.command(overlay)
        assert outcome.metrics["missed"] == 0
        assert outcome.intervals <= overlay.bound(n, 4.5)


# A bound that knows the graph


def test_bound_follows_the_graph_and_the_delay() -> None:
    def bound(graph: str, delay: float, walk: int = 0) -> int:
        overlay = MovingOverlay(graph, walk=walk)
        overlay.legitimate(29, Random(0))
        return overlay.bound(29, delay)

    assert bound("path:29", 4.5) > 2 * bound("grid:5x6", 4.5) > bound("path:2", 4.5)
    assert bound("path:29", 4.5) > 3 * bound("path:29", 0.5) / 2
    assert bound("complete:29", 0.5) == bound("ring:54", 0.5)  # a turn waits, or goes far
    assert bound("path:2", 0.5, walk=3) > bound("path:2", 0.5) + 100
    assert MovingOverlay("path:29").bound(29, 0.5) > 100  # not made yet: of any graph of 29


def test_path_of_29_heals_within_its_bound_though_not_within_200_intervals() -> None:
    overlay = MovingOverlay(publications=4)
    faults = load_schedule("corrupt")
    spec = Spec(29, 7000676, "corrupt", faults, "priority")
    outcome = Trial(overlay, spec).run()
    assert (outcome.failure, outcome.metrics["missed"]) == (None, 0)
    assert 200 < outcome.intervals <= overlay.bound(29, 4.5)


# Legitimate is what stays so


def found_by(change: Callable[[Layers], None]) -> list[tuple[str, NodeId | None]]:
    trial, layers = pair(3)
    trial.simulator.run(1000)
    assert not violations(layers, PAIR, [])
    change(layers)
    return [(it.invariant, it.node) for it in violations(layers, PAIR, [])]


def test_link_that_is_owed_publications_or_about_to_go_is_not_legitimate() -> None:
    def owed(layers: Layers) -> None:
        owed = Kept(GENERATIONS_MAX, item(1).body, layers[0].news.now)
        layers[0].news.store[item(1).id] = owed
        layers[0].links[1].replayed = False

    def silent(layers: Layers) -> None:
        layers[0].links[1].quiet = QUIET_MAX + 1

    def closing(layers: Layers) -> None:
        layers[0].links[1].state = CLOSING

    assert found_by(owed) == [("spreading", 0)]
    assert found_by(silent) == [("links", 0)]
    assert ("links", 0) in found_by(closing)


def test_silence_is_legitimate_for_as_long_as_a_beat_is_on_its_way() -> None:
    trial, layers = pair(3)
    trial.simulator.run(1000)
    beat = Beat("layer/0", 1, layers[1].serial, None, layers[1].orientation.greet(), ())
    for quiet in (LATE_MAX, LATE_MAX + 1):
        layers[0].links[1].quiet = quiet
        assert bool(violations(layers, PAIR, [(0, beat)])) == (quiet > LATE_MAX)


def test_old_beat_that_would_be_believed_is_not_legitimate() -> None:
    trial, layers = pair(3)
    trial.simulator.run(1000)
    heard = layers[0].links[1].heard
    assert heard is not None
    old = Beat("layer/0", 1, (heard - 9) % SERIALS, None, (2, 999_998, 7, 1), ())
    for stale in (STALE_MAX, STALE_MAX + 1):
        layers[0].links[1].stale = stale
        found = [it.invariant for it in violations(layers, PAIR, [(0, old)])]
        assert found == (["channel"] if stale > STALE_MAX else [])
