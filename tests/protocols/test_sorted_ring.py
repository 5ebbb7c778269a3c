"""BuildRing as a protocol of its own: Lemma 4, from arbitrary states, over any ordered label."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from random import Random

import pytest

from planaria.core.chance import combination
from planaria.core.ids import NodeId, stable_hash
from planaria.core.message import Message
from planaria.core.node import Effects, Node, Send
from planaria.core.overlay import Channel, Overlay, Violation
from planaria.core.state import State
from planaria.protocols.ring.messages import Check, Introduce, Ref, Remove, RingLabel, RingMessage
from planaria.protocols.ring.sorted_ring import (
    HOPS_MAX,
    LOST_AGE_MAX,
    LOST_MAX,
    SILENCE_MAX,
    SortedRing,
    SortedRingState,
)
from planaria.simulator.engine import Simulator
from planaria.simulator.links import SCHEDULERS
from planaria.simulator.schedule import load_schedule, parse_schedule
from planaria.simulator.trial import Spec, must_heal

SIZES = range(1, 13)


class RingNodeState(State):
    """The member's."""

    ring: SortedRingState


class RingNode(Node):
    """A node that is nothing but a member of one sorted ring."""

    state_type = RingNodeState

    def __init__(self, id: NodeId, label: RingLabel) -> None:
        super().__init__(id)
        self.ring = SortedRing("test", id, label)

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        return self.ring.on_message(message) if isinstance(message, RingMessage) else ()

    def on_timeout(self) -> Effects:
        return self.ring.on_timeout()


class RingOverlay(Overlay):
    """Rings over hashed byte labels (as in a DHT), or over small, colliding integers."""

    name = "ring-test"
    calm = SILENCE_MAX + 2  # a neighbour found late may still be dropped for its silence before

    def __init__(self, *, hashed: bool) -> None:
        self.hashed = hashed

    def label(self, id: NodeId) -> RingLabel:
        if self.hashed:
            return stable_hash("host", id).to_bytes(20, "big")
        return stable_hash("host", id) % 8  # many equal labels: the order falls back to ids (E3)

    def spawn(self, id: NodeId, rng: Random) -> RingNode:
        node = RingNode(id, self.label(id))
        if id:
            node.ring.learn((self.label(0), 0))
        return node

    def expected(self, ids: Sequence[NodeId]) -> list[tuple[Ref, Ref | None, Ref | None]]:
        """The one right ring, from sorting alone: (member, predecessor, successor)."""
        line = sorted((self.label(id), id) for id in ids)
        if len(line) == 1:
            return [(line[0], None, None)]
        return [
            (ref, line[place - 1], line[(place + 1) % len(line)]) for place, ref in enumerate(line)
        ]

    def legitimate(self, n: int, rng: Random) -> list[Node]:
        nodes: list[Node] = []
        line = self.expected(range(n))
        for place, ((label, id), before, after) in enumerate(line):
            node = RingNode(id, label)
            first, last = place == 0, place == len(line) - 1
            node.ring.left = None if first else before
            node.ring.right = None if last else after
            node.ring.ring = before if first else after if last else None
            nodes.append(node)
        return nodes

    def corrupt(self, node: Node, ids: Sequence[NodeId], rng: Random) -> None:
        """Arbitrary references with arbitrary labels; `right` keeps the graph connected."""
        assert isinstance(node, RingNode)

        def wrong_label() -> RingLabel:
            return self.label(rng.choice(ids))

        after = ids[(list(ids).index(node.id) + 1) % len(ids)]
        node.ring.right = (wrong_label(), after)
        for side in ("left", "ring"):
            setattr(node.ring, side, rng.choice([None, (wrong_label(), rng.choice(ids))]))
        heard = rng.sample(ids, rng.randint(1, len(ids)))
        node.ring.silence = {id: rng.randrange(-9, 2 * SILENCE_MAX) for id in heard}
        ages = (-1, 0, 100, LOST_AGE_MAX - 1, LOST_AGE_MAX, 1 << 40)
        many = rng.randint(0, min(len(ids), 2 * LOST_MAX))
        node.ring.lost = {id: rng.choice(ages) for id in rng.sample(ids, many)}
        node.ring.handed = {id: wrong_label() for id in rng.sample(ids, rng.randint(0, len(ids)))}

    def forge(self, ids: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message]:
        ref = (self.label(rng.choice(ids)), rng.choice(ids))
        garbage: list[Message] = [
            Check("test", ref, self.label(rng.choice(ids)), rng.random() < 0.5),
            Introduce("test", ref, rng.random() < 0.5, rng.randrange(10)),
            Introduce("test", (b"\x01" if not self.hashed else 7, 1), False, 0),
        ]
        return rng.choice(ids), rng.choice(garbage)

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        found = []
        for (label, id), before, after in self.expected(sorted(states)):
            state = states[id]
            assert isinstance(state, RingNodeState)
            member = SortedRing("test", id, label)
            member.load(state.ring)
            if (member.predecessor, member.successor) != (before, after):
                detail = f"{member.neighbours()}, should be {before}, {after}"
                found.append(Violation("ring", id, detail))
        for target, message in channel:
            ref = getattr(message, "ref", getattr(message, "sender", None))
            if target in states and ref is not None and ref[0] != self.label(ref[1]):
                found.append(Violation("channel", target, f"a false label in flight: {message}"))
        return found


