"""The gallery: each incident is a file that says what happened, and a schedule that repeats it.

The same schedule runs on a naive protocol and on Planaria. After it, and after the time to heal,
every peer publishes once more: what is still lost then is lost for good.
"""

import tomllib
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from functools import partial
from importlib.resources import files
from typing import Any

from msgspec import Struct, convert

from planaria.core.book import Book, Due
from planaria.core.errors import UsageError, unknown
from planaria.core.node import Publish, Subscribe
from planaria.core.overlay import Overlay
from planaria.core.topics import matches
from planaria.lab.incidents import naive, naive_logs, naive_others, naive_variants, worlds
from planaria.lab.incidents.safeguards import SAFEGUARDS, Safeguard
from planaria.simulator.checkers import Bookkeeper, SafetyBroken
from planaria.simulator.delays import INTERVAL
from planaria.simulator.schedule import Schedule, parse_schedule
from planaria.simulator.trial import Outcome, Spec, Trial

SCENARIOS = files("planaria.lab.incidents") / "scenarios"
PATIENCE = 100  # intervals for a naive protocol to recover; Planaria has its own bound
WITHIN = 2  # intervals for a publication to arrive, and for a subscription to count
AFTERWARDS = 24  # intervals in which the last publications must arrive
AFTER = 10_000  # from here on they are numbered

NAIVE: Mapping[str, type[naive.Mesh]] = {
    it.name: it
    for module in (naive, naive_variants, naive_logs, naive_others)
    for it in vars(module).values()
    if isinstance(it, type) and issubclass(it, naive.Mesh)
}
PLANARIA: Mapping[str, Callable[[], Overlay]] = {
    "ring": worlds.Ring,
    "ring under attack": worlds.AttackedRing,
    "ring with damaged disks": worlds.DamagedDiskRing,
    "ring with garbled disks": worlds.GarbledDiskRing,
    "mobile on a star": worlds.StarOverlay,
}


class Incident(Struct, frozen=True, forbid_unknown_fields=True):
    """What happened to whom, and how it is repeated.

    `naive` and `planaria` name who runs the schedule. With `history` whoever joins later is owed
    what was published before. `checks` are run besides: what stabilization alone does not give.
    """

    name: str
    title: str
    source: tuple[str, ...]
    happened: str
    cause: str
    naive: str
    schedule: str
    n: int = 8
    seed: int = 1
    planaria: str = "ring"
    history: bool = False
    checks: tuple[str, ...] = ()

    @property
    def faults(self) -> Schedule:
        """The schedule, parsed."""
        return parse_schedule(self.schedule, f"incident {self.name}")


class Run(Struct):
    """What became of one protocol under an incident."""

    outcome: Outcome
    wrong: list[str]  # in the end
    replay: str
    dues: list[tuple[float, float | None]]  # what was owed: since when, and until when
    twice: int
    after: float  # when everybody published once more

    @property
    def lost(self) -> int:
        """How many deliveries never came."""
        return sum(when is None for _, when in self.dues)

    @property
    def recovered(self) -> bool:
        """Is it legitimate for good, and had every fault its effect?"""
        return self.outcome.legitimate and not self.outcome.relapse and self.outcome.tested


class Row(Struct, frozen=True):
    """An incident in one line."""

    name: str
    source: str
    naive: str
    healed: bool
    intervals: int
    lost: int
    twice: int
    naive_lost: int
    naive_twice: int
    checks: tuple[Safeguard, ...] = ()


class Story(Struct):
    """An incident with both runs and its checks."""

    incident: Incident
    naive: Run
    planaria: Run
    checks: tuple[Safeguard, ...]

    @property
    def row(self) -> Row:
        """The line of the table; healed: legitimate, nothing lost or twice, all checks hold."""
        ours, theirs = self.planaria, self.naive
        whole = ours.recovered and not ours.lost and not ours.twice
        return Row(
            name=self.incident.name,
            source=", ".join(self.incident.source),
            naive=verdict(theirs),
            healed=whole and all(it.held for it in self.checks),
            intervals=ours.outcome.intervals,
            lost=ours.lost,
            twice=ours.twice,
            naive_lost=theirs.lost,
            naive_twice=theirs.twice,
            checks=self.checks,
        )


def verdict(run: Run) -> str:
    """`stuck`: its tables stay wrong; `lost`: they are right again, and deliveries are missing."""
    if not run.recovered:
        return "stuck"
    return "lost" if run.lost else "healed"


def names() -> list[str]:
    """All incidents, in the order of the gallery."""
    found = (it.name for it in SCENARIOS.iterdir() if it.name.endswith(".toml"))
    numbered = sorted(found, key=lambda it: int(it.partition("-")[0]))
    return [it.removesuffix(".toml").partition("-")[2] for it in numbered]


def load(name: str) -> Incident:
    """The incident called `name`. Raises UsageError if there is none."""
    for file in SCENARIOS.iterdir():
        if file.name.removesuffix(".toml").partition("-")[2] == name:
            fields: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
            return convert({"name": name, **fields}, Incident)
    raise unknown("incident", name, names())


def tell(incident: Incident) -> Story:
    """Run an incident: the naive protocol, Planaria, and the checks."""
    return Story(
        incident,
        run(incident, NAIVE[incident.naive], PATIENCE),
        run(incident, PLANARIA[incident.planaria], None),
        tuple(SAFEGUARDS[it]() for it in incident.checks),
    )


def run(incident: Incident, make: Callable[[], Overlay], intervals: int | None) -> Run:
    """Run the schedule on one protocol, let it heal, and have everybody publish once more.

    A naive one has so many `intervals`, and what it delivers once too often is in the book.
    Planaria has its own bound, and raises SafetyBroken.
    """
    overlay = make()
    place = f"{make.__module__}:{make.__qualname__}"
    spec = Spec(
        incident.n,
        incident.seed,
        "legitimate",
        incident.faults,
        intervals=intervals,
        asked=(place,),
    )
    book = Book(_wants, within=WITHIN, history=incident.history, own=False)
    keeper = Bookkeeper(book, overlay.subscriptions, in_force=True)
    trial = Trial(overlay, spec, [keeper])
    try:
        outcome, _ = trial.judge()
        after = trial.time
        with nullcontext() if intervals is None else suppress(SafetyBroken):
            _publish_once_more(trial)
    finally:
        getattr(overlay, "close", lambda: None)()
    owed = [(it.deadline - WITHIN, book.when(it)) for it in _owed(book, trial)]
    known = book.published
    twice = sum(it.kind == "twice" and it.id in known for it in book.breaches)
    wrong = [trial.with_names(str(it)) for it in outcome.violations + outcome.relapse]
    return Run(outcome, wrong, spec.command(overlay), owed, twice, after)


def _wants(subscription: Subscribe, publication: Publish) -> bool:
    return matches(subscription.pattern, publication.topic)


def _owed(book: Book, trial: Trial) -> list[Due]:
    """What was due to those who live."""
    return [it for it in book.due(trial.time) if it.client[0] in trial.simulator.nodes]


def _publish_once_more(trial: Trial) -> None:
    simulator = trial.simulator
    for number, id in enumerate(sorted(simulator.nodes), AFTER):
        command = trial.overlay.publication(id, number)
        if command is not None:
            _ask(partial(simulator.command, id, command))
            simulator.run(INTERVAL // 10)
    simulator.run(AFTERWARDS * INTERVAL)


def _ask(publish: Callable[[], None]) -> None:
    """Publish, unless the node has no subscription to publish with."""
    try:
        publish()
    except UsageError:
        return
