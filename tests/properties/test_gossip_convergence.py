"""The gossip overlay heals from any state, stays healed, and then sends no parasites."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from msgspec import Struct

from gossip_world import World, chain_wishes
from planaria.core.chance import stream
from planaria.core.node import Publish
from planaria.protocols.gossip.arbitrary import corrupt_process, forge_message
from planaria.protocols.gossip.messages import SLOWEST, Event, Found, Gone, Shuffle, Unsubscription
from planaria.protocols.gossip.overlay import GossipOverlay
from planaria.protocols.gossip.parameters import Parameters
from planaria.simulator.links import SCHEDULERS
from planaria.simulator.schedule import NAMED, load_schedule, parse_schedule
from planaria.simulator.trial import Spec, Trial, must_heal

Seeds = Callable[[int, int], int]

ROOT = Path(__file__).resolve().parents[2]

NEMESES = [name for name in NAMED if name not in ("none", "skew", "bitflip")]


class Drawn(Struct, frozen=True):
    """A trial of a campaign, each part of it drawn by itself."""

    n: int
    scheduler: str
    delay: str
    groups: str
    publications: int
    noticed: bool

    def trial(self, seed: int) -> Trial:
        """Corrupt tables, publications before and while they heal, failed sends noticed or not."""
        text = f"at 0.5 publish count={self.publications}\nat 3 publish count={self.publications}"
        overlay = GossipOverlay(self.groups)
        spec = Spec(
            self.n,
            seed,
            scheduler=self.scheduler,
            delay=self.delay,
            intervals=overlay.bound(self.n, SLOWEST),
            faults=parse_schedule(text if self.publications else ""),
        )
        trial = Trial(overlay, spec)
        trial.simulator.detects_failed_sends = self.noticed
        return trial


def draw(seed: int) -> Drawn:
    rng = stream(seed, "gossip", "convergence")
    n = rng.randrange(1, 21)
    return Drawn(
        n,
        rng.choice(SCHEDULERS),
        rng.choice(["uniform:1:50", "fixed:1", "fixed:23", "fixed:50"]),
        rng.choice(["", "", str(n), f"1,{n}"]),
        rng.choice([0, 4]),
        rng.random() < 0.7,
    )


def test_converges_from_arbitrary_tables_and_messages_under_every_scheduler(seeds: Seeds) -> None:
    """States are drawn by the overlay: impossible values in every variable, ghosts, too many."""
    for seed in range(seeds(8, 1000)):
        outcome = draw(seed).trial(seed).run()
        assert outcome.failure is None, (seed, draw(seed), outcome.failure)


def test_campaign_draws_every_pair_of_parameters() -> None:
    """Parameters that share a factor of the seed leave half of the combinations out."""
    drawn = [draw(seed) for seed in range(1000)]
    parity = {(it.n % 2, it.scheduler, it.delay) for it in drawn}
    assert len(parity) == 2 * len(SCHEDULERS) * 4
    rest = {(it.scheduler, bool(it.groups), it.publications, it.noticed) for it in drawn}
    assert len(rest) == len(SCHEDULERS) * 2 * 2 * 2


def test_converges_when_all_join_at_once(seeds: Seeds) -> None:
    for seed in range(seeds(5, 100)):
        must_heal(GossipOverlay(), Spec(n=5 + 9 * seed % 60, seed=seed, start="fresh"))


@pytest.mark.parametrize("nemesis", NEMESES)
def test_heals_after(nemesis: str, seeds: Seeds) -> None:
    for seed in range(seeds(1, 50)):
        faults = load_schedule(nemesis)
        must_heal(GossipOverlay(), Spec(seeds(16, 24), seed, "legitimate", faults=faults))


def test_legitimate_configuration_stays_legitimate(seeds: Seeds) -> None:
    for seed in range(seeds(3, 100)):
        rng = stream(seed, "gossip", "closure")
        n, scheduler = rng.randrange(1, 40), rng.choice(SCHEDULERS)
        spec = Spec(n, seed, "legitimate", scheduler=scheduler, closure=100)
        assert must_heal(GossipOverlay(), spec).intervals == 0


def test_heals_while_a_seventh_of_all_messages_is_lost() -> None:
    faults = parse_schedule("at 0 for 60 loss rate=0.15\nat 20 publish count=20")
    must_heal(GossipOverlay(), Spec(30, 1, faults=faults))


def random_hierarchy(rng: Random, n: int) -> dict[int, list[str]]:
    """`n` processes with one or two topics each in a random tree of topics, with gaps."""
    topics = [""]
    for _ in range(8):
        above = rng.choice(topics)
        topics.append(f"{above}/{rng.choice('abc')}".lstrip("/"))
    return {id: rng.sample(topics, rng.choice([1, 1, 2])) for id in range(n)}


def test_no_parasites_on_any_level_of_random_hierarchies_once_legitimate(seeds: Seeds) -> None:
    """Random trees; tables corrupted, processes crashed and joined; then one event per topic.

    With g as large as the groups every member relays: what is missing is missing in the tables.
    """
    for seed in range(seeds(1, 200)):
        rng = Random(seed)
        wishes = random_hierarchy(rng, 30)
        world = World(wishes, seed=seed, tables=False, default=Parameters(g=64))
        world.run(5)
        topics = sorted({topic for node in world.processes for topic in node.groups})
        for node in world.processes:
            corrupt_process(node, sorted(wishes), topics, rng)
        for _ in range(60):
            target = rng.randrange(30)
            world.simulator.inject(target, forge_message(sorted(wishes), topics, rng))
        world.crash(rng.sample(range(3, 30), 5))
        world.simulator.add(world.make(99, [topics[-1]]))
        world.heal(300)
        before = world.parasites()
        for number, topic in enumerate(topic for topic in topics if topic):
            expected = sorted(node.id for node in world.processes if node.interested(topic))
            publishers = [node.id for node in world.processes if topic in node.groups]
            if publishers:
                payload = f"{seed}.{number}".encode()
                got = world.publish(rng.choice(publishers), topic, payload, intervals=8)
                assert got == expected, (seed, topic)
        assert world.parasites() == before


# Legitimacy names what is wrong

COUNTED_4 = tuple((hashed, 0) for hashed in range(1, 5))  # four that are no members, in a sketch


def broken(change: Callable[[World], None]) -> set[tuple[str, int | None]]:
    world = World(chain_wishes(4, 6, 8))
    assert world.wrong() == []
    change(world)
    return {(it.invariant, it.node) for it in world.wrong()}


def set_view(world: World, id: int, topic: str, view: dict[int, int]) -> None:
    world[id].groups[topic].membership.view = view


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda world: set_view(world, 5, "a/b", {5: 0, 6: 0}), ("view", 5)),
        (lambda world: set_view(world, 5, "a/b", {0: 0, 6: 0}), ("view", 5)),
        (lambda world: set_view(world, 5, "a/b", {77: 0, 6: 0}), ("view", 5)),
        (lambda world: set_view(world, 5, "a/b", {}), ("view", 5)),
        (lambda world: world[5].groups["a/b"].links.contacts.clear(), ("links", 5)),
        (lambda world: world[5].groups["a/b"].links.contacts.update({12: ("a", 0)}), ("links", 5)),
        (lambda world: world[12].groups["a/b/c"].links.contacts.update({0: ("a", 0)}),
         ("links", 12)),
        (lambda world: setattr(world[5].groups["a/b"].membership, "size", 100), ("size", 5)),
        (lambda world: world[5].groups.clear(), ("groups", 5)),
        (lambda world: world[5].neighbours.view.clear(), ("view", 5)),
        (lambda world: world.simulator.inject(5, Found(((0, "a/b", 0),))), ("channel", 5)),
        (lambda world: world.simulator.inject(5, Shuffle("a", 1, ((77, 0),), (), (), None)),
         ("channel", 5)),
        (lambda world: world.simulator.inject(5, Gone("a/b", 6)), ("channel", 5)),
        (lambda world: world.simulator.inject(5, Unsubscription("a/b", 6, ())), ("channel", 5)),
        (lambda world: world.simulator.inject(5, Shuffle("a/b", 6, (), COUNTED_4, (), None)),
         ("size", None)),
        (lambda world: world[5].groups["a/b"].membership.sketch.update(COUNTED_4), ("size", None)),
        (lambda world: world[5].groups["a/b"].membership.sketch.clear(), ("size", 5)),
        (lambda world: setattr(world[5].neighbours, "size", 1), ("size", 5)),
        (lambda world: world[5].neighbours.sketch.clear(), ("size", 5)),
        (lambda world: world[5].groups["a/b"].links.contacts.update({0: ("a", -1)}), ("links", 5)),
        (lambda world: world[5].groups["a/b"].links.contacts.update({0: ("a", 25)}), ("links", 5)),
        (lambda world: world.simulator.inject(5, Event("a", "a", b"x", b"", 0, 0, 0, 1)),
         ("events", 5)),
    ],
)  # fmt: skip
def test_legitimacy_names_the_broken_invariant_and_the_process(
    change: Callable[[World], None], expected: tuple[str, int | None]
) -> None:
    assert expected in broken(change)


def test_one_false_hash_of_many_members_is_within_the_error_of_a_sketch() -> None:
    """Six members may be taken for seven: a dead one is not forgotten at once."""
    assert not broken(lambda world: world.simulator.inject(5, Gone("a/b", 77)))
    assert not broken(
        lambda world: world.simulator.inject(5, Shuffle("a/b", 6, (), COUNTED_4[:1], (), None))
    )


def test_a_sketch_too_many_in_a_large_group_shows_in_the_smallest_hashes() -> None:
    """Of 300 members 128 hashes are known; as many smaller ones say that there are far more."""
    world = World({id: ["a"] for id in range(300)})
    assert world.wrong() == []
    tiny = tuple((hashed, 0) for hashed in range(128))
    world.simulator.inject(5, Shuffle("a", 6, (), tiny, (), None))
    assert [it.invariant for it in world.wrong()] == ["size"]


def test_legitimacy_sees_a_group_in_two_halves() -> None:
    world = World({id: ["a"] for id in range(8)})
    for id in range(8):
        set_view(
            world, id, "a", {other: 0 for other in range(8) if other != id and other % 2 == id % 2}
        )
    assert {it.invariant for it in world.wrong()} == {"connected"}


def test_same_seed_gives_the_same_run_under_every_hash_seed() -> None:
    code = (
        "from planaria.protocols.gossip.overlay import GossipOverlay\n"
        "from planaria.simulator.trial import Spec, Trial\n"
        "t = Trial(GossipOverlay(), Spec(14, 3)); o = t.run()\n"
        "print(o.intervals, o.messages, [n.snapshot() for n in t.simulator.nodes.values()])\n"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT / "src")},
        ).stdout
        for hash_seed in ("0", "7")
    ]  # fmt: skip
    assert runs[0] == runs[1] != ""


def test_events_during_convergence_are_never_delivered_twice(seeds: Seeds) -> None:
    for seed in range(seeds(3, 100)):
        faults = parse_schedule(
            "at 0 publish count=30\nat 3 corrupt share=1\nat 5 publish count=30"
        )
        must_heal(GossipOverlay(), Spec(20, seed, faults=faults))


def test_publishing_on_every_topic_of_the_legitimate_overlay_reaches_all_interested() -> None:
    overlay = GossipOverlay()
    world = World({id: overlay.interests(id) for id in range(40)},
                  supertopics={"e/f": ["a/g"]})  # fmt: skip
    for number, topic in enumerate(["a", "a/b", "a/b/c/d", "e", "e/f", "a/g"]):
        publisher = world.members(topic)[0]
        expected = [node.id for node in world.processes if node.interested(topic)]
        world.simulator.command(publisher, Publish(topic, bytes([number])))
        world.run(4)
        assert sorted(world.deliveries.of[bytes([number])]) == expected
    assert world.parasites() == 0