@pytest.mark.parametrize("hashed", [True, False])
def test_lemma_4_the_ring_is_sorted_from_any_connected_state(
    hashed: bool, seeds: Callable[[int, int], int]
) -> None:
    """By day every size under every scheduler once."""
    overlay = RingOverlay(hashed=hashed)
    for seed in range(seeds(len(SIZES) * len(SCHEDULERS), 20_000)):
        n, scheduler = combination(seed, SIZES, SCHEDULERS)
        must_heal(overlay, Spec(n=n, seed=seed, scheduler=scheduler))


@pytest.mark.parametrize("nemesis", ["partition", "blip", "bitflip", "replay", "slow", "pause"])
def test_ring_heals_after(nemesis: str) -> None:
    faults = load_schedule(nemesis)
    must_heal(RingOverlay(hashed=True), Spec(12, 5, "legitimate", faults=faults))


def test_ring_closes_over_a_crashed_member() -> None:
    """With the two neighbours of the dead one not knowing each other, the ring closes the far way
    round: the list falls apart into two, and the closing edge joins them again."""
    for seed in range(20):
        faults = parse_schedule("at 1 crash count=1")
        must_heal(RingOverlay(hashed=True), Spec(9, seed, "legitimate", faults=faults))


def test_all_members_know_only_one_and_sort_themselves() -> None:
    must_heal(RingOverlay(hashed=True), Spec(40, 1, "fresh"))


@pytest.mark.parametrize("n", [1, 2, 3, 8, 17])
def test_lemma_15_a_legitimate_ring_stays(n: int) -> None:
    outcome = must_heal(RingOverlay(hashed=True), Spec(n, 0, "legitimate", closure=200))
    assert outcome.intervals == 0


def test_reference_to_oneself_is_dropped_on_any_input() -> None:
    ring = SortedRing("test", 1, 10)
    ring.left, ring.right, ring.ring = (10, 1), (10, 1), (10, 1)
    ring.on_message(Remove("test", 99))
    assert ring.neighbours() == []


def test_reference_that_wandered_too_far_is_garbage() -> None:
    ring = SortedRing("test", 1, 10)
    for hops in (HOPS_MAX, 100_000, 1 << 60):
        assert ring.on_message(Introduce("test", (5, 2), False, hops)) == []
        assert ring.neighbours() == []
    assert ring.on_message(Introduce("test", (5, 2), False, HOPS_MAX - 1)) != []


def test_hearsay_about_a_neighbour_does_not_move_it_and_the_neighbour_itself_does() -> None:
    """E22: a false label believed at once throws out the true one, and can do so for ever."""
    ring = SortedRing("test", 1, 10)
    ring.left = (5, 2)
    assert ring.on_message(Introduce("test", (20, 2), False, 0)) == []
    assert (ring.left, ring.right) == ((5, 2), None)
    ring.on_message(Check("test", (20, 2), 10, False))
    assert ring.neighbours() == [(20, 2)]


