"""Work on Spark ends soon at Ctrl-C and with one line at a failure, wherever it is."""

import os
import signal
import threading
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest
from msgspec import structs
from pyspark.sql import Row, SparkSession

import toy_study
from planaria.cli.main import main
from planaria.core.errors import UsageError
from planaria.spark import hunt
from planaria.spark.grid import crossed
from planaria.spark.watch import Stopped, SweepFailed, watched
from planaria.studies import compare
from planaria.studies import study as studies
from spark_lab import sleepy, sweep

pytest_plugins = ("spark_session",)

HUNT = ["hunt", "dht", "--seeds", "2", "--n", "1"]
COMPARE = ["compare", "--n", "6", "--topics", "2", "--events", "3", "--seeds", "1"]


def half() -> str:
    return "half of it is done"


def collect(spark: SparkSession, query: str) -> list[Row]:
    return spark.sql(query).collect()


def endless(spark: SparkSession) -> NoReturn:
    """Small actions one after another, at which somebody presses Ctrl-C."""
    threading.Timer(1.0, os.kill, [os.getpid(), signal.SIGINT]).start()
    while True:
        spark.range(10).count()


@pytest.mark.usefixtures("plain_ctrl_c")
def test_ctrl_c_between_many_small_actions_says_what_is_done_and_leaves_a_session_that_works(
    spark: SparkSession,
) -> None:
    with pytest.raises(Stopped, match=r"^interrupted: half of it is done$"):
        watched(spark, "work", lambda: endless(spark), half)
    assert spark.sparkContext.statusTracker().getActiveJobsIds() == []
    assert watched(spark, "work", spark.range(10).count, half) == 10


@pytest.mark.usefixtures("plain_ctrl_c")
def test_ctrl_c_stops_a_sweep_that_is_part_of_watched_work(
    spark: SparkSession, tmp_path: Path
) -> None:
    one = sweep(sleepy, crossed({"x": [1]}, range(100)), tmp_path)
    ended = threading.Event()

    def work() -> None:
        try:
            one.run(spark)
        finally:
            ended.set()

    def press() -> None:
        while not one.store.batches():
            ended.wait(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    with pytest.raises(Stopped, match=r"^interrupted: half of it is done$"):
        watched(spark, "work", work, half)
    assert ended.is_set()  # not only deserted: nobody runs what is left
    assert len(one.missing()) > 50


def test_what_spark_fails_with_is_one_line_and_a_mistake_in_python_stays_what_it_is(
    spark: SparkSession,
) -> None:
    for query in ("select raise_error('oh')", "select nothing from nowhere"):
        with pytest.raises(SweepFailed, match=r"^work: .+; half of it is done$") as raised:
            watched(spark, "work", partial(collect, spark, query), half)
        assert "\n" not in str(raised.value)
    with pytest.raises(KeyError, match="three"):
        watched(spark, "work", partial(dict[str, int]().pop, "three"), half)


def test_a_mistake_of_the_user_that_a_worker_found_comes_with_what_is_done(
    spark: SparkSession,
) -> None:
    def refuse(_: object) -> NoReturn:
        raise UsageError("cannot write there; choose another --out")

    numbers = spark.sparkContext.parallelize([1])
    with pytest.raises(UsageError, match=r"^cannot write there; choose .*; half of it is done$"):
        watched(spark, "work", lambda: numbers.map(refuse).collect(), half)


@pytest.mark.parametrize("words", [HUNT, COMPARE, ["reproduce"]])
def test_ctrl_c_while_a_command_makes_its_tables_is_one_line(
    words: list[str],
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    slow = structs.replace(toy_study.STUDY, tables=lambda _: endless(spark))
    monkeypatch.setattr(toy_study, "SLOW", slow, raising=False)
    monkeypatch.setattr(studies, "STUDIES", {"toy": "toy_study:SLOW"})
    monkeypatch.setattr(compare, "CONTENDERS", dict.fromkeys(("star",)))
    for module, name in ((compare, "table"), (hunt, "raised")):
        monkeypatch.setattr(module, name, lambda rows: endless(rows.sparkSession))
    assert main([*words, "--out", str(tmp_path / "out")]) == 130
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("planaria: interrupted: ")
    assert last.endswith(f"done in {tmp_path}/out; run it again to resume")
