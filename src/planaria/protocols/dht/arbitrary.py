"""Arbitrary states of the DHT: variables and messages in flight, from a random stream."""

from collections.abc import Sequence
from random import Random

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.protocols.dht.keys import KeySpace
from planaria.protocols.dht.lookups import Pending
from planaria.protocols.dht.member import CALL_PERIOD, GROUP, DhtMember
from planaria.protocols.dht.messages import AskFinger, Departed, Find, Finger, Found
from planaria.protocols.ring.messages import Check, Introduce, Ref, Remove
from planaria.protocols.ring.sorted_ring import LOST_AGE_MAX, LOST_MAX, SILENCE_MAX

GHOST = 10**9  # ids from here on belong to nobody
SHARE_OF_GHOSTS = 0.1


def any_id(ids: Sequence[NodeId], rng: Random) -> NodeId:
    """Somebody, or nobody."""
    return GHOST + rng.randrange(4) if rng.random() < SHARE_OF_GHOSTS else rng.choice(ids)


def corrupt_member(member: DhtMember, ids: Sequence[NodeId], rng: Random) -> None:
    """Any value in every variable; that the application asked to leave stays."""
    space = member.space

    def ref() -> Ref | None:
        label = space.label(rng.randrange(space.size))
        return rng.choice([None, (label, any_id(ids, rng))])

    ring, fingers, lookups = member.ring, member.fingers, member.lookups
    ring.label = space.label(rng.randrange(space.size))
    ring.left, ring.right, ring.ring = ref(), ref(), ref()
    ring.silence = {
        any_id(ids, rng): rng.randrange(-2, 2 * SILENCE_MAX) for _ in range(rng.randrange(4))
    }
    ring.lost = {
        any_id(ids, rng): rng.randrange(-2, 2 * LOST_AGE_MAX)
        for _ in range(rng.randrange(2 * LOST_MAX))
    }
    fingers.known = {rng.randrange(-1, 70): any_id(ids, rng) for _ in range(rng.randrange(8))}
    fingers.turn = rng.randrange(-5, 100)
    lookups.nonce = rng.randrange(1 << 32)
    lookups.pending = {
        rng.randrange(space.size): Pending(
            rng.randrange(-5, 1 << 33), rng.randrange(-9, 20), rng.randrange(-2, 9)
        )
        for _ in range(rng.randrange(4))
    }
    member.time = rng.randrange(-100, 10 * CALL_PERIOD)
    member.heirs = tuple(any_id(ids, rng) for _ in range(rng.randrange(3)))


def forge_message(ids: Sequence[NodeId], space: KeySpace, rng: Random) -> Message:
    """Any message of the DHT or of its ring."""
    id, other = any_id(ids, rng), any_id(ids, rng)
    label = space.label(rng.randrange(space.size))
    nonce, level = rng.randrange(8), rng.randrange(8)
    return rng.choice(
        [
            Check(GROUP, (label, id), label, rng.random() < 0.5),
            Introduce(GROUP, (label, id), rng.random() < 0.5, rng.randrange(10)),
            Remove(GROUP, id),
            Find(id, label, nonce, rng.randrange(10)),
            Found(label, nonce, id, other, 1),
            AskFinger(id, level),
            Finger(id, level, rng.choice([None, other])),
            Departed(id, (other,)),
        ]
    )