def test_wrong_belief_is_answered_by_its_owner_once() -> None:
    one, two = SortedRing("test", 1, 10), SortedRing("test", 2, 20)
    one.left = (5, 2)
    asked = one.on_timeout()[0]
    answered, greeted = two.on_message(Check("test", (10, 1), 5, False))
    assert asked.message == Check("test", (10, 1), 5, False)
    assert answered.message == greeted.message == Check("test", (20, 2), 10, False)
    assert one.on_message(answered.message) == [Send(2, Check("test", (10, 1), 20, False))]
    assert one.right == (20, 2)
    assert one.on_message(greeted.message) == []
    assert two.on_message(Check("test", (10, 1), 20, False)) == []


def test_new_neighbour_is_greeted_at_once_and_an_old_one_at_the_timeout() -> None:
    ring = SortedRing("test", 1, 10)
    assert ring.learn((20, 2)) == [Send(2, Check("test", (10, 1), 20, False))]
    assert ring.learn((20, 2)) == []
    closer = ring.learn((15, 3))
    assert closer[0] == Send(3, Check("test", (10, 1), 15, False))
    assert closer[1] == Send(3, Introduce("test", (20, 2), False, 1))


def test_two_labels_of_one_neighbour_end_when_it_speaks() -> None:
    ring = SortedRing("test", 1, 10)
    ring.left, ring.right, ring.ring = (5, 2), (20, 3), None
    ring.right = (30, 2)
    ring.on_message(Check("test", (5, 2), 10, False))
    assert ring.neighbours() == [(5, 2)]


def test_lost_neighbour_is_called_at_growing_intervals_and_not_for_ever() -> None:
    ring = SortedRing("test", 1, 10)
    ring.learn((5, 2))
    ring.miss([2])
    called = [time for time in range(1, 600) if any(s.target == 2 for s in ring.on_timeout())]
    assert called == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert not ring.lost


def test_failed_calls_of_a_lost_neighbour_do_not_begin_again() -> None:
    ring = SortedRing("test", 1, 10)
    ring.learn((5, 2))
    calls = 0
    for _ in range(600):
        calls += len([send for send in ring.on_timeout() if send.target == 2])
        ring.miss([2])
    assert calls == 2 + 9  # as a neighbour, then as a lost one


def test_who_is_lost_twice_is_called_from_the_beginning_and_no_longer() -> None:
    ring = SortedRing("test", 1, 10)
    ring.left, ring.lost = (5, 2), {2: 100}
    ring.miss([2])
    called = [time for time in range(1, 600) if any(s.target == 2 for s in ring.on_timeout())]
    assert called == [1, 2, 4, 8, 16, 32, 64, 128, 256]


OTHERS = dict.fromkeys(range(100, 100 + LOST_MAX), 1)  # who would leave no room for one before


@pytest.mark.parametrize("silent", [SILENCE_MAX, 1 << 40, -3])
@pytest.mark.parametrize(
    "lost", [{1: 300}, {1: -1}, {1: LOST_AGE_MAX}, {1: 1 << 70}, {1: 5} | OTHERS]
)
def test_l1_neighbour_whose_patience_is_spent_is_not_cut_off(
    silent: int, lost: dict[NodeId, int]
) -> None:
    """The only reference between two, given up at the first timeout: nobody else knows of it."""
    simulator, nodes = Simulator(1), [RingNode(0, 0), RingNode(1, 1)]
    nodes[0].ring.right, nodes[0].ring.silence = (1, 1), {1: silent}
    nodes[0].ring.lost = dict(lost)
    for node in nodes:
        simulator.add(node)
    for _ in range(SILENCE_MAX):
        simulator.run_interval()
    assert [node.ring.successor for node in nodes] == [(1, 1), (0, 0)]


def test_missing_neighbour_is_replaced_from_the_shortcuts() -> None:
    ring = SortedRing("test", 1, 10)
    ring.learn((20, 2))
    ring.miss([2], [(20, 2), (30, 3)])
    assert ring.right == (30, 3)


def test_label_of_another_kind_is_garbage() -> None:
    ring = SortedRing("test", 1, 10)
    assert ring.on_message(Introduce("test", (b"x", 2), False, 0)) == []
    assert ring.neighbours() == []


def winding(times: int, n: int) -> list[RingNode]:
    """Members 0 to n - 1 on `times` lists; the end of each is tied to the beginning of the next."""
    nodes = [RingNode(id, id) for id in range(n)]
    lists = [range(start, n, times) for start in range(times)]
    for one, other in zip(lists, [*lists[1:], lists[0]], strict=True):
        for before, after in pairwise(one):
            nodes[before].ring.right, nodes[after].ring.left = (after, after), (before, before)
        last, first = one[-1], other[0]
        nodes[last].ring.ring, nodes[first].ring.ring = (first, first), (last, last)
    return nodes


