"""Sweeps: every cell once, whatever raises, dies or is interrupted on the way."""

import io
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from planaria.core.errors import UsageError
from planaria.spark.grid import crossed
from planaria.spark.progress import LINE_SECONDS, Bars, Meter, duration
from planaria.spark.store import Store
from planaria.spark.sweep import Result, Sweep, Work, run_batch
from planaria.spark.watch import Stopped, SweepFailed
from spark_lab import (
    Terminal,
    contents,
    deadly,
    fragile,
    mortal,
    replay,
    sleepy,
    sweep,
    times,
    traced,
    work,
)

pytest_plugins = ("spark_session",)


def test_every_cell_runs_once_and_small_ones_share_a_task(
    spark: SparkSession, tmp_path: Path
) -> None:
    cells = crossed({"x": [1, 2, 3]}, range(40))
    one = sweep(times, cells, tmp_path, share=20)
    assert one.run(spark) == 120
    rows = one.rows(spark).collect()
    assert sorted((row.x, row.seed, row.value) for row in rows) == sorted(
        (x, seed, float(x * seed)) for x in (1, 2, 3) for seed in range(40)
    )
    assert {row.replay for row in rows if row.x == 1 and row.seed == 7} == {
        "planaria sim 1 --seed 7"
    }
    assert len(one.store.batches()) == 15  # of 8 cells: 8 batches per core, two cores
    table = one.store.table(spark, "rows", one.store.schema("rows"))
    assert table.count() == 40 * (1 + 2 + 3)
    assert table.join(one.rows(spark), "cell").where("row >= x").count() == 0
    assert one.run(spark) == 0


def test_a_cell_gives_the_same_bytes_in_a_worker_and_in_this_process(
    spark: SparkSession, tmp_path: Path
) -> None:
    there = sweep(traced, crossed({"x": [1, 2, 5]}, range(4)), tmp_path / "there", share=2)
    there.run(spark)
    here = Store(str(tmp_path / "here"))
    for batch in there.store.batches():
        keys = there.store.column(batch, "cell")
        assert run_batch(there.work, here, [there.cells[key] for key in keys]).batch == batch
    files = contents(tmp_path / "there")
    del files["sweep.json"]
    assert files == contents(tmp_path / "here")
    assert len([name for name in files if name.startswith("trace/")]) == len(files) / 2 > 3


def test_a_simulation_that_raises_is_a_row_with_its_replay_command(
    spark: SparkSession, tmp_path: Path
) -> None:
    one = sweep(fragile, crossed({"x": [1, 2, 3]}, range(2)), tmp_path)
    assert one.run(spark) == 6
    rows = one.rows(spark)
    errors = rows.where("error is not null").orderBy("seed").collect()
    assert [(row.x, row.seed, row.value, row.replay) for row in errors] == [
        (3, seed, None, f"planaria sim 3 --seed {seed}") for seed in range(2)
    ]
    assert errors[0].error.startswith("KeyError: 'three' in spark_lab.py:")
    assert rows.where("error is null and value is not null").count() == 4
    with pytest.raises(KeyError, match="three"):
        one.alone(errors[0].cell)
    with pytest.raises(UsageError, match="no cell"):
        one.alone("nonsense")


def test_a_worker_that_dies_is_replaced(spark: SparkSession, tmp_path: Path) -> None:
    cells = crossed({"marker": [str(tmp_path / "marker")]}, range(1))
    silent = Work("mortal", {"value": "float64"}, mortal, lambda _: "")
    one = Sweep(silent, cells, str(tmp_path / "out"))
    assert one.run(spark) == 1
    assert one.rows(spark).first()["value"] == 1.0  # type: ignore[index]


def test_cells_that_always_kill_their_worker_are_error_rows_and_the_sweep_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Two of them in one batch: each way through it finds one."""
    one = sweep(deadly, crossed({"x": [1, 2, 3, 4, 5, 6]}, range(1)), tmp_path, share=6)
    one._batches = lambda todo, cores: [[one.cells[key] for key in todo]]  # type: ignore[method-assign]
    assert one.run(spark) == 6
    rows = {row.x: row for row in one.rows(spark).collect()}
    assert [x for x, row in rows.items() if row.error] == [3, 5]
    assert (rows[3].error, rows[3].replay) == ("the worker died", "planaria sim 3 --seed 0")
    assert one.missing() == []
    assert one.store.marked() == []


def test_a_worker_that_dies_of_something_else_ends_the_sweep_and_not_what_is_done(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The command that repeats a cell kills it: there is no row to be had."""
    fatal = Work("fatal", {"value": "float64"}, times, lambda _: os._exit(9))
    one = Sweep(fatal, crossed({"x": [1]}, range(1)), str(tmp_path))
    complaint = r"died repeatedly; 0 of 1 simulations are done.*run it again to resume"
    with pytest.raises(SweepFailed, match=complaint):
        one.run(spark)


