"""Whatever the memory of a peer or a supervisor holds, no handler raises, and what it sends can be
sent: before the next timeout repairs anything, and from stored states too."""

from collections.abc import Callable, Iterator
from random import Random

import pytest

from planaria.core.chance import stream
from planaria.core.codec import Codec
from planaria.core.ids import NODE_ID_MAX, NodeId
from planaria.core.message import Message
from planaria.core.node import Command, Effects, LinkDown, Node, Send
from planaria.core.node import Unsubscribe as Leave
from planaria.protocols.ring.messages import Introduce
from planaria.protocols.ring.sorted_ring import HOPS_MAX, SortedRing
from planaria.protocols.skipring.arbitrary import any_message, any_raw_id, corrupt_database
from planaria.protocols.skipring.database import Database
from planaria.protocols.skipring.messages import GetConfiguration
from planaria.protocols.skipring.overlay import TOPIC, RingOverlay
from planaria.protocols.skipring.supervisor import Supervisor
from planaria.protocols.skipring.topic_supervisor import TopicSupervisor
from ring_lab import hear

N = 7
IDS = list(range(N + 2))  # the last two have died
CODEC = Codec(RingOverlay.messages)


def states(seed: int) -> Iterator[Node]:
    """All nodes of one corrupt ring of two supervisors."""
    rng = stream(seed, "totality")
    overlay = RingOverlay(supervisors=2, histories=False)
    nodes = overlay.legitimate(N, rng)
    for node in nodes:
        overlay.corrupt(node, [*range(N), *overlay.supervisors], rng)
    yield from nodes


def check(effects: Effects) -> None:
    for effect in effects:
        if isinstance(effect, Send):
            assert 0 <= effect.target <= NODE_ID_MAX
            assert CODEC.decode(CODEC.encode(effect.message)) == effect.message


def inputs(rng: Random) -> Iterator[Message | Command | None]:
    """A dozen messages, a failed send, a timeout and a leave-taking, in any order."""
    supervisors = RingOverlay(supervisors=2).supervisors
    given: list[Message | Command | None] = [None, LinkDown(any_raw_id(IDS, rng)), Leave(TOPIC)]
    given += [any_message(TOPIC, IDS, supervisors, rng) for _ in range(12)]
    yield from rng.sample(given, len(given))


def give(node: Node, given: Message | Command | None) -> Effects:
    if given is None:
        return node.on_timeout()
    return node.on_command(given) if isinstance(given, Command) else hear(node, given)


def test_no_handler_raises_whatever_memory_holds(seeds: Callable[[int, int], int]) -> None:
    """Raw variables, not through repairing setters; each kind of message comes to each kind of
    state before any timeout."""
    for seed in range(seeds(400, 20_000)):
        rng = stream(seed, "inputs")
        for node in states(seed):
            for given in inputs(rng):
                check(give(node, given))


def test_every_stored_state_can_be_taken_up(seeds: Callable[[int, int], int]) -> None:
    for seed in range(seeds(100, 5_000)):
        rng = stream(seed, "inputs")
        overlay = RingOverlay(supervisors=2, histories=False)
        for node in states(seed):
            fresh = overlay.spawn(node.id, rng)
            fresh.restore(node.snapshot())
            for given in inputs(rng):
                check(give(fresh, given))


@pytest.mark.parametrize("kind", ["entries", "places", "sums", "all"])
def test_database_damaged_in_place_is_repaired_where_it_is_used(kind: str) -> None:
    for seed in range(300):
        rng = stream(seed, "damage", kind)
        served = TopicSupervisor(TOPIC, 1000)
        served.database.entries = list(range(N))
        served.calm = 100
        damaged = Database()
        corrupt_database(damaged, IDS, rng)
        if kind in ("entries", "all"):
            served.database._entries = list(damaged._entries)
        if kind in ("places", "all"):
            served.database._labels = dict(damaged._labels)
        if kind in ("sums", "all"):
            served.database._sums = list(damaged._sums)
        for _ in range(8):
            missing: list[NodeId] = rng.sample(IDS, 2)
            sums = (rng.getrandbits(64), rng.getrandbits(64))
            asker = rng.choice(IDS)
            ask = GetConfiguration(TOPIC, asker, rng.choice([None, asker]), sums, missing)
            check(served.on_get_configuration(ask))
            check(served.on_link_down(rng.choice(IDS)))
        served.on_timeout()
        recorded = served.database.entries
        assert served.database.state().labels == {id: label for label, id in enumerate(recorded)}
        assert None not in recorded


def test_damage_found_by_a_handler_is_told_at_the_next_timeout() -> None:
    """Else those whom the repair moved would wait for the round robin."""
    served = TopicSupervisor(TOPIC, 1000)
    served.database.entries = list(range(N))
    served.database._entries[3] = None
    assert served.database.owner(3) == N - 1
    targets = {send.target for send in served.on_timeout()}
    assert targets == {0, 1, 2, 4, 5, 6}


@pytest.mark.parametrize("hops", [-1, -(10**12), HOPS_MAX])
def test_reference_with_impossible_hops_is_garbage(hops: int) -> None:
    """A negative number would let it travel for ever."""
    ring = SortedRing("test", 1, 10)
    ring.left = (5, 2)
    assert ring.on_message(Introduce("test", (3, 3), False, hops)) == []
    assert ring.on_message(Introduce("test", (3, 3), False, HOPS_MAX - 1)) != []


@pytest.mark.parametrize("label", [-1, 1 << 62, (1 << 64) - 1])
def test_orphans_reference_without_a_label_of_the_ring_is_garbage(label: int) -> None:
    """The wire carries any 64 bits as the label of a sorted ring."""
    overlay = RingOverlay()
    one = overlay.subscriber(overlay.legitimate(N, Random(1))[3])
    for orphan in (False, True):
        one.inquiry.version_age = one.inquiry.waiting_max
        one.inquiry.waiting = one.inquiry.waiting_max if orphan else 0
        one.on_timeout()
        assert (one.orphan is not None) == orphan
        assert one.on_ring_message(Introduce(TOPIC, (label, 9), False, 0)) == []
        assert one.on_ring_message(Introduce(TOPIC, (1 << 40, 9), False, 0)) != []


def test_supervisor_with_many_dead_beliefs_serves_at_once() -> None:
    """What it believes of closer supervisors counts only if they are closer."""
    far = Supervisor(1001, (1000, 1001))
    far.moved = {"a": (1001, 2), "b": (77, 2), "c": (1000, 1 << 100), "d": (1000, -1)}
    for topic in far.moved:
        effects = hear(far, GetConfiguration(topic, 5, None, (None, None), []))
        assert [type(e.message).__name__ for e in effects if isinstance(e, Send)] == ["SetData"]
