"""Which supervisor serves which topic: consistent hashing over all supervisors (section 1.3).

The first in a topic's order that is alive serves it. When one dies, its topics go to their next
in order and to nobody else's. The cluster's secret keys all orders: without it anybody could find
names of topics that all fall to one supervisor.
"""

from collections.abc import Sequence

from planaria.core.ids import NodeId, stable_hash

Circle = Sequence[tuple[int, NodeId]]  # supervisors and their places, in order


def circle(supervisors: Sequence[NodeId], secret: bytes = b"") -> Circle:
    """All supervisors at their places; the same for every topic."""
    key = (secret,) if secret else ()
    return sorted((stable_hash("supervisor", id, *key), id) for id in supervisors)


def clockwise(topic: str, circle: Circle, secret: bytes = b"") -> tuple[NodeId, ...]:
    """The supervisors on a circle, clockwise from the topic's hash."""
    point = stable_hash("topic", topic, *((secret,) if secret else ()))
    after = [id for place, id in circle if place >= point]
    before = [id for place, id in circle if place < point]
    return tuple(after + before)


def preference(
    topic: str, supervisors: Sequence[NodeId], secret: bytes = b""
) -> tuple[NodeId, ...]:
    """All supervisors in the order in which they serve `topic`."""
    return clockwise(topic, circle(supervisors, secret), secret)
