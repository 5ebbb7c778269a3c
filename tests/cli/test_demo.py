"""The demo: a real network is broken and heals, and its exit code tells the truth."""

import asyncio
import io
import json
import re
from collections import deque
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from planaria.chaos.applications import Asked, Given
from planaria.chaos.faults import Injection
from planaria.chaos.run import FaultReport, Report
from planaria.chaos.watch import Look
from planaria.cli import demo
from planaria.cli.demo import closing
from planaria.core.scenario import parse_schedule
from planaria.demo import run as demo_run
from planaria.demo import screen, story
from planaria.demo.aggregate import TRIES, Aggregate, Answer, plain, same
from planaria.demo.flights import bodies
from planaria.demo.run import Outcome, opening, play
from planaria.demo.seen import Seen
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
    payloads = [
        b'{"carrier": "UA", "delay": 4}', b'{"carrier": "UA", "delay": 8}',
        b'{"carrier": "AA"}', b"garbage", b"[]", b'{"delay": 3}',
    ]  # fmt: skip
    assert plain(payloads).rows == [("UA", 2, 6.0), ("AA", 1, None)]
    assert plain(payloads).flights == 3


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
    assert all(len(it.title) <= 44 for it in story.STORY), "80 columns"


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
    assert "  healed in " in shown
    assert re.search(r"late \d+, twice 0, still missing ", shown), "how late hangs on the load"
    failed = ", ".join(outcome.failed[0]) or screen.NOTHING
    assert f"  failed: {failed}\n" in shown.replace("\n          ", " ")
    assert max(map(len, shown.splitlines())) <= 80


def test_a_plain_broker_loses_everything_and_says_nothing() -> None:
    found = Contest("star", "busiest", 12, 1, 40, 7).run()
    assert found.lost_after == 1.0


FIGURES = Figures(0, 0, 0, 0, 0, 0, 0, 0, 0, lost_after=1.0)


def outcome(**changes: object) -> Outcome:
    report = Report(5, 5, 70, 0, 0, 0, True, 0, [FaultReport("at 0 crash count=1", 1, 2.0)])
    usual = {"report": report, "failed": [[]], "wrong": [], "spark": True, "failure": None}
    usual |= {"counted": 5}
    return Outcome(**{**usual, "broker": FIGURES, **changes})  # type: ignore[arg-type]


def test_only_a_good_end_is_called_good() -> None:
    assert outcome().good
    assert not outcome(wrong=["2 deliveries came twice"]).good
    assert not outcome(spark=False).good
    destroyed = replace(outcome().report, destroyed=1)
    assert not outcome(report=destroyed).good, "excused is not kept"
    assert any("all their copies 1" in it for it in closing(outcome(report=destroyed)))
    assert "WRONG: lost" in closing(outcome(wrong=["lost"]))
    assert any(
        "NOT right (no Java)" in it for it in closing(outcome(spark=False, failure="no Java"))
    )
    assert all(len(line) <= 80 for line in closing(outcome()))


def test_the_table_tells_what_failed_in_80_columns() -> None:
    names = ["unreachable", "database", "ring", "shortcuts", "publications"]
    titles = [it.title for it in story.STORY]
    fault = outcome().report.faults[0]
    report = replace(outcome().report, faults=[fault, replace(fault, seconds=None)] + [fault] * 3)
    lines = demo.table(titles, outcome(report=report, failed=[names, [], *[["ring"]] * 3]))
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    assert all(it in text for it in (*names, *titles, "2.0 s", "never", screen.NOTHING))


class Lived:
    """A run as `Seen` looks at it: four looks, a reader, and one publication."""

    def __init__(self) -> None:
        looks = [
            Look(0.0, 1.0, ["before"], ["store"]),
            Look(2.5, 3.0, ["x", "y"], ["ring", "label"]),
            Look(4.5, 5.0, ["z"], ["database", "ring"]),
            Look(6.5, 7.0, [], []),
        ]
        self.watch = SimpleNamespace(looks=deque(looks))
        self.injections = [Injection(parse_schedule("at 0 crash", "x")[0], began=2.0, ended=4.0)]
        one = Asked(0, b"a", 0, asked=1.0, acknowledged=2.0, id=b"A")
        self.applications = SimpleNamespace(
            asked=[one], acknowledged=[one], given=[], had={}, readers=[0, 1], time=30.0
        )


def test_what_failed_is_what_looks_saw_since_the_fault() -> None:
    run = Lived()
    seen = Seen(run)  # type: ignore[arg-type]
    seen.look()
    run.watch.looks.popleft()  # a watch forgets
    seen.look()
    (fault,) = run.injections
    assert seen.failed(fault) == ["ring", "label", "database"]
    fault.seconds = 0.2  # healed before the third look
    assert seen.failed(fault) == ["ring", "label"]


def test_late_twice_and_missing_are_counted_as_they_come() -> None:
    run = Lived()
    seen = Seen(run)  # type: ignore[arg-type]
    seen.look()
    assert (seen.late, seen.twice, seen.missing) == (0, 0, 2)
    run.applications.given = [Given(11.0, 0, b"A", b"a"), Given(11.5, 1, b"A", b"a")]
    run.applications.had = {0: {b"A"}, 1: {b"A"}}
    seen.look()
    assert (seen.late, seen.twice, seen.missing) == (1, 0, 0), "ten intervals are in time"
    run.applications.given.append(Given(11.0, 0, b"A", b"a"))
    seen.look()
    assert (seen.late, seen.twice, seen.missing) == (1, 1, 0)


def test_the_opening_fits_into_80_columns() -> None:
    lines = opening("http://127.0.0.1:40000/?token=" + "x" * 22)
    assert lines[0].startswith("dashboard: http")
    assert max(map(len, lines)) <= 80
    assert not any("dashboard" in it for it in opening(None))


def test_the_command_exists() -> None:
    assert demo.demo.name == "demo"


@pytest.mark.parametrize("failures", [1, TRIES])
def test_a_query_that_failed_is_asked_again_some_times(failures: int) -> None:
    class Query(Aggregate):
        asked = 0

        def _query(self, spark: object) -> None:
            self.asked += 1
            if self.asked <= failures:
                raise RuntimeError("a worker did not start")

    found = Query("flights", None)
    if failures < TRIES:
        found._answer_until_the_end(None)  # type: ignore[arg-type]
        assert found.asked == failures + 1
        return
    with pytest.raises(RuntimeError):
        found._answer_until_the_end(None)  # type: ignore[arg-type]
    assert found.asked == TRIES
