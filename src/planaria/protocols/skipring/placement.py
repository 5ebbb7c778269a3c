"""Which supervisor serves which topic: consistent hashing over all supervisors (section 1.3).

The first in a topic's order that is alive serves it. When one dies, its topics go to their next
in order and to nobody else's.
"""

from collections.abc import Sequence

from planaria.core.ids import NodeId, stable_hash


def preference(topic: str, supervisors: Sequence[NodeId]) -> tuple[NodeId, ...]:
    """All supervisors in the order in which they serve `topic`: clockwise from the topic's hash."""
    point = stable_hash("topic", topic)
    circle = sorted((stable_hash("supervisor", id), id) for id in supervisors)
    after = [id for place, id in circle if place >= point]
    before = [id for place, id in circle if place < point]
    return tuple(after + before)
