"""Smaller trials that fail alike: what a person wants to read first."""

from collections.abc import Callable, Iterable

from msgspec import structs

from planaria.core.errors import InvariantViolation
from planaria.simulator.schedule import Action
from planaria.simulator.trial import Spec, Trial

TRIALS_MAX = 200  # a minimal scenario is a convenience, not worth more than this
MESSAGES_MAX = 5_000_000  # nor more than a minute or so of simulation

Attempt = Callable[[Spec], tuple[Trial, InvariantViolation | None]]


def shrink_failure(spec: Spec, checker: str, attempt: Attempt) -> Spec:
    """A smaller trial that breaks the same promise, found with a bounded effort."""
    spent = 0

    def fails(smaller: Spec) -> bool:
        nonlocal spent
        if spent > MESSAGES_MAX:
            return False
        trial, violation = attempt(smaller)
        spent += trial.simulator.sent
        return violation is not None and violation.checker == checker

    return shrink(spec, fails)


def shrink(spec: Spec, fails: Callable[[Spec], bool]) -> Spec:
    """The smallest trial found that still fails: fewer faults, then fewer nodes, then shorter."""
    budget = TRIALS_MAX
    while budget > 0:
        for smaller in _smaller(spec):
            budget -= 1
            if fails(smaller):
                spec = smaller
                break
            if budget <= 0:
                return spec
        else:
            return spec
    return spec


def _smaller(spec: Spec) -> Iterable[Spec]:
    for drop in range(len(spec.faults)):
        kept = spec.faults[:drop] + spec.faults[drop + 1 :]
        yield structs.replace(spec, faults=kept)
    for n in sorted({spec.n // 2, spec.n - 1}):
        if 0 < n < spec.n:
            yield structs.replace(spec, n=n)
    for place, action in enumerate(spec.faults):
        for simpler in _simpler(action):
            faults = (*spec.faults[:place], simpler, *spec.faults[place + 1 :])
            yield structs.replace(spec, faults=faults)
    if spec.scheduler != "fifo":
        yield structs.replace(spec, scheduler="fifo")


def _simpler(action: Action) -> Iterable[Action]:
    if action.duration >= 2:
        yield structs.replace(action, duration=float(action.duration // 2))
    count = action.arguments.get("count")
    if isinstance(count, int) and count > 1:
        yield structs.replace(action, arguments={**action.arguments, "count": count // 2})
