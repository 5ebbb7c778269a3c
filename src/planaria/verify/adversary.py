"""Schedulers that want a network to stay broken: for sizes at which not every state can be visited.

Each run begins in a drawn first state and lets a strategy choose every action, within the schedule:
a timeout of each node a round, nothing in flight for longer than the delay. Coins fall by chance,
afterwards. How many rounds until every invariant holds?
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from statistics import median
from typing import Any

from msgspec import Struct

from planaria.core.chance import stream
from planaria.core.ids import NodeId
from planaria.verify.model import Model, constants
from planaria.verify.sample import share_below
from planaria.verify.space import AGES, Raised, Schedule, Space, State

IN_FLIGHT = 64
RESTARTS = 4  # of one first state, each from within the run that lasted longest
STEPS = 40  # for each node in a round, before the scheduler must be fair
Step = tuple[int, list[State]]  # an action, and what its coins may lead to
Strategy = Callable[["Run", list[Step]], Step]


class Outcome(Struct, frozen=True):
    """What one strategy achieved: rounds until legitimate, and the seeds it held up for good.

    `share`: with the confidence of samples it holds up fewer of all first states than this.
    `states`: how many different ones it came by that are not legitimate.
    """

    strategy: str
    tries: int
    failed: list[int]
    p50: float
    most: int
    share: float
    states: int
    raised: list[str] = []


class Run:
    """One run of a model under one strategy, from one drawn first state."""

    def __init__(self, space: Space, seed: int) -> None:
        self.space, self.rng = space, stream(seed, "adversary")
        self.order = stream(seed, "order")
        self.priority: dict[int, float] = {}
        self.taken = 0  # steps so far
        self.since: dict[int, int] = {}  # in flight since which step
        self.plan: list[int] = []  # choices and coins to make again, and those made
        self.made: list[int] = []
        self.seen: set[State] = set()

    def rank(self, action: int) -> float:
        """A fixed number for each node's timeout and for each link."""
        n = self.space.n
        key = action
        if action >= n:
            source, target, _ = self.space.messages[action - n]
            key = n + (source or 0) * 1_000 + target
        return self.priority.setdefault(key, self.order.random())

    def badness(self, state: State) -> int:
        """How many invariants fail."""
        space = self.space
        return len(space.model.violations(space.states(state), space.channel(state)))

    def rounds(self, first: State, strategy: Strategy, most: int) -> int | None:
        """Rounds until legitimate; None if it is not within `most`.

        A reference that believed labels send in a circle could fill a round by itself: after so
        many steps the oldest message is heard, or a timeout comes, as a fair scheduler must.
        """
        state, count, steps = first, 0, 0
        while count < most:
            if not self.badness(state):
                return count
            self.seen.add(state)
            able = list(self.space.after(state))
            steps += 1
            action, outcomes = (strategy if steps < STEPS * self.space.n else fair)(self, able)
            state = outcomes[self.choose(len(outcomes)) if len(outcomes) > 1 else 0]
            self._note(action, state)
            if action < self.space.n and state[self.space.n] == 0:
                count, steps = count + 1, 0
        return None

    def choose(self, count: int) -> int:
        """One of so many: what the plan says, as far as it goes; then any."""
        at = len(self.made)
        choice = self.plan[at] % count if at < len(self.plan) else self.rng.randrange(count)
        self.made.append(choice)
        return choice

    def _note(self, action: int, state: State) -> None:
        """Remember since when each message is in flight."""
        self.taken += 1
        self.since.pop(action - self.space.n, None)
        for flying in state[self.space.head :]:
            self.since.setdefault(flying // AGES, self.taken)


def fair(run: Run, steps: list[Step]) -> Step:
    """The message that is oldest, or every other time a timeout."""
    n = run.space.n
    timeouts = [it for it in steps if it[0] < n]
    if timeouts and run.rng.random() < 0.5:
        return run.rng.choice(timeouts)
    return min(steps, key=lambda it: run.since.get(it[0] - n, run.taken))


def drawn(run: Run, steps: list[Step]) -> Step:
    """Any step."""
    return run.rng.choice(steps)


def greedy(run: Run, steps: list[Step]) -> Step:
    """The step after which most invariants may fail; of equal ones any."""
    few = run.rng.sample(steps, min(8, len(steps)))
    return max(few, key=lambda it: max(map(run.badness, it[1])))


def phases(run: Run, steps: list[Step]) -> Step:
    """Always the same order of nodes and links: fixed phases, constant delays."""
    return min(steps, key=lambda it: run.rank(it[0]))


def late(run: Run, steps: list[Step]) -> Step:
    """Timeouts first, then the newest message: everything is as late as it may be."""
    n = run.space.n
    timeouts = [it for it in steps if it[0] < n]
    if timeouts:
        return run.rng.choice(timeouts)
    return max(steps, key=lambda it: run.since.get(it[0] - n, 0))


def restarts(run: Run, steps: list[Step]) -> Step:
    """What an earlier run chose that lasted long, as far as the plan goes; then any step."""
    return steps[run.choose(len(steps))]


STRATEGIES: Mapping[str, Strategy] = {
    "drawn": drawn,
    "greedy": greedy,
    "phases": phases,
    "late": late,
    "restarts": restarts,
}


def attack(
    model: Model, tries: int, rounds: int, names: Sequence[str] = (), channel: int = IN_FLIGHT
) -> list[Outcome]:
    """Let each strategy try so many first states for so many rounds.

    With no channel all is heard before the next timeout, as in searches that have none.
    """
    with constants(model.constants):
        space, choices = Space(model, Schedule(channel, 1)), model.choices()
        return [_attack(space, choices, name, tries, rounds) for name in names or STRATEGIES]


def _attack(
    space: Space, choices: Mapping[NodeId, Sequence[Any]], name: str, tries: int, rounds: int
) -> Outcome:
    taken: list[int] = []
    failed: list[int] = []
    raised: list[str] = []
    seen: set[State] = set()
    for seed in range(tries):
        first = space.first(space.model.draw(choices, Random(seed)))
        try:
            found = _worst(space, first, name, seed, rounds, seen)
        except Raised as error:
            raised.append(f"{seed}: {error}")
            continue
        if found is None:
            failed.append(seed)
        else:
            taken.append(found)
    share = share_below(len(failed) + len(raised), tries)
    times = median(taken or [0]), max(taken, default=0)
    return Outcome(name, tries, failed, *times, share, len(seen), raised)


def _worst(
    space: Space, first: State, name: str, seed: int, rounds: int, seen: set[State]
) -> int | None:
    """Rounds of one run; with restarts, of the longest of several that learn from each other."""
    tries = RESTARTS if name == "restarts" else 1
    plan: list[int] = []
    worst = 0
    for number in range(tries):
        run = Run(space, seed * tries + number)
        run.plan, run.seen = plan[: run.rng.randrange(len(plan) + 1)], seen
        found = run.rounds(first, STRATEGIES[name], rounds)
        if found is None:
            return None
        if found >= worst:
            worst, plan = found, run.made
    return worst
