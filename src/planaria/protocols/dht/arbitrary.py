"""Arbitrary states of the DHT: variables, caches and messages in flight, from a random stream."""

from collections.abc import Sequence
from random import Random

from planaria.core.chance import any_integer
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.protocols.dht.keys import KeySpace
from planaria.protocols.dht.lookups import GAP_MAX, NONCES, PENDING_MAX, Pending
from planaria.protocols.dht.member import CALL_PERIOD, GROUP, DhtMember
from planaria.protocols.dht.messages import (
    HOPS_MAX,
    LEVELS_MAX,
    AskFinger,
    Departed,
    Find,
    Finger,
    Found,
)
from planaria.protocols.ring import sorted_ring
from planaria.protocols.ring.messages import Check, Introduce, Ref, Remove
from planaria.protocols.ring.sorted_ring import HANDED_MAX, LOST_AGE_MAX, LOST_MAX, SILENCE_MAX

GHOST = 10**9  # ids from here on belong to nobody
SHARE_OF_GHOSTS = 0.1
SHARE_OF_ABSURD = 0.03  # of stored ids: numbers that name no node
WINDINGS_MAX = 3


def any_id(ids: Sequence[NodeId], rng: Random) -> NodeId:
    """Somebody, or nobody."""
    return GHOST + rng.randrange(4) if rng.random() < SHARE_OF_GHOSTS else rng.choice(ids)


def stored_id(ids: Sequence[NodeId], rng: Random) -> int:
    """What a corrupted variable may hold for an id."""
    return any_integer(rng) if rng.random() < SHARE_OF_ABSURD else any_id(ids, rng)


def corrupt_member(member: DhtMember, ids: Sequence[NodeId], rng: Random) -> None:
    """Any value in every variable and cache; that the application asked to leave stays."""
    space, ring, fingers = member.space, member.ring, member.fingers
    empty = rng.choice([0.0, 0.5])  # in every second host all slots are filled

    def ref() -> Ref | None:
        label = space.label(rng.randrange(space.size))
        return None if rng.random() < empty else (label, stored_id(ids, rng))

    def key() -> int:
        """Any key, that of a host, or what is none."""
        near = rng.choice([rng.randrange(space.size), space.key(rng.choice(ids))])
        return any_integer(rng, 0, near) if rng.random() < 0.3 else near

    def label() -> bytes:
        """The label of any key, or bytes of another length."""
        return rng.choice([space.label(key() % space.size), b"", b"\xff" * 21])

    def counters(most: int, *near: int) -> dict[NodeId, int]:
        return {stored_id(ids, rng): any_integer(rng, 0, *near) for _ in range(rng.randrange(most))}

    ring.label = space.label(rng.randrange(space.size))
    ring.left, ring.right, ring.ring = ref(), ref(), ref()
    ring.silence = counters(5, SILENCE_MAX)
    ring.lost = counters(2 * LOST_MAX, LOST_AGE_MAX)
    ring.handed = {stored_id(ids, rng): label() for _ in range(rng.randrange(2 * HANDED_MAX))}
    fingers.known = {
        any_integer(rng, 0, 1, 2, 3, LEVELS_MAX): stored_id(ids, rng)
        for _ in range(rng.randrange(8))
    }
    fingers.turn = any_integer(rng, 0, len(fingers.known))
    if rng.random() < 0.3:  # what is false was found sound
        fingers.sound = (member.successor, dict(fingers.known))
    corrupt_lookups(member, rng)
    member.time = any_integer(rng, 0, CALL_PERIOD)
    member.heirs = tuple(stored_id(ids, rng) for _ in range(rng.randrange(4)))
    member.host_keys.keys = {any_id(ids, rng): key() for _ in range(rng.choice([0, 0, 1, 4]))}
    member.host_keys.labels = {any_id(ids, rng): label() for _ in range(rng.choice([0, 0, 1, 4]))}


def corrupt_lookups(member: DhtMember, rng: Random) -> None:
    """Questions about any key, also about keys that there are not, at times too many."""
    lookups, size = member.lookups, member.space.size
    lookups.nonce = any_integer(rng, 0, NONCES)
    many = PENDING_MAX + 1 if rng.random() < 0.01 else rng.randrange(4)
    lookups.pending = {
        rng.choice([rng.randrange(size), any_integer(rng, 0, size)]): Pending(
            any_integer(rng, 0, NONCES), any_integer(rng, 0, GAP_MAX), any_integer(rng, 1, 4, 9)
        )
        for _ in range(many)
    }


def wind(members: Sequence[DhtMember], rng: Random) -> None:
    """Beliefs that confirm each other: a ring that goes round the keys several times (E23)."""
    line = sorted(members, key=lambda it: it.space.key(it.id))
    times = rng.randint(1, WINDINGS_MAX)
    for place, member in enumerate(line):
        before, after = place - times, place + times
        ring, ref = member.ring, member.space.ref
        ring.left = ref(line[before].id) if before >= 0 else None
        ring.right = ref(line[after].id) if after < len(line) else None
        ring.ring, ring.silence = None, {}
    lists = [line[start::times] for start in range(min(times, len(line)))]
    for one, other in zip(lists, [*lists[1:], lists[0]], strict=True):
        last, first = one[-1], other[0]
        if last is not first:
            last.ring.ring, first.ring.ring = (
                first.space.ref(first.id),
                last.space.ref(last.id),
            )


def forge_message(ids: Sequence[NodeId], space: KeySpace, rng: Random) -> Message:
    """Any message of the DHT or of its ring."""
    id, other = any_id(ids, rng), any_id(ids, rng)
    label = space.label(rng.randrange(space.size))
    nonce, level = rng.choice([rng.randrange(8), NONCES - 1]), rng.randrange(LEVELS_MAX)
    far, wandered = rng.choice([0, 9, HOPS_MAX]), any_integer(rng, 0, 1, sorted_ring.HOPS_MAX)
    return rng.choice(
        [
            Check(GROUP, (label, id), label, rng.random() < 0.5),
            Introduce(GROUP, (label, id), rng.random() < 0.5, wandered),
            Remove(GROUP, id),
            Find(id, rng.choice([label, b"", b"\xff" * 20]), nonce, far),
            Found(label, nonce, id, other, far),
            AskFinger(id, level),
            AskFinger(id, level % 8),
            Finger(id, level % 8, rng.choice([None, other])),
            Departed(id, (other, id)[: rng.randrange(3)]),
        ]
    )
