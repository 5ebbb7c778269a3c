"""How long the skip ring takes to heal, and what that costs the supervisor."""

from msgspec import Struct

from planaria.protocols.skipring.overlay import RingOverlay
from planaria.protocols.skipring.topic_supervisor import RATE_MIN
from planaria.simulator.trial import Spec, Trial
from planaria.studies.skipring.traffic import Traffic

STARTS = ("fresh", "wiped", "crash50", "permuted", "corrupt", "swapped")
INTERVALS_MAX = 1000  # far beyond every recovery that was ever seen


class Recovery(Struct, frozen=True):
    """One run until legitimacy; counts are per live member, peaks per rate of one interval."""

    healed: bool
    intervals: int
    requests: float
    configurations: float
    peak_in: float
    peak_out: float
    messages: float


def rate(n: int) -> int:
    """Configurations per timeout that the supervisor of n members allows itself."""
    return max(RATE_MIN, n // max(1, n.bit_length()))


def recover(start: str, n: int, seed: int) -> Recovery:
    """Heal from `start`; arbitrary states are arbitrary in the overlay, histories stay empty.

    Intervals are counted until the last interval end at which something was wrong, in a variable
    or in flight.
    """
    overlay = RingOverlay(histories=False)
    load = Traffic(overlay.supervisors)
    trial = Trial(overlay, Spec(n, seed, start, intervals=INTERVALS_MAX, closure=0), [load])
    outcome = trial.run()
    members = len(trial.simulator.nodes) - 1
    inward = load.inward[: outcome.intervals + 1]
    outward = load.outward[: outcome.intervals + 1]
    return Recovery(
        outcome.legitimate,
        outcome.intervals,
        sum(inward) / members,
        sum(outward) / members,
        max(inward) / rate(members),
        max(outward) / rate(members),
        outcome.messages / members,
    )
