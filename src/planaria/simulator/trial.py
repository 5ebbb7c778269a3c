"""One trial: any start, any faults, safety at every step; then the faults stop, then the network
must become legitimate within a bound (convergence), then it must stay so (closure).
"""

import re
import shlex
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field, structs

from planaria.core.book import MISSED
from planaria.core.chance import stream
from planaria.core.errors import InvariantViolation, PlanariaError, UsageError
from planaria.core.overlay import Overlay, Violation
from planaria.core.scenario import WORKLOAD
from planaria.simulator.applications import Applications
from planaria.simulator.checkers import Bookkeeper, DeliveredOnce, SafetyBroken
from planaria.simulator.delays import INTERVAL, parse_delay, parse_phases
from planaria.simulator.engine import ENVIRONMENT, Observer, Simulator, TooManyMessages
from planaria.simulator.links import use_scheduler
from planaria.simulator.nemesis import Injection, Nemesis
from planaria.simulator.schedule import Schedule, compose, parse_schedule

NODES_MAX = 1_000_000  # 2 kB each: more than this is a typing error on any machine
INTERVALS_MAX = 1_000_000
MESSAGES_MAX = 1_000_000_000  # a day of simulation: more is a storm, not an experiment


_NUMBER = re.compile(r"\b(?:node )?([1-9][0-9]{0,18})\b")
OPTIONS = (
    "start",
    "scheduler",
    "delay",
    "drift",
    "phases",
    "silent_failures",
    "intervals",
    "closure",
    "messages",
)


class Spec(Struct, frozen=True):
    """Everything that determines a trial.

    `phases` are the ticks of an interval at which nodes run their timeouts, in the order of their
    joining, again and again; empty: random ones. With `silent_failures` no sender is told of a
    failed send.
    `intervals` bounds the time to heal; None stands for the overlay's own bound. `messages` bounds
    what may be sent in all. `asked` is how a command line names the overlay, with the overlay's own
    options after it; empty stands for the overlay's name.
    """

    n: int
    seed: int
    start: str = "corrupt"
    faults: Schedule = ()
    scheduler: str = "fifo"
    delay: str = "uniform:1:50"
    drift: float = 0.0
    intervals: int | None = None
    closure: int = 10
    messages: int = MESSAGES_MAX
    asked: tuple[str, ...] = ()
    phases: str = ""
    silent_failures: bool = False

    def command(self, overlay: Overlay) -> str:
        """The command line that repeats this trial."""
        words = ["planaria", "sim", *(self.asked or (overlay.name,))]
        words += ["--n", str(self.n), "--seed", str(self.seed)]
        defaults = Spec(0, 0)
        for name in OPTIONS:
            value = getattr(self, name)
            if value != getattr(defaults, name):
                flag = f"--{name.replace('_', '-')}"
                words += [flag] if value is True else [flag, str(value)]
        for action in self.faults:
            words += ["--fault", str(action)]
        return shlex.join(words)


class Outcome(Struct):
    """How a trial ended.

    `bound` is how many intervals it had to heal, None if it never came so far; `delay` the longest
    that a message took then, in intervals.
    """

    legitimate: bool
    intervals: int
    messages: int
    violations: list[Violation]
    relapse: list[Violation]
    faults: list[Injection]
    ineffective: list[str]
    metrics: dict[str, Any] = field(default_factory=dict)
    members: int = 1  # at the end
    bound: int | None = None
    delay: float = 0.0
    promised: bool = True  # False: messages take longer than the overlay's promise allows

    @property
    def failure(self) -> tuple[str, str] | None:
        """Which promise was broken, and how; None if both were kept."""
        if not self.promised:
            return None
        if not self.legitimate:
            return "convergence", _summary(self.violations)
        return ("closure", _summary(self.relapse)) if self.relapse else None

    @property
    def tested(self) -> bool:
        """Had every fault an effect, and was anybody left to heal?"""
        return not self.ineffective and self.members > 0


