"""Which supervisor serves which topic: consistent hashing over all supervisors (section 1.3).

The first in a topic's order that is alive serves it. When one dies, its topics go to their next
in order and to nobody else's. The cluster's secret keys all orders: without it anybody could find
names of topics that all fall to one supervisor.
"""

from collections.abc import Sequence
from functools import lru_cache

from planaria.core.ids import NodeId, stable_hash

ORDERS_MAX = 1 << 14  # of topics, remembered in one process: a node asks for each in each interval
CIRCLES_MAX = 64  # remembered in one process: a node has one, a simulation a few

Circle = tuple[tuple[int, NodeId], ...]  # supervisors and their places, in order


@lru_cache(CIRCLES_MAX)
def circle(supervisors: tuple[NodeId, ...], secret: bytes = b"") -> Circle:
    """All supervisors at their places; the same for every topic, so it is made once."""
    key = (secret,) if secret else ()
    return tuple(sorted((stable_hash("supervisor", id, *key), id) for id in supervisors))


def preference(
    topic: str, supervisors: Sequence[NodeId], secret: bytes = b""
) -> tuple[NodeId, ...]:
    """All supervisors in the order in which they serve `topic`: clockwise from its hash."""
    return _order(topic, tuple(supervisors), secret)


@lru_cache(ORDERS_MAX)
def _order(topic: str, supervisors: tuple[NodeId, ...], secret: bytes) -> tuple[NodeId, ...]:
    places = circle(supervisors, secret)
    point = stable_hash("topic", topic, *((secret,) if secret else ()))
    after = [id for place, id in places if place >= point]
    before = [id for place, id in places if place < point]
    return tuple(after + before)
