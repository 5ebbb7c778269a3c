"""How long subscribers in a legitimate ring need until all of them hold the same."""

from math import ceil, log2

from planaria.protocols.publications.exchanges import PATIENCE
from planaria.protocols.publications.push import PUSH_BYTES_MAX, PUSH_FRAMES_MAX
from planaria.protocols.publications.retention import ON_ITS_WAY_SECONDS
from planaria.records.sums import ON_THE_WAY_SECONDS

MESSAGES_PER_HOP = 5  # digest, estimate, sketch, difference, push, one after the other
LEFT_ALONE = ON_ITS_WAY_SECONDS + ON_THE_WAY_SECONDS
TIMEOUTS_PER_HOP = 3  # until the next digest leaves, and until one of the two starts is free

CARRIED = PUSH_FRAMES_MAX // 2 * PUSH_BYTES_MAX  # by an answer that is cut: two frames exceed one


def intervals_to_agree(n: int, delay: float, missing: int = 0) -> int:
    """Intervals within which every subscriber holds every publication that one of them holds.

    Counted from a legitimate ring without further faults, if no message takes longer than `delay`
    intervals and an exchange of messages is no slower than `PATIENCE`. A publication crosses at
    most log2 n edges, each by one exchange; before that, exchanges that a fault left half-way are
    given up by patience, twice at worst. What is young, or stamped a little ahead, is not compared
    before its time; an interval is a second at least.

    What one subscriber lacks, `missing` bytes of records and `FRAMING_BYTES` for each, takes
    another exchange for every `CARRIED` that do not fit one answer: trials, whose records are few
    and small, leave it out. Nor does it count sketches that do not decode, which cost four messages
    and a descent, and false beliefs, which cost two exchanges before it (docs/proofs/publications).
    """
    hops = max(1, ceil(log2(max(2, n))))
    exchanges = hops * (1 + max(0, ceil(missing / CARRIED) - 1))
    once = MESSAGES_PER_HOP * delay + TIMEOUTS_PER_HOP
    return ceil(exchanges * once) + 2 * PATIENCE + LEFT_ALONE