class Trial:
    """A trial that can be watched while it runs; `run` does all of it."""

    def __init__(self, overlay: Overlay, spec: Spec, observers: Sequence[Observer] = ()) -> None:
        _check(spec)
        self.overlay, self.spec = overlay, spec
        self.simulator = Simulator(spec.seed, delay=parse_delay(spec.delay), drift=spec.drift)
        self.simulator.sent_max = spec.messages
        self.simulator.phases = parse_phases(spec.phases)
        self.simulator.detects_failed_sends = not spec.silent_failures
        for observer in [*observers, *([DeliveredOnce()] if overlay.delivers_once else [])]:
            self.simulator.watch(observer)
        rng = stream(spec.seed, "start")
        start = overlay.start(spec.start, spec.n, rng, self.simulator.rng)
        if (world := overlay.observer()) is not None:
            self.simulator.watch(world)
        self.book = overlay.book()
        if self.book is not None:
            in_force = spec.start == "legitimate"
            self.simulator.watch(Bookkeeper(self.book, overlay.subscriptions, in_force=in_force))
        for node in start.nodes:
            self.simulator.add(node)
        ids, links = list(self.simulator.nodes), stream(spec.seed, "senders")
        for target, message in start.channel:
            delay = 1 + int(rng.random() * INTERVAL)
            self.simulator.inject(target, message, delay, overlay.link_of(message, ids, links))
        use_scheduler(self.simulator, spec.scheduler, stream(spec.seed, "scheduler"))
        faults = compose(parse_schedule(start.schedule, f"start {spec.start}"), spec.faults)
        self.nemesis = Nemesis(self.simulator, overlay, faults)
        self.applications = Applications(self.simulator, overlay)
        self.n = overlay.population(self.simulator.states())
        self.bound: int | None = None
        self.found: list[Violation] = []  # when it was judged last
        self._wrong = spec.start != "legitimate"  # was it then? If nobody judged: may it have been?

    @property
    def time(self) -> float:
        """How long it has run, in intervals."""
        return self.simulator.tick / INTERVAL

    @property
    def delay(self) -> float:
        """The longest that a message takes from now on, in intervals."""
        return self.simulator.delay_max() / INTERVAL

    def violations(self) -> list[Violation]:
        """What is not legitimate at this moment: the states, or what the applications got."""
        found = self.overlay.violations(self.simulator.states(), self.simulator.channel())
        return found or ([] if self.book is None else self.book.violations(self.time))

    def judged(self) -> list[Violation]:
        """The same at the end of an interval: if it was not legitimate, the book begins anew.

        So it does if it was not at the interval's beginning: when that ended nobody saw. What was
        delivered wrongly counts once; what is missed counts until it is delivered.
        """
        found = self.found = self.violations()
        broken = ", ".join(sorted({it.invariant for it in found}))
        self.simulator.note("verdict", ENVIRONMENT, broken or "legitimate")
        before, self._wrong = self._wrong, any(it.invariant != MISSED for it in found)
        if self.book is not None and (before or self._wrong):
            self.book.illegitimate(self.time)
        return found

    def suffer(self) -> None:
        """Let the whole fault schedule happen: until all that it slowed down has come about."""
        while (due := self.nemesis.next_tick) is not None:
            self.applications.run(max(0, due - self.simulator.tick))
            self.nemesis.advance()
        self.applications.run(self.simulator.overdue() // INTERVAL * INTERVAL)
        calm = self.spec.start == "legitimate" and all(
            it.kind in WORKLOAD for it in self.nemesis.report
        )
        self._wrong = not calm
        if self.book is not None:
            self.book.within = max(self.book.within, self.overlay.arrival(self.delay))
            if not calm:
                self.book.illegitimate(self.time)

    def heal(self) -> Iterable[list[Violation]]:
        """Run interval by interval, yielding what is wrong at each end, until calm or the bound."""
        calm, self.bound = 0, self.spec.intervals or self._bound()
        for _ in range(self.bound + self.overlay.calm - 1):
            self.applications.run(INTERVAL)
            found = self.judged()
            yield found
            calm = 0 if found else calm + 1
            if calm == self.overlay.calm:
                return

    def run(self) -> Outcome:
        """All phases; a broken safety property raises `InvariantViolation` at once."""
        try:
            return self._run()
        except SafetyBroken as broken:
            raise self.violation(broken.checker, broken.detail, broken.tick) from None
        except TooManyMessages as storm:
            raise self.violation("messages", str(storm)) from None
        except PlanariaError:
            raise
        except Exception as error:
            raise self.violation("no-exception", _where(error)) from error

    def judge(self) -> tuple[Outcome, InvariantViolation | None]:
        """Run, and say how it ended; a broken promise is an answer, not an error."""
        try:
            outcome = self.run()
        except InvariantViolation as violation:
            found = [Violation(violation.checker, None, violation.detail)]
            return self.outcome(legitimate=False, violations=found), violation
        return outcome, self.violation(*outcome.failure) if outcome.failure else None

    def violation(self, checker: str, detail: str, tick: int | None = None) -> InvariantViolation:
        """The error for a promise that this trial broke, with the command that repeats it."""
        detail = self.with_names(detail)
        return InvariantViolation(
            checker,
            seed=self.spec.seed,
            tick=self.simulator.tick if tick is None else tick,
            detail=detail,
            replay=self.spec.command(self.overlay),
        )

    def with_names(self, text: str) -> str:
        """The same text with nodes called as people call them, not by their numbers."""

        def named(found: re.Match[str]) -> str:
            name = self.overlay.called(int(found[1]))
            return found[0] if name == found[1] else name

        return _NUMBER.sub(named, text)

    def outcome(self, *, legitimate: bool, violations: list[Violation]) -> Outcome:
        """The books of the trial so far; of one that was stopped, all there is to know."""
        return Outcome(
            legitimate=legitimate,
            intervals=self.simulator.interval,
            messages=self.simulator.sent,
            violations=violations,
            relapse=[],
            faults=self.nemesis.report,
            ineffective=self.nemesis.ineffective(),
            members=self.overlay.population(self.simulator.states()),
            bound=self.bound,
            delay=self.delay,
            promised=self.spec.intervals is not None or self.delay <= self.overlay.delay_max,
        )

    def _bound(self) -> int:
        """What the overlay promises."""
        n = self.simulator.joined
        more = 0 if self.simulator.detects_failed_sends else self.overlay.unnoticed(n)
        return min(INTERVALS_MAX, self.overlay.bound(n, self.delay) + more)

    def _run(self) -> Outcome:
        self.suffer()
        before = self.simulator.sent
        found, healed, messages, calm = self.violations(), 0, 0, 0
        for interval, now in enumerate(self.heal(), 1):
            if now or (found and not calm):  # not legitimate, or only since this interval
                healed, messages = interval, self.simulator.sent - before
            found, calm = now or found, 0 if now else calm + 1
        legitimate = calm >= self.overlay.calm
        outcome = self.outcome(legitimate=legitimate, violations=[] if legitimate else found)
        outcome.intervals, outcome.messages = healed, messages
        outcome.metrics = self.overlay.metrics(self.simulator.states())
        outcome.metrics |= self.overlay.totals(self.simulator.states())
        if self.book is not None and "delivered" not in outcome.metrics:  # a world may say more
            outcome.metrics |= structs.asdict(self.book.summary(self.time))
        if legitimate:
            outcome.relapse = self._relapse()
            outcome.metrics |= self._rates(outcome.metrics)
        return outcome

    def _rates(self, before: dict[str, Any]) -> dict[str, float]:
        """How much the overlay's totals grew per interval while it stayed legitimate."""
        now = self.overlay.totals(self.simulator.states())
        spent = max(1, self.spec.closure)
        return {f"{name}_per_interval": (now[name] - before[name]) / spent for name in now}

    def _relapse(self) -> list[Violation]:
        for _ in range(self.spec.closure):
            self.applications.run(INTERVAL)
            if found := self.judged():
                return found
        return []


def must_heal(overlay: Overlay, spec: Spec, observers: Sequence[Observer] = ()) -> Outcome:
    """Run a trial that must converge, stay legitimate, and whose faults must have had effect.

    Nothing could fail where messages are slower than any promise, so that is a failure too.
    """
    trial = Trial(overlay, spec, observers)
    outcome = trial.run()
    if not outcome.promised:
        slow = f"messages of {outcome.delay:g} intervals: nothing is promised; say `intervals`"
        raise trial.violation("promise", slow)
    if outcome.failure:
        raise trial.violation(*outcome.failure)
    if outcome.ineffective:
        raise trial.violation("effect", f"these faults did nothing: {outcome.ineffective}")
    return outcome


def _check(spec: Spec) -> None:
    bounds = {
        "n": (1, NODES_MAX),
        "intervals": (1, INTERVALS_MAX),
        "closure": (0, INTERVALS_MAX),
        "messages": (1, MESSAGES_MAX),
        "drift": (0, 0.5),
    }
    for name, (low, high) in bounds.items():
        value = getattr(spec, name)
        if value is not None and not low <= value <= high:
            raise UsageError(f"{name} {value}: between {low} and {high}")


def _where(error: Exception) -> str:
    """What a handler raised, and in which line."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} in {Path(last.filename).name}:{last.lineno}"


def _summary(violations: Sequence[Violation]) -> str:
    shown = "; ".join(str(violation) for violation in violations[:3])
    more = len(violations) - 3
    return f"{shown}; and {more} more" if more > 0 else shown
