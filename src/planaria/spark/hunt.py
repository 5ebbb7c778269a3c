"""The hunt for failing seeds: arbitrary states, fault schedules and schedulers, as a sweep.

Every seed is one trial. One that does not converge, does not stay legitimate or breaks a safety
property is a finding; a second sweep shrinks the findings to minimal scenarios. The trials that
healed give the time to legitimacy per class of faults.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow
import pyspark.sql.functions as sql
from msgspec import Struct
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession

from planaria import __version__
from planaria.core.chance import stream
from planaria.core.errors import InvariantViolation, UsageError, unknown
from planaria.core.ids import stable_hash
from planaria.simulator.delays import parse_delay
from planaria.simulator.engine import Observer
from planaria.simulator.links import SCHEDULERS
from planaria.simulator.schedule import (
    NAMED,
    compose,
    load_schedule,
    parse_schedule,
    print_schedule,
)
from planaria.simulator.shrink import shrink_failure
from planaria.simulator.trace import Recorder
from planaria.simulator.trial import NODES_MAX, OPTIONS, Outcome, Spec, Trial
from planaria.simulator.worlds.registry import REGISTERED, find_kind
from planaria.spark.checks import errors
from planaria.spark.grid import Cell, Value, rotated
from planaria.spark.metrics import percentiles
from planaria.spark.store import code_version
from planaria.spark.sweep import Result, Sweep, Work, batch_file

SHARE = 50  # trials of few nodes take some 10 to 250 ms each: a task is a matter of seconds
HEAD = 100  # rows that a hunt by other code must repeat to be counted with this one
PUBLICATIONS_MAX = 10_000  # more than any table holds; each is a broadcast
COLUMNS = {
    "legitimate": "bool",
    "healed_in": "int64",  # intervals from the end of the faults until legitimate
    "sent": "int64",  # messages, until legitimate
    "checker": "string",  # the promise that was broken; null: none
    "detail": "string",
    "bound": "int64",  # intervals that it had; null: it never came so far
    "delay_max": "double",  # the longest that a message took then, in intervals
    "promised": "bool",  # false: messages took longer than the overlay's promise allows
    "void": "bool",  # a fault changed nothing, or nobody was left: tested less than it says
}
SHRUNK_COLUMNS = {"smaller": "string", "checker": "string", "scenario": "string"}


class Target(Struct, frozen=True):
    """What is hunted in: an overlay with its options, and fault schedules by name.

    `reference` is how workers find the overlay, `asked` how a command line names it.
    """

    reference: str
    asked: tuple[str, ...]
    options: dict[str, Any]
    schedules: dict[str, str]

    @property
    def modules(self) -> tuple[str, ...]:
        """The module that has the overlay, if it is one of a package."""
        place = REGISTERED.get(self.reference, self.reference).rpartition(":")[0]
        return () if place.endswith(".py") else (place,)

    def spec(self, cell: Cell) -> Spec:
        """The trial of a cell."""
        given: Mapping[str, Any] = cell.parameters
        faults = parse_schedule(self.schedules[given["nemesis"]], given["nemesis"])
        spoken = parse_schedule(publications(given.get("publish", 0)), "--publish")
        fixed = {name: given[name] for name in ("n", *OPTIONS) if name in given}
        return Spec(seed=cell.seed, faults=compose(spoken, faults), asked=self.asked, **fixed)

    def command(self, spec: Spec) -> str:
        """The command line that repeats a trial."""
        return spec.command(find_kind(self.reference).make(**self.options))

    def replay(self, cell: Cell) -> str:
        """The command line that repeats the trial of a cell."""
        return self.command(self.spec(cell))

    def attempt(
        self, spec: Spec, *watchers: Observer
    ) -> tuple[Trial, Outcome, InvariantViolation | None]:
        """Run a trial, as `planaria sim` would."""
        kind = find_kind(self.reference)
        observers = [*watchers, *(checker() for checker in kind.checkers)]
        trial = Trial(kind.make(**self.options), spec, observers)
        return trial, *trial.judge()

    def try_cell(self, cell: Cell) -> Result:
        """One start of the hunt."""
        _, outcome, violation = self.attempt(self.spec(cell))
        summary = {
            "legitimate": outcome.legitimate,
            "healed_in": outcome.intervals,
            "sent": outcome.messages,
            "checker": violation.checker if violation else None,
            "detail": violation.detail if violation else None,
            "bound": outcome.bound,
            "delay_max": outcome.delay,
            "promised": outcome.promised,
            "void": not outcome.tested,
        }
        return Result(summary, failed=violation is not None)

    def shrink_cell(self, cell: Cell) -> Result:
        """The smallest trial found that breaks the same promise as this cell's."""
        spec = self.spec(cell)
        _, _, found = self.attempt(spec)
        if found is None:
            raise UsageError(f"seed {cell.seed} does not fail: nothing to shrink")

        def attempt(smaller: Spec) -> tuple[Trial, InvariantViolation | None]:
            trial, _, violation = self.attempt(smaller)
            return trial, violation

        small = shrink_failure(spec, found.checker, attempt)
        command = self.command(small)
        violation, trace = self._traced(small, command)
        text = f"# {violation.checker}: {violation.detail}\n# {command}\n"
        scenario = text + print_schedule(small.faults)
        summary = {"smaller": command, "checker": violation.checker, "scenario": scenario}
        return Result(summary, {"trace": trace}, failed=False)

    def _traced(self, spec: Spec, command: str) -> tuple[InvariantViolation, pyarrow.Table]:
        """Run a trial that was seen to fail, with all that happens in it as a table."""
        about = {"seed": str(spec.seed), "version": __version__, "replay": command}
        with TemporaryDirectory() as scratch:
            file = Path(scratch, "trace")
            with Recorder(file, "everything", about) as recorder:
                _, _, violation = self.attempt(spec, recorder)
            assert violation is not None
            return violation, parquet.read_table(file)


