"""Arbitrary states of a host of the tree: variables and messages, from a random stream."""

from collections.abc import Sequence
from random import Random

from planaria.core.chance import any_integer
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.protocols.dht.arbitrary import any_id, corrupt_member, stored_id
from planaria.protocols.dht.arbitrary import forge_message as forge_for_dht
from planaria.protocols.dht.keys import Keyset, KeySpace
from planaria.protocols.tree.messages import Link, Unlink
from planaria.protocols.tree.node import TreeHost
from planaria.protocols.tree.place import (
    CLAIMS_MAX,
    REFRESH_PERIOD,
    SEARCHES_MAX,
    SUSPECT_AGE_MAX,
    Answer,
)


def corrupt_host(host: TreeHost, ids: Sequence[NodeId], rng: Random) -> None:
    """Any value in every variable of both layers."""
    corrupt_member(host.dht, ids, rng)
    place, size = host.place, host.dht.space.size

    def key() -> int:
        return rng.choice([rng.randrange(size), any_integer(rng, 0, size)])

    def keyset() -> Keyset | None:
        found = rng.choice([host.dht.keyset, (key(), key()), (rng.randrange(size), 0)])
        return None if rng.random() < 0.3 else found

    def some_ids(most: int) -> list[NodeId]:
        return [stored_id(ids, rng) for _ in range(rng.randrange(most))]

    place.parent = rng.choice([None, stored_id(ids, rng), stored_id(ids, rng)])
    place.children = tuple(some_ids(6))
    place.searched, place.searching = keyset(), keyset()
    place.answers = [
        Answer(stored_id(ids, rng), stored_id(ids, rng)) for _ in range(rng.randrange(6))
    ]
    place.asked = [*host.dht.lookups.pending][: rng.randrange(4)] + [key()] * rng.randrange(3)
    place.dirty = rng.random() < 0.5
    place.age = any_integer(rng, 0, REFRESH_PERIOD)
    place.searches = any_integer(rng, 0, SEARCHES_MAX)
    place.suspects = {id: any_integer(rng, 0, SUSPECT_AGE_MAX) for id in some_ids(4)}
    place.claims = some_ids(rng.choice([4, 2 * CLAIMS_MAX]))


def forge_message(ids: Sequence[NodeId], space: KeySpace, rng: Random) -> Message:
    """Any message of either layer."""
    if rng.random() < 0.3:
        return rng.choice([Link, Unlink])(any_id(ids, rng))
    return forge_for_dht(ids, space, rng)
