"""Raw damage reaches every variable of a node, whoever forgot it, and nothing that is none."""

import os
import subprocess
import sys
from random import Random

import pytest
from msgspec import Struct

from planaria.core.ids import NodeId
from planaria.core.node import Effects, Node
from planaria.core.overlay import Overlay
from planaria.simulator.damage import damage, mutated, slots_of, values_of
from planaria.simulator.schedule import load_schedule
from planaria.simulator.trial import Spec, Trial
from planaria.simulator.worlds.registry import REGISTERED, find_kind
from toys import ProbeOverlay


class World:
    """What all nodes share."""

    def __init__(self) -> None:
        self.now = 0


class Part:
    """What a node is made of; its setter repairs, its cache is nobody's business."""

    __slots__ = ("_cache", "_label")

    def __init__(self) -> None:
        self._label, self._cache = 0, {1: 2}

    @property
    def label(self) -> int:
        return self._label

    @label.setter
    def label(self, value: int) -> None:
        self._label = value % 4


class Made(Node):
    """Has a part, configuration, a shared world, and a counter that no `corrupt` knows."""

    def __init__(self, id: NodeId, world: World) -> None:
        super().__init__(id)
        self.parts = {"one": Part()}
        self.width = 7
        self.world = world
        self.ticks = 0

    def on_timeout(self) -> Effects:
        self.ticks += 1
        self.world.now += 1
        self.parts["one"]._cache = {self.ticks: 1}
        return []


class MadeOverlay(ProbeOverlay):
    def __init__(self) -> None:
        self.world = World()

    def spawn(self, id: NodeId, rng: Random) -> Node:
        return Made(id, self.world)

    def legitimate(self, n: int, rng: Random) -> list[Node]:
        return [self.spawn(id, rng) for id in range(n)]

    def corrupt(self, node: Node, ids: object, rng: Random) -> None:
        assert isinstance(node, Made)
        node.parts["one"].label = rng.randrange(100)


def test_it_reaches_caches_and_writes_past_setters_and_spares_configuration_and_the_world() -> None:
    overlay = MadeOverlay()
    nodes = {node.id: node for node in overlay.legitimate(2, Random(1))}
    first = values_of(slots_of(overlay, nodes[0]))
    hit, labels = set(), set()
    for seed in range(60):
        node = nodes[0]
        assert isinstance(node, Made)
        node.on_timeout()
        hit.update(damage(overlay, node, [0, 1], Random(seed), first))
        labels.add(node.parts["one"].label)
        assert (node.width, node.id, node.world.now) == (7, 0, seed + 1)
    assert hit == {".ticks", ".parts['one']._label", ".parts['one']._cache"}
    assert max(labels) > 1 << 60
    assert min(labels) < 0


class Shape:
    """Shared by all nodes, and shown by Python with where in memory it lies."""


class Shaped(Made):
    def __init__(self, id: NodeId, world: World) -> None:
        super().__init__(id, world)
        self.shape = (Shape(), 3)


def test_copy_that_lies_elsewhere_in_memory_is_no_other_value() -> None:
    overlay = MadeOverlay()
    node = Shaped(0, overlay.world)
    first = values_of(slots_of(overlay, node))
    hit = [damage(overlay, node, [0, 1], Random(seed), first) for seed in range(30)]
    assert ".shape" not in {path for paths in hit for path in paths}


def test_every_node_is_damaged_as_long_as_a_variable_has_another_value() -> None:
    overlay = MadeOverlay()
    node = overlay.legitimate(1, Random(1))[0]
    first = values_of(slots_of(overlay, node))
    node.on_timeout()
    assert all(damage(overlay, node, [0], Random(seed), first) for seed in range(60))


class Pair(Struct, frozen=True):
    one: int
    two: tuple[int, str]


@pytest.mark.parametrize(
    "value", [5, True, 0.5, b"abc", "abc", [1, 2], {3, 4}, {1: "a"}, (1, "b"), Pair(1, (2, "c"))]
)
def test_another_value_has_the_same_type(value: object) -> None:
    others = [mutated(value, [1, 2], Random(seed)) for seed in range(30)]
    assert {type(other) for other in others} == {type(value)}
    assert any(other != value for other in others)
    if isinstance(value, tuple):
        assert {tuple(map(type, other)) for other in others} == {(int, str)}


def test_sets_are_damaged_and_shown_alike_under_every_hash_seed() -> None:
    code = """if True:
        from random import Random
        from planaria.simulator.damage import _shown, mutated
        names = [{"alpha", "beta", "gamma", "delta"}, frozenset({b"a", b"bb", b"ccc"})]
        print([_shown(mutated(it, [1, 2], Random(seed))) for it in names for seed in range(20)])
        print([_shown(it) for it in names])
    """

    def said(hash_seed: str) -> str:
        env = {**os.environ, "PYTHONHASHSEED": hash_seed}
        words = [sys.executable, "-c", code]
        return subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout

    assert len(said("0")) > 1000
    assert said("0") == said("1") == said("4711")


@pytest.mark.parametrize("name", sorted(REGISTERED))
def test_the_same_seed_damages_the_same_variables_of_every_overlay(name: str) -> None:
    def injured() -> list[tuple[NodeId, object]]:
        seen: list[tuple[NodeId, object]] = []

        class Witness:
            kinds = ("fault",)

            def record(self, tick: int, kind: str, node: NodeId, entry: object, it: object) -> None:
                seen.append((node, it))

        overlay: Overlay = find_kind(name).make()
        spec = Spec(4, 1, "legitimate", load_schedule("damage"))
        trial = Trial(overlay, spec, [Witness()])
        trial.suffer()
        assert trial.nemesis.report[0].affected > 0
        return seen

    first = injured()
    assert len(first) > 1
    assert first == injured()