def version_of(target: Target, sources: Sequence[Path]) -> str:
    """The version of all that decides what a hunt finds."""
    return code_version(sources, [__name__, *target.modules])


def publications(count: int) -> str:
    """A schedule in which half of them are published before faults begin, half while they last."""
    if not 0 <= count <= PUBLICATIONS_MAX:
        raise UsageError(f"publish {count}: between 0 and {PUBLICATIONS_MAX}")
    halves = ((0.5, count - count // 2), (2.5, count // 2))
    return "".join(f"at {at} publish count={half}\n" for at, half in halves if half)


class Finding(Struct):
    """A trial that broke a promise; `smaller`, its `scenario` and `trace`, if it was shrunk.

    `shrink_error` is what shrinking raised, if it did, or that it killed its worker.
    """

    seed: int
    n: int
    checker: str
    detail: str
    replay: str
    smaller: str | None = None
    scenario: str | None = None
    trace: str | None = None
    shrink_error: str | None = None


class Hunt:
    """A campaign against one overlay: the sweep of its starts, and of its findings."""

    def __init__(
        self,
        target: Target,
        grid: Mapping[str, Sequence[Value]],
        seeds: Sequence[int],
        out: str,
        sources: Sequence[Path] = (),
    ) -> None:
        _check(target, grid)
        self.target, self.grid, self.seeds, self.sources = target, grid, seeds, sources
        work = Work("hunt", COLUMNS, target.try_cell, target.replay, target.modules)
        self.sweep = Sweep(work, rotated(grid, seeds), out, share=SHARE, sources=sources)
        self.version = version_of(target, sources)

    def findings(self, spark: SparkSession, rows: DataFrame, shrunk_max: int) -> list[Finding]:
        """All broken promises, small networks first; `shrunk_max` of them, of all kinds, shrunk."""
        broken = rows.where("checker is not null").orderBy("n", "seed")
        found = broken.select("cell", "seed", "n", "checker", "detail", "replay").collect()
        findings = {row.cell: Finding(*row[1:]) for row in found}
        chosen = diverse([(row.checker, row.detail) for row in found])[:shrunk_max]
        cells = [self.sweep.cells[found[at].cell] for at in chosen]
        if not cells:
            return list(findings.values())
        target = self.target
        work = Work("shrink", SHRUNK_COLUMNS, target.shrink_cell, target.replay, target.modules)
        sweep = Sweep(work, cells, self.sweep.store.below("shrunk"), sources=self.sources)
        sweep.run(spark)
        for row in sweep.rows(spark).collect():
            finding = findings[sweep.cells[row.cell].key("hunt")]
            if row.error is not None:
                finding.shrink_error = row.error
                continue
            name = f"findings/{row.checker}-seed{row.seed}.scenario"
            self.sweep.store.write(name, row.scenario.encode())
            finding.smaller = row.smaller
            finding.scenario = f"{self.sweep.store.shown}/{name}"
            finding.trace = f"{sweep.store.shown}/trace/{batch_file([row.cell])}"
        return list(findings.values())


def diverse(broken: Sequence[tuple[str, str]]) -> list[int]:
    """In which order to look at broken promises (checker, detail): one of each kind comes first.

    A kind is the checker with the first word of what it says: the invariant, or the exception.
    """
    seen: Counter[tuple[str, str]] = Counter()
    turns = []
    for place, (checker, detail) in enumerate(broken):
        kind = (checker, detail.split(" ", 1)[0])
        turns.append((seen[kind], place))
        seen[kind] += 1
    return [place for _, place in sorted(turns)]


def recovery(rows: DataFrame, by: Sequence[str]) -> DataFrame:
    """Intervals to legitimacy of the trials that healed, per start and class of faults, say.

    `times`, how many of them took how many intervals, can be added to those of other seeds.
    """
    share = sql.col("healed_in") / sql.col("bound")
    counted = rows.groupBy(*by).agg(
        sql.count("*").alias("starts"),
        sql.count_if(sql.col("checker").isNotNull() | sql.col("error").isNotNull()).alias("failed"),
        sql.count_if("void").alias("void"),
        sql.round(sql.max(sql.when(sql.col("legitimate"), share)), 2).alias("of_bound"),
    )
    healed = percentiles(rows.where("legitimate"), by, "healed_in").drop("runs")
    times = sql.array_sort(sql.collect_list(sql.struct("healed_in", "count")))
    timed = (
        rows.where("legitimate")
        .groupBy(*by, "healed_in")
        .count()
        .groupBy(*by)
        .agg(sql.map_from_entries(times).alias("times"))
    )
    return counted.join(healed, [*by], "left").join(timed, [*by], "left").orderBy(*by)


def head(rows: DataFrame) -> dict[str, str]:
    """The first seeds and a hash of what they gave: the same by all code with the same trials."""
    first = rows.orderBy("seed").limit(HEAD).select("seed", *COLUMNS).collect()
    digest = stable_hash(*(json.dumps([*row]) for row in first), bits=64)
    return {"seeds": f"{first[0].seed}:{first[-1].seed}", "rows": f"{digest:016x}"}


def raised(rows: DataFrame) -> list[dict[str, Any]]:
    """Trials that could not even be run, by what they raised."""
    return [row.asDict() for row in errors(rows).collect()]


def named_schedules(names: Sequence[str]) -> dict[str, str]:
    """Fault schedules by name or file; `all` stands for every built-in one."""
    asked = dict.fromkeys(one for name in names for one in (NAMED if name == "all" else [name]))
    return {name: print_schedule(load_schedule(name)) for name in asked}


def chosen_starts(target: Target, names: Sequence[str]) -> list[str]:
    """First states by name; `all` stands for every one that the overlay has."""
    overlay = find_kind(target.reference).make(**target.options)
    asked = dict.fromkeys(
        it for name in names for it in (overlay.starts if name == "all" else [name])
    )
    for start in asked:
        if start not in overlay.starts:
            raise unknown("start", str(start), ["all", *overlay.starts])
    return list(asked)


def publishes(target: Target) -> bool:
    """Can anybody in this overlay publish?"""
    overlay, rng = find_kind(target.reference).make(**target.options), stream(0, "publishes")
    nodes = overlay.start("legitimate", 3, rng, rng).nodes
    return any(overlay.publication(node.id, 0) is not None for node in nodes)


def chosen_schedulers(text: str) -> list[str]:
    """`all`, or some of them with commas between."""
    names = list(SCHEDULERS) if text == "all" else list(dict.fromkeys(text.split(",")))
    strange = [name for name in names if name not in SCHEDULERS]
    if strange:
        raise unknown("scheduler", strange[0], ["all", *SCHEDULERS])
    return names


def source_files(reference: str, schedules: Sequence[str]) -> list[Path]:
    """The files that decide what happens and are not part of this package."""
    overlay = [] if reference in REGISTERED else [reference.rpartition(":")[0]]
    names = [name for name in overlay if name.endswith(".py")]
    return [Path(name) for name in [*names, *(it for it in schedules if it not in NAMED)]]


def _check(target: Target, grid: Mapping[str, Sequence[Value]]) -> None:
    """What a trial would refuse, refused before a hundred thousand of them do."""
    overlay = find_kind(target.reference).make(**target.options)
    for n in grid["n"]:
        if not 1 <= int(n) <= NODES_MAX:
            raise UsageError(f"n {n}: between 1 and {NODES_MAX}")
    for delay in grid.get("delay", ()):
        parse_delay(str(delay))
    for count in grid.get("publish", ()):
        publications(int(count))
    Trial(overlay, target.spec(Cell({name: values[0] for name, values in grid.items()}, 0)))
