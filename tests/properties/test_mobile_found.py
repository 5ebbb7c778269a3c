"""What the hunt found in the mobile overlay, each as the trial that failed and as its cause."""

from collections.abc import Sequence
from itertools import product
from random import Random

import pytest

from mobile_lab import layers_of, violations
from planaria.core.ids import NodeId
from planaria.core.node import Deliver
from planaria.core.overlay import Violation
from planaria.lab.mobile.judges import ThreeStateJudge
from planaria.lab.mobile.three_state import ThreeState
from planaria.lab.mobile.variants import oriented
from planaria.protocols.mobile.dissemination import Dissemination, Outbox
from planaria.protocols.mobile.heights import Heights
from planaria.protocols.mobile.layer import SILENCE_MAX, Layer
from planaria.protocols.mobile.legitimacy import LayerJudge
from planaria.protocols.mobile.messages import Item, padded
from planaria.simulator.schedule import NAMED, load_schedule, parse_schedule
from planaria.simulator.trial import Spec, Trial
from planaria.simulator.worlds.mobile import MovingOverlay

FOUND = [
    (3, 1691, "corrupt", "fifo", "corrupt"),
    (4, 2956, "corrupt", "newest", "corrupt"),
    (8, 426, "corrupt", "fifo", "corrupt"),
    (9, 2578, "corrupt", "lifo", "corrupt"),
    (3, 1946, "legitimate", "priority", "slow"),
    (5, 557, "legitimate", "newest", "slow"),
    (8, 2672, "legitimate", "starve", "slow"),
    (4, 2016, "legitimate", "fifo", "churn"),
    (8, 1607, "legitimate", "starve", "churn"),
    (9, 2725, "legitimate", "starve", "restart"),
    (12, 68, "legitimate", "priority", "restart"),
    (2, 10057, "fresh", "priority", "crash"),
    (2, 2116, "corrupt", "newest", "bitflip"),
    (5, 4615, "corrupt", "priority", "churn"),
    (1, 50293, "corrupt", "newest", "bitflip"),
    (6, 9608, "legitimate", "starve", "restart"),
    (7, 21035, "legitimate", "starve", "restart"),
    (7, 21898, "legitimate", "starve", "churn"),
    (8, 11641, "legitimate", "starve", "churn"),
    (3, 79656, "corrupt", "priority", "slow"),
]


@pytest.mark.parametrize(("n", "seed", "start", "scheduler", "nemesis"), FOUND)
def test_trial_that_failed_heals(
    n: int, seed: int, start: str, scheduler: str, nemesis: str
) -> None:
    assert nemesis in NAMED
    spec = Spec(n, seed, start, scheduler=scheduler, faults=load_schedule(nemesis))
    outcome = Trial(MovingOverlay(), spec).run()
    assert outcome.failure is None


def test_what_was_delivered_is_remembered_by_a_clock_set_back() -> None:
    news = Dissemination()
    news.now = 150
    item = Item(b"i" * 16, 3, padded(b"once", 0))
    assert news.receive(item, 1, "t") == [Deliver.one("t", item.id, b"once")]
    news.now = 7
    for _ in range(20):
        news.age([])
    assert news.receive(item, 2, "t") == []


def test_who_restarts_without_memory_is_sent_back_what_it_had_sent() -> None:
    """It sent a publication and forgot it; whoever got it from there waits for its own turn."""
    faults = parse_schedule("at 3 restart share=0.5 state=none")
    spec = Spec(7, 50403, "legitimate", scheduler="priority", faults=faults)
    assert Trial(MovingOverlay(publications=3), spec).run().failure is None
    news = Dissemination()
    item = Item(b"i" * 16, 3, padded(b"once", 0))
    news.receive(item, 1, "t")
    news.lose(1)
    outboxes = {1: Outbox(), 2: Outbox()}
    news.collect(outboxes, Random(0))
    assert [list(outbox.waiting) for outbox in outboxes.values()] == [[item.id], [item.id]]


def test_where_nobody_is_left_nobody_moves() -> None:
    """The last node takes the clock of its world with it."""
    spec = Spec(1, 70167, scheduler="lifo", faults=load_schedule("crash"))
    assert Trial(MovingOverlay("waypoint", moving=20), spec).run().failure is None


def test_neighbour_slowed_down_eightfold_is_not_gone() -> None:
    """It beats every 8 intervals, and what it says takes up to 4."""
    assert SILENCE_MAX > 8 + 4
    faults = parse_schedule("at 1 for 30 slow count=1 factor=8")
    trial = Trial(MovingOverlay("path:2"), Spec(2, 1, "legitimate", faults=faults))
    while trial.simulator.tick < 3000:
        trial.simulator.run_interval()
        layers = layers_of(trial)
        assert not [
            it for it in violations(layers, {0: [1], 1: [0]}, []) if it.invariant == "links"
        ]


def test_beat_of_the_former_life_of_a_link_does_not_silence_the_new_one() -> None:
    overlay = MovingOverlay("path:2")
    trial = Trial(overlay, Spec(2, 3, "legitimate"))
    trial.simulator.run(1000)
    layers = layers_of(trial)
    last = layers[0].serial
    layers[0].lose(1)
    layers[1].lose(0)
    trial.simulator.run(400)
    layers[1].links[0].heard = last  # an old beat that came after the link was up again
    trial.simulator.run(200)
    assert layers[1].links[0].heard != last
    assert layers[1].links[0].stale <= 1