def test_ctrl_c_stops_soon_keeps_what_is_done_and_the_same_call_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    cells = crossed({"x": [1]}, range(20))
    one = sweep(sleepy, cells, tmp_path)

    def press() -> None:
        while len(one.store.batches()) < 3:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    complaint = r"interrupted: \d+ of 20 simulations are done in .*; run it again to resume"
    with pytest.raises(Stopped, match=complaint):
        one.run(spark)
    left = len(one.missing())
    assert 0 < left <= 17
    # On a busy machine a worker may end and write its batch after that.
    assert 0 < sweep(sleepy, cells, tmp_path).run(spark) <= left
    assert one.rows(spark).count() == 20


def test_a_place_that_a_worker_cannot_write_to_is_one_line(
    spark: SparkSession, tmp_path: Path
) -> None:
    one = sweep(times, crossed({"x": [1]}, range(1)), tmp_path)
    (tmp_path / "summary").write_text("a file where a directory should be")
    with pytest.raises(UsageError, match=r"cannot (write|read) .*summary") as raised:
        one._act(spark, [list(one.cells.values())], Meter("x", 1, 0, Bars(io.StringIO())))
    assert "\n" not in str(raised.value)


def test_rows_are_not_given_out_while_cells_are_missing(
    spark: SparkSession, tmp_path: Path
) -> None:
    cells = crossed({"x": [1, 2]}, range(2))
    sweep(times, cells[:3], tmp_path).run(spark)
    with pytest.raises(UsageError, match="1 of 4 cells missing"):
        sweep(times, cells, tmp_path).rows(spark)
    assert sweep(times, cells, tmp_path).run(spark) == 1


def test_columns_have_one_meaning_and_cells_are_there_once(tmp_path: Path) -> None:
    cells = crossed({"x": [1]}, range(1))
    with pytest.raises(UsageError, match="seed is the name of two"):
        Sweep(Work("w", {"seed": "int64"}, times, replay), cells, str(tmp_path))
    with pytest.raises(UsageError, match="error is the name of two"):
        Sweep(work(), crossed({"error": [1]}, range(1)), str(tmp_path))
    with pytest.raises(UsageError, match="twice"):
        Sweep(work(), [*cells, *cells], str(tmp_path))
    with pytest.raises(UsageError, match="at least one cell"):
        Sweep(work(), [], str(tmp_path))
    assert contents(tmp_path) == {}


def test_a_result_without_a_promised_column_is_an_error_row(tmp_path: Path) -> None:
    lacking = Work("w", {"value": "int64"}, lambda _: Result({}), replay)
    report = run_batch(lacking, Store(str(tmp_path)), crossed({"x": [1]}, range(1)))
    assert report.failed == 1


def test_progress_is_plain_lines_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    stream = io.StringIO()
    with Bars(stream) as bars, Meter("hunt", 1000, 400, bars) as meter:
        for done in (0, 5, 100, 100, 600):
            meter.show(done, done // 50)
            now += LINE_SECONDS
    assert stream.getvalue().splitlines() == [
        "planaria: hunt: 405 of 1,000, 30 a minute, 19 min 50 s left, 0 failed",
        "planaria: hunt: 500 of 1,000, 300 a minute, 1 min 40 s left, 2 failed",
        "planaria: hunt: 1,000 of 1,000, 900 a minute, 0 s left, 12 failed",
    ]


def test_progress_is_a_bar_in_a_terminal() -> None:
    stream = Terminal()
    with Bars(stream) as bars, Meter("hunt", 1000, 400, bars) as meter:
        meter.show(100, 7)
    assert "500/1000" in stream.getvalue()
    assert "7 failed" in stream.getvalue()


def test_durations_are_said_as_people_say_them() -> None:
    assert [duration(it) for it in (0.4, 59.9, 61, 3599, 7260)] == [
        "0 s",
        "1 min 0 s",
        "1 min 1 s",
        "59 min 59 s",
        "2 h 1 min",
    ]
