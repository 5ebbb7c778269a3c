"""States that the DHT, as it was, never or only late recovered from: each is a counterexample."""

from collections.abc import Callable

import pytest

from planaria.core.chance import stream
from planaria.core.codec import Codec
from planaria.core.node import LinkDown, Send
from planaria.protocols.dht.host_keys import KNOWN_MAX, RENEWAL_PERIOD
from planaria.protocols.dht.keys import KeySpace
from planaria.protocols.dht.legitimacy import RightRing
from planaria.protocols.dht.lookups import Pending
from planaria.protocols.dht.member import GROUP
from planaria.protocols.dht.messages import AskFinger
from planaria.protocols.dht.node import DhtNode
from planaria.protocols.dht.overlay import DhtOverlay, give_places
from planaria.protocols.ring.messages import Check
from planaria.protocols.ring.sorted_ring import SILENCE_MAX
from planaria.simulator.delays import parse_delay
from planaria.simulator.engine import Simulator
from planaria.simulator.trial import Spec, Trial
from raw_memory import live_through

TINY = KeySpace(4, lambda host: host)  # hosts sit at the key that is their id


def after_two_crashes(seed: int) -> int:
    """Intervals until the rest is legitimate; the last of the line crashes first, unnoticed."""
    rng, overlay = stream(seed, "crashes"), DhtOverlay()
    n, delay = rng.randint(4, 9), rng.choice(["fixed:1", "fixed:23", "fixed:50", "fixed:100"])
    simulator = Simulator(seed, delay=parse_delay(delay))
    simulator.detects_failed_sends = False
    for node in overlay.legitimate(n, simulator.rng):
        simulator.add(node)
    simulator.run(rng.randrange(1, 300))
    last = RightRing(range(n), overlay.space).line[-1]
    simulator.remove(last or 1)  # host 0 is the contact
    simulator.run(rng.randrange(500))
    simulator.remove(rng.choice([id for id in simulator.nodes if id]))
    for interval in range(100):
        simulator.run_interval()
        if not overlay.violations(simulator.states(), simulator.channel()):
            return interval
    raise AssertionError(f"seed {seed}: {n} hosts, {delay}")


def test_a_dead_host_dies_however_others_speak_of_it(seeds: Callable[[int, int], int]) -> None:
    """Both that pointed at it drop it at once, and a finger brought it back, for ever."""
    for seed in range(seeds(80, 2_000)):
        after_two_crashes(seed)


@pytest.mark.parametrize(("silent", "age"), [(SILENCE_MAX, 300), (SILENCE_MAX, -1), (-3, 256)])
def test_the_only_reference_is_called_however_long_it_seems_to_be_lost(
    silent: int, age: int
) -> None:
    """Given up at the first timeout, with an age at which nobody is called: both stayed alone."""
    simulator, overlay = Simulator(1), DhtOverlay(TINY)
    one, other = DhtNode(3, TINY, ()), DhtNode(8, TINY, ())
    one.dht.ring.right = TINY.ref(other.id)
    one.dht.ring.silence, one.dht.ring.lost = {other.id: silent}, {other.id: age}
    for node in (one, other):
        simulator.add(node)
    for _ in range(2 * SILENCE_MAX):
        simulator.run_interval()
    assert not overlay.violations(simulator.states(), simulator.channel())


def test_hosts_that_lost_each_other_do_not_wait_for_their_memory_to_end() -> None:
    """The two ends of the line, and those between them, had each other down as lost: 260."""
    trial = Trial(DhtOverlay(), Spec(7, 3, "legitimate", delay="fixed:23"))
    nodes = [node for node in trial.simulator.nodes.values() if isinstance(node, DhtNode)]
    for node in nodes:
        node.dht.ring.lost = {other.id: 5 for other in nodes if other is not node}
        node.dht.ring.ring = None
        node.dht.fingers.known = {}
    assert trial.violations()
    outcome = trial.run()
    assert outcome.failure is None
    assert outcome.intervals <= 20


@pytest.mark.parametrize("key", [-1, -(1 << 100), 16, 1 << 160])
def test_question_about_a_key_that_there_is_not_ends(key: int) -> None:
    node = DhtNode(1, TINY)
    node.dht.ring.learn((TINY.label(9), 9))
    node.dht.lookups.pending = {key: Pending(3, 1, 1)}
    node.on_timeout()
    assert node.dht.lookups.pending == {}


def test_label_that_is_no_label_is_repaired_before_a_lost_connection_is_bridged() -> None:
    nodes = {id: DhtNode(id, TINY) for id in (1, 5, 9)}
    give_places([node.dht for node in nodes.values()], TINY)
    nodes[1].dht.ring.label = None  # type: ignore[assignment]
    nodes[1].on_command(LinkDown(5))
    assert nodes[1].dht.successor == 9


