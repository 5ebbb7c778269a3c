"""The demo: a real network is broken and heals, and its exit code tells the truth."""

import asyncio
import io
import json
from itertools import islice
from pathlib import Path

import pytest
from msgspec.structs import replace

from planaria.chaos.run import FaultReport, Report
from planaria.cli import demo
from planaria.cli.demo import closing
from planaria.core.scenario import parse_schedule
from planaria.demo import run as demo_run
from planaria.demo import screen, story
from planaria.demo.aggregate import Aggregate, Answer, plain, same
from planaria.demo.flights import bodies
from planaria.demo.run import Outcome, play
from planaria.lab.contest.contest import Contest, Figures


class Counted(Aggregate):
    """Stands for Spark: counts what a subscriber of its own would be given."""

    wrong = False

    def start(self) -> None:
        self.answer = Answer([("XX", 1, None)])  # it reads

    def read(self, context: Path) -> None:
        assert context.exists()

    def stop(self) -> None:
        pass


def test_flights_are_real_and_no_two_are_equal() -> None:
    some = list(islice(bodies(), 1000))
    assert len(set(some)) == 1000
    assert json.loads(some[0]) == {
        "number": 0, "carrier": "UA", "origin": "EWR", "dest": "IAH", "delay": 2.0,
    }  # fmt: skip


def test_a_plain_loop_answers_what_spark_is_asked() -> None:
    told = [
        b'{"carrier": "UA", "delay": 4}', b'{"carrier": "UA", "delay": 8}',
        b'{"carrier": "AA"}', b"garbage", b"[]", b'{"delay": 3}',
    ]  # fmt: skip
    assert plain(told).rows == [("UA", 2, 6.0), ("AA", 1, None)]
    assert plain(told).flights == 3


@pytest.mark.parametrize(
    "other",
    [[("UA", 3, 6.0)], [("UA", 2, 6.1)], [("UA", 2, None)], [("AA", 2, 6.0)], []],
)
def test_a_wrong_answer_is_seen(other: list[tuple[str, int, float | None]]) -> None:
    right = Answer([("UA", 2, 6.0)])
    assert not same(Answer(other), right)
    assert same(Answer([("UA", 2, 6.0 + 1e-12)]), right)


def test_every_chapter_is_a_fault_that_can_be_done() -> None:
    schedule = parse_schedule("\n".join(it.action for it in story.STORY), "demo")
    assert [it.kind for it in schedule] == ["restart", "partition", "restart", "flip", "corrupt"]
    assert all(len(it.told) <= 44 for it in story.STORY), "80 columns"


def test_a_network_is_broken_and_heals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_run, "NODES", 4)
    chapters = (story.Chapter("at 0 corrupt count=1", "scramble a memory"),)
    monkeypatch.setattr(demo_run, "STORY", chapters)
    monkeypatch.setattr(screen, "STORY", chapters)
    monkeypatch.setattr(demo_run, "Aggregate", Counted)
    monkeypatch.setattr(demo_run, "SPARK_SECONDS", 1.0)
    stream = io.StringIO()
    outcome = asyncio.run(play(stream, None))
    assert outcome.wrong == []
    assert outcome.report.lost == outcome.report.twice == 0
    assert outcome.report.published > 0
    assert [it.affected for it in outcome.report.faults] == [1]
    assert not outcome.spark, "what stands for Spark never counts"
    assert not outcome.good
    shown = stream.getvalue()
    assert "4 processes" in shown
    assert "scramble a memory (" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_a_plain_broker_loses_everything_and_says_nothing() -> None:
    found = Contest("star", "busiest", 12, 1, 40, 7).run()
    assert found.lost_after == 1.0


FIGURES = Figures(0, 0, 0, 0, 0, 0, 0, 0, 0, lost_after=1.0)


def outcome(**told: object) -> Outcome:
    report = Report(5, 5, 70, 0, 0, 0, True, 0, [FaultReport("at 0 crash count=1", 1, 2.0)])
    usual = {"report": report, "wrong": [], "spark": True, "failure": None, "counted": 5}
    return Outcome(**{**usual, "broker": FIGURES, **told})  # type: ignore[arg-type]


def test_only_a_good_end_is_called_good() -> None:
    assert outcome().good
    assert not outcome(wrong=["2 deliveries came twice"]).good
    assert not outcome(spark=False).good
    destroyed = replace(outcome().report, destroyed=1)
    assert not outcome(report=destroyed).good, "excused is not kept"
    assert any("destroyed 1" in it for it in closing(outcome(report=destroyed)))
    assert "WRONG: lost" in closing(outcome(wrong=["lost"]))
    assert any(
        "NOT right (no Java)" in it for it in closing(outcome(spark=False, failure="no Java"))
    )
    assert all(len(line) <= 80 for line in closing(outcome()))


def test_the_command_exists() -> None:
    assert demo.demo.name == "demo"
