"""Two sweeps of a reproduction run at once, and end together: at an error, at Ctrl-C, when done."""

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from planaria.spark.grid import Cell, crossed
from planaria.spark.progress import Bars, Meter
from planaria.spark.watch import Parts, Stopped, SweepFailed, watched
from planaria.studies.facts import Summed
from planaria.studies.judge import Asked, only
from planaria.studies.reproduce import Reproduction
from planaria.studies.study import VERDICTS, Experiment, Study
from spark_lab import Run, Terminal, meeting, sleepy

pytest_plugins = ("spark_session",)

ENDLESS = 3000  # cells of `sleepy`: ten minutes of two cores


def experiment(name: str, run: Run, cells: Sequence[Cell]) -> Experiment:
    return Experiment(name, {"value": "float64"}, run, cells, Summed(("x",), {"value": "value"}))


def reproduction(out: Path, *experiments: Experiment) -> Reproduction:
    """Of a study that runs these and asks nothing of them."""
    study = Study(
        "toy", "A toy", "Nobody.", VERDICTS, lambda _: list(experiments),
        lambda _: Asked((), ()), lambda _: only(), lambda _: {}, lambda _: {}, "",
    )  # fmt: skip
    return Reproduction([study], "quick", str(out))


def left(one: Reproduction, name: str) -> int:
    return len(one.sweeps["toy"][name].missing())


def jobs(spark: SparkSession) -> list[int]:
    return list(spark.sparkContext.statusTracker().getActiveJobsIds())


def test_the_next_sweep_begins_while_one_runs(spark: SparkSession, tmp_path: Path) -> None:
    """Each has one cell, which waits for the other's."""
    cells = [crossed({"x": [x], "place": [str(tmp_path)]}, [0]) for x in (0, 1)]
    them = [experiment(f"sweep-{x}", meeting, of) for x, of in enumerate(cells)]
    one = reproduction(tmp_path / "out", *them)
    one.run(spark)
    sweeps = one.sweeps["toy"].values()
    assert [it.rows(spark).collect()[0]["value"] for it in sweeps] == [1.0, 1.0]


def long(name: str) -> Experiment:
    return experiment(name, sleepy, crossed({"x": [1]}, range(ENDLESS)))


def when_begun(one: Reproduction, do: Callable[[], None]) -> None:
    """Do this as soon as any sweep has a first result."""
    while not any(it.store.batches() for it in one.sweeps["toy"].values()):
        time.sleep(0.05)
    do()


def test_a_sweep_that_fails_ends_the_one_that_runs_and_others_never_begin(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = reproduction(tmp_path, *map(long, ("first", "second", "third", "fourth")))

    def fail() -> None:
        raise SweepFailed("no space left")

    second = one.sweeps["toy"]["second"]
    monkeypatch.setattr(second, "run", lambda *_: when_begun(one, fail))
    with pytest.raises(SweepFailed, match=r"^no space left$"):
        one.run(spark)
    assert jobs(spark) == []
    assert 0 < left(one, "first") < ENDLESS
    assert left(one, "fourth") == ENDLESS


@pytest.mark.usefixtures("plain_ctrl_c")
def test_ctrl_c_ends_both_sweeps_and_none_begins_afterwards(
    spark: SparkSession, tmp_path: Path
) -> None:
    one = reproduction(tmp_path, *map(long, ("first", "second", "third")))
    press = partial(os.kill, os.getpid(), signal.SIGINT)
    pressing = threading.Thread(target=when_begun, args=(one, press))
    pressing.start()
    with pytest.raises(Stopped, match=r"^interrupted: .* of 9,000 simulations are done in .*"):
        one.run(spark)
    pressing.join()
    assert jobs(spark) == []
    assert left(one, "third") == ENDLESS
    time.sleep(1.0)  # cells that ran when it was pressed
    done = left(one, "first"), left(one, "second")
    time.sleep(1.0)
    assert (left(one, "first"), left(one, "second")) == done


def test_parts_begin_in_order_and_the_first_that_fails_is_what_is_raised(
    spark: SparkSession,
) -> None:
    begun: list[str] = []

    def part(name: str, error: Exception | None = None) -> None:
        begun.append(name)
        if error is not None:
            raise error

    def works(pool: ThreadPoolExecutor, *errors: Exception | None) -> None:
        with Parts(spark) as parts:
            for at, error in enumerate(errors):
                parts.give(pool, part, f"part {at}", error)

    with ThreadPoolExecutor(1) as pool:
        watched(spark, "good", partial(works, pool, None, None, None), str)
        assert begun == ["part 0", "part 1", "part 2"]
        with pytest.raises(KeyError, match="first"):
            watched(spark, "bad", partial(works, pool, None, KeyError("first"), None), str)


def test_sweeps_that_run_at_once_have_a_bar_each_and_one_that_ended_has_none() -> None:
    bars = Bars(Terminal())
    assert bars.shown is not None
    with bars, Meter("first", 1000, 400, bars) as first:
        with Meter("second", 50, 0, bars) as second:
            first.show(100, 7)
            second.show(20, 0)
            shown = [(it.description, it.completed, it.total) for it in bars.shown.tasks]
            assert shown == [("first", 500, 1000), ("second", 20, 50)]
        assert [it.description for it in bars.shown.tasks] == ["first"]
        first.show(200, 7)
        assert [it.completed for it in bars.shown.tasks] == [600]
