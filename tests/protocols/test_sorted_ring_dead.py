"""BuildRing among the dead: whom a member hands to a neighbour it remembers until it speaks."""

from collections.abc import Callable, Mapping
from random import Random

from planaria.core.ids import NodeId
from planaria.core.node import Send
from planaria.protocols.ring.messages import Check, Introduce, RingMessage
from planaria.protocols.ring.sorted_ring import HANDED_MAX, SILENCE_MAX, SortedRing


def prompt(rings: Mapping[NodeId, SortedRing], rng: Random) -> None:
    """One timeout of each, then every message in any order; what is sent to the dead is lost."""
    ids = rng.sample(list(rings), len(rings))
    sends = [send for id in ids for send in rings[id].on_timeout()]
    while sends:
        send = sends.pop(rng.randrange(len(sends)))
        if send.target in rings:
            assert isinstance(send.message, RingMessage)
            sends += rings[send.target].on_message(send.message)


def test_a_dead_member_between_cuts_nobody_off() -> None:
    """0, 2 and 4 know each other, and all of them somebody who is dead, between 0 and 2."""
    rings = {label: SortedRing("ring", label, label) for label in (0, 2, 4)}
    rings[2].left, rings[2].ring = (0, 0), (1, 1)
    rings[4].left, rings[4].ring = (2, 2), (1, 1)
    for seed in range(2 * SILENCE_MAX):
        prompt(rings, Random(seed))
    assert rings[0].right == (2, 2)


def among_the_dead(rng: Random) -> dict[NodeId, SortedRing]:
    """Members that references connect, on any side, and as many others to those who have died."""
    n, dead = rng.randint(2, 8), rng.randint(1, 6)
    named = rng.sample(range(n + dead), n + dead)
    rings = {id: SortedRing("test", id, id) for id in sorted(named[:n])}
    free = {id: rng.sample(["left", "right", "ring"], 3) for id in rings}
    for place, id in enumerate(named[1:n], 1):
        other = rng.choice(named[:place])
        holder, held = (id, other) if rng.random() < 0.5 or not free[other] else (other, id)
        setattr(rings[holder], free[holder].pop(), (held, held))
    for id, sides in free.items():
        for side in sides:
            it = rng.choice(named)
            setattr(rings[id], side, rng.choice([None, (it, it)]))
    return rings


def test_l1_the_dead_cut_nobody_off(seeds: Callable[[int, int], int]) -> None:
    """Of these starts one in eight stayed apart for ever while nobody remembered whom it handed to
    a neighbour; and one in 120 while those handed to a neighbour that was displaced were not handed
    to the next."""
    for seed in range(seeds(500, 20_000)):
        rng = Random(seed)
        rings = among_the_dead(rng)
        line = list(rings)
        for _ in range(4 * SILENCE_MAX):
            prompt(rings, rng)
        after = [(id, id) for id in line[1:] + line[:1]]
        assert [ring.successor for ring in rings.values()] == after, f"seed {seed}"
        assert [ring.predecessor for ring in rings.values()] == after[-2:] + after[:-2], seed


def test_whom_it_handed_on_is_asked_when_the_neighbour_before_it_is_gone() -> None:
    ring = SortedRing("test", 1, 10)
    ring.learn((20, 2))
    ring.learn((30, 3))
    assert ring.handed == {3: 30}
    ring.forget(2)
    assert Send(3, Check("test", (10, 1), 30, False)) in ring.on_timeout()
    assert (ring.right, ring.handed) == (None, {})  # it comes by itself, if it lives


def test_whom_it_handed_on_is_forgotten_when_the_neighbour_speaks() -> None:
    ring = SortedRing("test", 1, 10)
    for label in (20, 30, 5, 2):
        ring.learn((label, label))
    assert ring.handed == {30: 30, 2: 2}
    ring.on_message(Check("test", (20, 20), 10, False))
    assert ring.handed == {2: 2}


def test_whom_a_displaced_neighbour_was_handed_the_next_one_is() -> None:
    ring = SortedRing("test", 1, 10)
    ring.learn((20, 2))
    ring.learn((30, 3))
    told = [it.message for it in ring.learn((15, 4)) if isinstance(it.message, Introduce)]
    assert told == [Introduce("test", (30, 3), False, 1), Introduce("test", (20, 2), False, 1)]


def test_only_the_last_that_were_handed_on_are_remembered() -> None:
    ring = SortedRing("test", 1, 10)
    for label in (20, *range(30, 30 + 2 * HANDED_MAX)):
        ring.learn((label, label))
    assert list(ring.handed) == list(range(30 + HANDED_MAX, 30 + 2 * HANDED_MAX))


def test_what_is_no_reference_is_never_asked() -> None:
    ring = SortedRing("test", 1, 10)
    ring.handed = {-1: 30, 1 << 70: 40, 2: b"x", 1: 50, 3: 60}
    assert [send.target for send in ring.on_timeout()] == [3]
    ring.handed = {-1: 30, 1 << 70: 40, 2: b"x", 1: 50, 3: 60}
    ring.on_message(Check("test", (20, 9), 10, False))
    told = [send.target for send in ring.on_message(Check("test", (15, 8), 10, False))]
    assert told == [8, 8, 8]  # it is asked, and told of 3 and of 9
