"""Which supervisor serves which topic: an order of all supervisors for each topic (section 1.3).

The first in a topic's order that is alive serves it. When one dies, each of its topics goes to the
next in the topic's own order, and no other topic moves. The paper takes consistent hashing for
that: with one point for each of two supervisors, one may get nearly all topics. By rendezvous
hashing each gets its share, and so do the survivors of a dead one's topics. The cluster's secret
keys all orders: without it anybody could find names of topics that all fall to one supervisor.
"""

from collections.abc import Sequence
from functools import lru_cache

from planaria.core.ids import NodeId, stable_hash

ORDERS_MAX = 1 << 14  # of topics, remembered in one process: a node asks for each in each interval


def preference(
    topic: str, supervisors: Sequence[NodeId], secret: bytes = b""
) -> tuple[NodeId, ...]:
    """All supervisors in the order in which they serve `topic`."""
    return _order(topic, tuple(supervisors), secret)


@lru_cache(ORDERS_MAX)
def _order(topic: str, supervisors: tuple[NodeId, ...], secret: bytes) -> tuple[NodeId, ...]:
    key = (secret,) if secret else ()
    places = ((stable_hash("supervisor", topic, id, *key), id) for id in supervisors)
    return tuple(id for _, id in sorted(places))
