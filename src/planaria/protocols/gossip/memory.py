"""Which events a process had: remembered for as long as a copy can travel, refused when full.

The table that forgets, in two generations: nothing is forgotten that is younger than `MEMORY`
intervals, and nothing kept for twice as long, whatever a fault put in.
"""

from planaria.core.forgetting import Forgetful, ForgetfulState
from planaria.protocols.gossip.messages import EVENT_HOPS_MAX, SLOWEST

MEMORY = EVENT_HOPS_MAX * SLOWEST  # intervals: no copy of an event travels for longer
SEEN_MAX = 65_536  # events remembered, 10 MB: 102 an interval for ever

EventMemory = Forgetful[bytes, None]
EventMemoryState = ForgetfulState[bytes, None]


def event_memory() -> EventMemory:
    """The memory of a process that had no event yet."""
    return Forgetful(SEEN_MAX, MEMORY)