def test_waiting_for_a_beat_that_was_not_sent_yet_is_not_legitimate() -> None:
    overlay = MovingOverlay("path:2")
    trial = Trial(overlay, Spec(2, 3, "legitimate"))
    trial.simulator.run(1000)
    layers = layers_of(trial)
    layers[1].links[0].heard = layers[0].serial + 9
    found = violations(layers, {0: [1], 1: [0]}, [])
    assert [(it.invariant, it.node) for it in found] == [("order", 1)]


@pytest.mark.parametrize(("orientation", "modulus"), [("heights", 99), ("three-state", 3)])
def test_level_and_true_views_are_closed_under_turns_and_words(
    orientation: str, modulus: int
) -> None:
    """All heights and views of two neighbours near each other: what is right stays right."""
    layers = _neighbours(orientation)
    right = [state for state in product(range(3, 6), repeat=4) if _right(layers, state)]
    gaps = [(a - b, a - seen_by_b, b - seen_by_a) for a, b, seen_by_a, seen_by_b in right]
    steady = {(0, 0, 0), (0, 0, 1), (1, 0, 0), (1, 1, 0)}
    assert {tuple(gap % modulus for gap in three) for three in gaps} == steady
    for state in right:
        for turns, hears in product((0, 1), repeat=2):
            _set(layers, state)
            mover, hearer = layers[turns].orientation, layers[hears].orientation
            if mover.sink():
                mover.reverse()
            assert not _wrong(layers)
            hearer.hear(1 - hears, layers[1 - hears].orientation.greet())
            assert not _wrong(layers)


def _neighbours(orientation: str) -> dict[NodeId, Layer]:
    trial = Trial(oriented(orientation, "path:2"), Spec(2, 3, "legitimate"))
    layers = layers_of(trial)
    for id, layer in layers.items():
        mine = layer.orientation
        assert isinstance(mine, Heights | ThreeState)
        mine.lid = id
    return layers


def _set(layers: dict[NodeId, Layer], state: Sequence[int]) -> None:
    for id, place, view in zip((0, 1), state[:2], state[2:], strict=True):
        mine = layers[id].orientation
        assert isinstance(mine, Heights | ThreeState)
        three = isinstance(mine, ThreeState)
        setattr(mine, "val" if three else "height", place % 3 if three else place)
        mine.views[1 - id] = (view % 3 if three else view, 1 - id)


def _right(layers: dict[NodeId, Layer], state: Sequence[int]) -> bool:
    _set(layers, state)
    return not _wrong(layers)


def _wrong(layers: dict[NodeId, Layer]) -> list[Violation]:
    three = isinstance(layers[0].orientation, ThreeState)
    judge = ThreeStateJudge() if three else LayerJudge()
    found = violations(layers, {0: [1], 1: [0]}, [], judge)
    return [it for it in found if it.invariant != "links"]


def test_residue_far_from_ones_own_height_is_the_least_height_that_it_can_be() -> None:
    node = Heights(0, Random(0))
    node.height = 2
    assert node.link_up(1, (0, 0, 9, 1))
    node.height = 5
    for true in range(7):
        node.hear(1, (true % 3,))
        assert node.views[1] == (true, 9)


def test_edge_bits_agree_although_words_take_four_intervals_each_way() -> None:
    for n, seed in ((4, 20_022), (12, 20_048)):
        overlay = oriented("edge-bits", publications=2)
        spec = Spec(n, seed, "fresh", scheduler="priority")
        outcome = Trial(overlay, spec).run()
        assert outcome.failure is None
        assert outcome.metrics["acyclic"]


def test_publications_walk_and_heal_under_every_fault() -> None:
    for seed, nemesis in enumerate(sorted(NAMED)):
        overlay = MovingOverlay("grid:3x3", publications=2, walk=3)
        spec = Spec(9, seed, "legitimate", faults=load_schedule(nemesis))
        outcome = Trial(overlay, spec).run()
        assert outcome.failure is None
        assert outcome.metrics["missed"] == 0


@pytest.mark.parametrize(("n", "seed"), [(3, 16820), (5, 28950)])
def test_what_came_late_from_a_former_life_of_a_peer_reaches_everybody(n: int, seed: int) -> None:
    """Its receiver took it that the peer has it; the peer had restarted without memory."""
    spec = Spec(n, seed, "corrupt", scheduler="priority", faults=load_schedule("restart"))
    outcome = Trial(MovingOverlay(publications=4), spec).run()
    assert (outcome.failure, outcome.metrics["missed"]) == (None, 0)


@pytest.mark.parametrize("seed", [1605, 1894, 2489])
def test_publisher_that_restarts_within_its_second_is_not_owed_its_own_again(seed: int) -> None:
    """The books went by seconds, in which it began no later than it had published."""
    faults = parse_schedule("at 0.5 publish count=2\nat 1 restart share=0.5 state=kept")
    outcome = Trial(MovingOverlay(), Spec(2, seed, "legitimate", faults)).run()
    assert outcome.failure is None