def test_fingers_that_were_found_sound_are_repaired_at_the_next_timeout() -> None:
    nodes = {id: DhtNode(id, TINY) for id in (1, 5, 9, 12)}
    give_places([node.dht for node in nodes.values()], TINY)
    fingers = nodes[1].dht.fingers
    fingers.known = {0: 5, 1: -7, 70: 12}
    fingers.sound = (5, dict(fingers.known))
    (answer,) = nodes[1].on_message(AskFinger(5, 1), 5)
    assert isinstance(answer, Send)
    codec = Codec(DhtOverlay.messages)
    codec.decode(codec.encode(answer.message))  # what names no node does not travel
    nodes[1].on_timeout()
    assert fingers.known == {0: 5}


def test_places_are_hashed_anew() -> None:
    space = KeySpace()
    host_keys = (node := DhtNode(1, space)).dht.host_keys
    host_keys.keys[2], host_keys.labels[2] = 7, b"x"
    assert (host_keys.key(2), host_keys.ref(2)) == (7, (b"x", 2))
    for _ in range(RENEWAL_PERIOD):
        node.on_timeout()
    assert host_keys.ref(2) == space.ref(2)
    assert host_keys.key(2) == space.key(2)


def test_keys_remembered_are_bounded() -> None:
    host_keys = DhtNode(1, TINY).dht.host_keys
    for id in range(3 * KNOWN_MAX):
        host_keys.ref(id)
        assert len(host_keys.labels) <= KNOWN_MAX
        assert len(host_keys.keys) <= KNOWN_MAX


def test_a_false_key_that_is_remembered_is_not_legitimate() -> None:
    trial = Trial(DhtOverlay(), Spec(5, 1, "legitimate"))
    node = next(it for it in trial.simulator.nodes.values() if isinstance(it, DhtNode))
    host_keys = node.dht.host_keys
    for keys, labels in (({3: 7, 10**9: 7}, {}), ({}, {3: b"x", 10**9: b"y"})):
        host_keys.keys, host_keys.labels = keys, labels
        assert [(it.invariant, it.node) for it in trial.violations()] == [("place", node.id)]


def test_a_neighbour_about_to_be_dropped_is_not_legitimate() -> None:
    """A judge calls legitimate only what stays so while messages take half the silence allowed."""
    trial = Trial(DhtOverlay(), Spec(5, 1, "legitimate"))
    assert trial.violations() == []
    node = next(it for it in trial.simulator.nodes.values() if isinstance(it, DhtNode))
    for silent in (-1, 9):
        node.dht.ring.silence = dict.fromkeys([it[1] for it in node.dht.ring.neighbours()], silent)
        assert [it.invariant for it in trial.violations()] == ["silence"]


def test_whatever_memory_holds_no_handler_raises_and_all_it_says_can_be_sent(
    seeds: Callable[[int, int], int],
) -> None:
    for seed in range(seeds(60, 3_000)):
        live_through(DhtOverlay(), stream(seed, "raw"))


def test_neighbour_on_the_wrong_side_is_not_legitimate_although_it_is_before_and_after() -> None:
    """Found by `planaria verify dht`: of two hosts each is both for the other; one that had it on
    the wrong side was called legitimate and let go of it at its next input."""
    overlay = DhtOverlay()
    nodes = [DhtNode(id, overlay.space, (0, 1)) for id in (0, 1)]
    give_places([node.dht for node in nodes], overlay.space)
    states = {node.id: node.state() for node in nodes}
    assert not overlay.violations(states, [])
    for node in nodes:
        ring = node.dht.ring
        if ring.left is None:
            ring.left, ring.ring = ring.right, None
            assert (node.dht.predecessor, node.dht.successor) == (1 - node.id, 1 - node.id)
    wrong = overlay.violations({node.id: node.state() for node in nodes}, [])
    assert [it.invariant for it in wrong] == ["ring"]


def test_who_remembers_somebody_who_is_no_member_is_not_legitimate() -> None:
    """Should its neighbour go, it would ask nobody, and take that for an answer to come."""
    overlay = DhtOverlay()
    nodes = overlay.legitimate(4, stream(1, "handed"))
    states = {node.id: node.state() for node in nodes}
    assert not overlay.violations(states, [])
    assert isinstance(nodes[2], DhtNode)
    nodes[2].dht.ring.handed = {0: b"", 99: b""}
    states[2] = nodes[2].state()
    assert [(it.invariant, it.node) for it in overlay.violations(states, [])] == [("handed", 2)]


def test_whom_it_handed_on_it_asks_where_it_is_and_not_where_a_fault_put_it() -> None:
    node = DhtNode(3, TINY, ())
    node.dht.ring.handed = {7: b"\xff", -1: b""}
    asked = [it.message for it in node.on_timeout() if isinstance(it, Send) and it.target == 7]
    assert asked == [Check(GROUP, TINY.ref(3), TINY.ref(7)[0], False)]