@pytest.mark.parametrize("times", [1, 2, 3, 5])
@pytest.mark.parametrize("n", [10, 11, 17])
def test_e23_a_ring_that_winds_round_the_order_several_times_unwinds(times: int, n: int) -> None:
    """Lemma 4 as printed: every CHECK of such a ring is true, so nothing ever changes in it."""
    simulator = Simulator(times)
    for node in winding(times, n):
        simulator.add(node)
    for _ in range(30):
        simulator.run_interval()
    found = {id: node.ring for id, node in simulator.nodes.items() if isinstance(node, RingNode)}
    assert [it.successor for it in found.values()] == [((id + 1) % n,) * 2 for id in range(n)]
    assert [it.predecessor for it in found.values()] == [((id - 1) % n,) * 2 for id in range(n)]


def test_hearsay_does_not_bring_back_whom_silence_took_but_its_own_word_does() -> None:
    ring = SortedRing("test", 1, 10)
    ring.learn((20, 2))
    ring.miss([2])
    asked = [Send(2, Check("test", (10, 1), 20, False))]
    assert ring.on_message(Introduce("test", (20, 2), False, 1)) == asked
    assert (ring.right, list(ring.lost)) == (None, [2])
    ring.on_message(Introduce("test", (20, 2), False, 0))
    assert (ring.right, ring.lost) == ((20, 2), {})


def test_a_lost_end_is_asked_over_the_ring_edge_and_sought_through_those_that_lost_it() -> None:
    end = SortedRing("test", 1, 10)
    end.left, end.lost = (5, 3), {2: 7}
    sought = Introduce("test", (1, 2), True, 3)
    assert end.on_message(sought) == [Send(2, Check("test", (10, 1), 1, True))]
    assert end.ring is None
    end.right, end.lost = (20, 4), {2: 7}
    assert end.on_message(sought) == [Send(4, Introduce("test", (1, 2), True, 4))]


def test_a_lost_neighbour_does_not_come_back_from_the_shortcuts() -> None:
    ring = SortedRing("test", 1, 10)
    ring.lost = {3: 5}
    ring.learn((20, 2))
    ring.miss([2], [(15, 3), (30, 4)])
    assert ring.right == (30, 4)


@pytest.mark.parametrize("hops", [-1, -(1 << 62), HOPS_MAX, 1 << 62])
def test_hops_that_no_reference_can_have_made_are_garbage(hops: int) -> None:
    ring = SortedRing("test", 1, 10)
    assert ring.on_message(Introduce("test", (5, 2), False, hops)) == []
    assert ring.neighbours() == []


def chain(ids: Sequence[NodeId], claims: NodeId) -> list[SortedRing]:
    """A sorted list of these members; its last has the ring edge to somebody, as a maximum has."""
    rings = [SortedRing("test", id, id) for id in ids]
    for one, other in pairwise(rings):
        one.right, other.left = (other.id, other.id), (one.id, one.id)
    rings[-1].ring = (claims, claims)
    return rings


def steps_until_sorted(rings: Sequence[SortedRing]) -> int:
    """How far a chain of messages goes until all of them are one list, after one timeout of each.

    What is sent in one step is heard in the next.
    """
    member = {it.id: it for it in rings}
    sent = [it for ring in rings for it in ring.on_timeout()]
    line = sorted(member)
    for step in range(10 * len(rings)):
        if all(member[a].right == (b, b) and member[b].left == (a, a) for a, b in pairwise(line)):
            return step
        heard = [(it.target, it.message) for it in sent if isinstance(it.message, RingMessage)]
        sent = [new for to, message in heard for new in member[to].on_message(message)]
    raise AssertionError(f"{[it.neighbours() for it in rings]}")


@pytest.mark.parametrize("n", [5, 50])
def test_e1_two_lists_with_one_minimum_are_tied_at_once_however_long_they_are(n: int) -> None:
    """Whoever loses the contest hears of the winner, and not of each of its list in turn."""
    rings = [*chain(range(n), 0), *chain([n, n + 1], 0)]
    rings[0].ring = (n - 1, n - 1)
    assert steps_until_sorted(rings) <= 5  # n + 2 without the rule
