"""A calm topic is left alone for a few intervals, and makes up for them before anything happens.

So a member's counters say at every moment at which they are asked what they would have said if it
had been looked at in every interval; only a fault in its memory is noticed a little later.
"""

from planaria.protocols.skipring.pace import REST_MAX
from planaria.protocols.skipring.place import SUM_AGE_MAX
from planaria.protocols.skipring.subscriber import SILENCE_MAX, Subscriber


def content(one: Subscriber) -> bool:
    """Has a member nothing to say before the time that it promised?"""
    if one.leaving or one.label is None or one.troubled:
        return False
    return one.pace.shown == one.shown()


def rest(one: Subscriber, *, doubt: bool) -> None:
    """Look again later, if nothing is wrong; soon enough to miss what is late."""
    if one.pace.left > 1 and not doubt and content(one):
        until = [SUM_AGE_MAX - age for _, age in one.child_sums.values()]
        if one.ring:
            until.append(max(SILENCE_MAX, one.window) - max(one.silence))
        one.pace.lie_down(min(until, default=REST_MAX))
    else:
        one.pace.rest = 0


def make_up(one: Subscriber) -> int:
    """Let the intervals pass in which a member rested, and say how many: nothing else happened."""
    passed = one.pace.make_up()
    if passed:
        sums = one.child_sums.items()
        one.child_sums = {label: (total, age + passed) for label, (total, age) in sums}
        one.spread_pause = max(0, one.spread_pause - passed)
        before, after = one.silence
        one.silence = (before + passed if one.pred else 0, after + passed if one.succ else 0)
        one.inquiry.age(passed)
    return passed


def silence(one: Subscriber) -> tuple[int, int]:
    """Intervals of silence of both ring neighbours, those of a rest included."""
    before, after = one.silence
    return before + one.pace.rested, after + one.pace.rested
