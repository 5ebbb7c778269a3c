"""Which supervisor serves which topic: consistent hashing over all supervisors (section 1.3).

The first in a topic's order that is alive serves it. When one dies, its topics go to their next
in order and to nobody else's. The cluster's secret keys all orders: without it anybody could find
names of topics that all fall to one supervisor.
"""

from collections.abc import Sequence

from planaria.core.ids import NodeId, stable_hash


def preference(
    topic: str, supervisors: Sequence[NodeId], secret: bytes = b""
) -> tuple[NodeId, ...]:
    """All supervisors in the order in which they serve `topic`: clockwise from the topic's hash."""
    key = (secret,) if secret else ()
    point = stable_hash("topic", topic, *key)
    circle = sorted((stable_hash("supervisor", id, *key), id) for id in supervisors)
    after = [id for place, id in circle if place >= point]
    before = [id for place, id in circle if place < point]
    return tuple(after + before)
