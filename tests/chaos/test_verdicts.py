"""What counts as wrong, whatever the network did: a run that judged nothing proves nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import pytest

from planaria.chaos.applications import Applications, Asked, Away, Given
from planaria.chaos.faults import Faults, Injection
from planaria.chaos.judge import Census, Judge
from planaria.chaos.run import SLACK_INTERVALS, Run, Verdict
from planaria.chaos.target import Member, Target
from planaria.core.errors import UsageError
from planaria.core.scenario import Action, Schedule, parse_schedule
from planaria.network.client.errors import Unreachable
from planaria.network.context import Context

SOON = 5.0  # seconds for a task of this process to be seen


class FakeTarget:
    """Two nodes that are never asked anything."""

    def __init__(self) -> None:
        self.context = Context(servers=("127.0.0.1:1",), insecure=True)
        self.interval, self.invented, self.supervisors = 1.0, False, 1
        self.members = {
            name: Member(name, at, f"127.0.0.1:{at}", 0, None, supervises=at == 0)
            for at, name in enumerate("ab")
        }


def verdict(
    change: Callable[[Run], None] = lambda _: None, overlay: str = "ring", invented: bool = False
) -> Verdict:
    """Of a run with one fault, and one publication that every reader was given."""

    async def main() -> Verdict:
        target = FakeTarget()
        target.invented = invented
        run = Run(cast(Target, target), "t", 0, Path(), overlay=overlay)
        applications = run.applications
        applications.asked.append(Asked(0, b"0", 0, 50.0, 51.0, b"id", 2))
        for reader in range(4):
            applications.given.append(Given(52.0, reader, b"id", b"0"))
            applications.had[reader] = {b"id"}
        (action,) = parse_schedule("at 0 crash count=1", "test")
        run.injections.append(Injection(action, ["a"], 1, seconds=1.0))
        change(run)
        return run._verdict(True, run.injections)

    return asyncio.run(main())


def test_a_run_in_which_all_is_well_is_not_wrong() -> None:
    for overlay in ("ring", "mobile"):
        found = verdict(overlay=overlay)
        assert found.wrong == []
        assert found.report.delivered > 0


def test_a_run_in_which_nothing_was_acknowledged_is_wrong() -> None:
    def change(run: Run) -> None:
        run.applications.asked.clear()
        run.applications.given.clear()

    assert verdict(change).wrong == ["no publication was acknowledged"]


def test_a_run_with_publications_under_way_is_wrong() -> None:
    def change(run: Run) -> None:
        run.applications.asked += [Asked(1, b"1", 0, 2.0), Asked(2, b"2", 0, 2.0)]

    assert verdict(change).wrong == ["2 publications are still not acknowledged"]


def test_a_run_in_which_something_could_not_be_published_is_wrong() -> None:
    def change(run: Run) -> None:
        run.applications.asked.append(Asked(1, b"1", 0, 2.0, refused=(2.5, "nobody there")))

    def ended(run: Run) -> None:
        run.applications.failures.append("publisher 1 ended")

    assert verdict(change).wrong == ["publication 1: nobody there"]
    assert verdict(ended).wrong == ["publisher 1 ended"]


def test_a_refusal_is_wrong_also_while_memory_is_arbitrary() -> None:
    """Overwritten at 2, legitimate at 5."""

    def change(run: Run) -> None:
        (action,) = parse_schedule("at 0 corrupt count=1", "test")
        run.injections.append(Injection(action, ["a"], 1, began=2.0, ended=3.0, seconds=2.0))
        run.applications.asked.append(Asked(1, b"1", 0, 2.0, refused=(2.5, "too old")))

    assert verdict(change).wrong == ["publication 1: too old"]


def test_a_run_without_history_in_which_nothing_was_owed_is_wrong() -> None:
    def change(run: Run) -> None:
        run.applications.asked[0].asked = run.injections[0].ended + SLACK_INTERVALS / 2

    assert verdict(change).wrong == []
    (wrong,) = verdict(change, "content").wrong
    assert "nothing was judged" in wrong


HALF = Census(29.0, 29.0, frozenset([b"id"]))  # before the fault some nodes hold it, and not all
ALL = Census(29.0, 29.0)
MOVED = Away(0, 31.0, 35.0)


@pytest.mark.parametrize(
    ("fault", "away", "census", "owed"),
    [
        ("crash count=1", None, HALF, True),
        ("crash count=1", MOVED, HALF, False),
        ("crash count=1", MOVED, ALL, True),
        ("crash count=1", MOVED, Census(30.5, 22.0), False),  # a node was last heard before it
        ("crash count=1", Away(0, 29.5, 35.0), HALF, True),  # before the fault
        ("crash count=1", Away(0, 33.5 + SLACK_INTERVALS, 60.0), HALF, True),  # long after
        ("crash count=1", Away(0, 31.0, 21.0), HALF, True),  # it was back when it was published
        ("for 3 loss rate=0.8", None, HALF, True),
        ("restart count=1 state=kept", None, HALF, True),
        ("restart count=1 state=none", None, HALF, True),
        ("restart count=1 state=none", MOVED, HALF, False),
        ("corrupt count=1", None, HALF, False),
        ("corrupt count=1", None, ALL, True),
        ("corrupt count=1", None, Census(30.5, 30.5), False),  # too late to be from before it
    ],
)
def test_mobile_owes_what_was_everywhere_and_what_no_reader_moved_away_from(
    fault: str, away: Away | None, census: Census, owed: bool
) -> None:
    """Published at 22, long after the start; the fault begins at 30 and is healed at 33."""

    def change(run: Run) -> None:
        run._first = -100.0
        run.applications.away += [] if away is None else [away]
        run.judge.censuses.append(census)
        (action,) = parse_schedule(f"at 0 {fault}", "test")
        run.injections[:] = [Injection(action, ["a"], 1, began=30.0, ended=31.0, seconds=2.0)]
        run.applications.asked[0].asked, run.applications.asked[0].acknowledged = 22.0, 22.5
        missed(run)

    assert verdict(change, "mobile").report.lost == owed
    assert verdict(change, "content").report.lost == 0


def test_the_last_census_before_a_reader_lost_its_node_counts() -> None:
    def change(run: Run) -> None:
        run._first = -100.0
        run.applications.away.append(MOVED)
        run.judge.censuses += [HALF, Census(30.5, 30.5), Census(31.5, 31.5, frozenset([b"id"]))]
        run.injections[0].began, run.injections[0].ended = 30.0, 31.0
        run.applications.asked[0].asked, run.applications.asked[0].acknowledged = 22.0, 22.5
        missed(run)

    assert verdict(change, "mobile").report.lost == 1


@pytest.mark.parametrize(
    ("asked", "served", "owed"),
    [
        (19.0, False, False),  # before clients have found their nodes
        (21.0, False, True),
        (35.0, False, False),  # before the memory is healed, and clients have found nodes again
        (54.0, False, True),
        (35.0, True, True),  # when things arrive again
    ],
)
def test_from_when_and_until_when_mobile_owes_things(
    asked: float, served: bool, owed: bool
) -> None:
    """Legitimate at first at 0; the memory of nodes is overwritten at 30, and healed at 33."""

    def change(run: Run) -> None:
        run.judge.censuses.append(ALL)
        (action,) = parse_schedule("at 0 corrupt count=1", "test")
        run.injections[:] = [Injection(action, ["a"], 1, began=30.0, ended=31.0, seconds=2.0)]
        run.applications.asked[0].asked = asked
        run.applications.asked[0].acknowledged = asked + 0.5
        run._served += [(34.0, 36.0)] if served else []
        missed(run)

    assert verdict(change, "mobile").report.lost == owed


@pytest.mark.parametrize(("overlay", "asked"), [("mobile", 1), ("ring", 0), ("gossip", 0)])
def test_before_any_fault_nodes_of_mobile_are_asked_what_they_hold(
    overlay: str, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []

    async def census(_: Judge) -> None:
        order.append("census")

    async def carried_out(_: Faults, action: Action) -> Injection:
        order.append("fault")
        return Injection(action)

    monkeypatch.setattr(Judge, "census", census)
    monkeypatch.setattr(Faults, "carry_out", carried_out)

    async def main() -> None:
        run = Run(cast(Target, FakeTarget()), "t", 0, Path(), overlay=overlay)
        await run._inject(parse_schedule("at 0 for 3 pause count=1", "test")[0], wait=False)

    asyncio.run(main())
    assert order == ["census"] * asked + ["fault"]


def test_what_is_destroyed_is_counted_as_such_and_owed_to_nobody() -> None:
    def change(run: Run) -> None:
        run._doomed.add(b"id")
        missed(run)

    for overlay in ("ring", "mobile"):
        report = verdict(change, overlay).report
        assert (report.lost, report.destroyed) == (0, 1)


def missed(run: Run) -> None:
    """Take the publication from the first reader."""
    given = run.applications.given.pop(0)
    run.applications.had[given.reader].clear()


def test_a_fault_that_did_not_heal_is_told_with_what_was_wrong_then() -> None:
    def change(run: Run) -> None:
        run.injections[0].seconds, run.injections[0].wrong = None, ["a label at b"]

    complaint = verdict(change).wrong[-1]
    assert complaint.startswith("`at 0 crash count=1` did not heal within")
    assert complaint.endswith("s: a label at b")


def test_what_nobody_published_is_excused_by_faults_that_make_it_up() -> None:
    def change(run: Run) -> None:
        run.applications.given.append(Given(3.0, 0, b"other", b"made up"))

    assert verdict(change).wrong == ["1 deliveries of what nobody published"]
    assert verdict(change, invented=True).wrong == []


def test_a_publisher_that_ends_is_told() -> None:
    """It goes on for ever otherwise; whoever publishes nothing loses nothing."""

    async def main() -> None:
        applications = Applications(cast(Target, FakeTarget()), "t", 0)

        async def work() -> None:
            raise ValueError("a mistake")

        await applications._reporting("publisher 0", work())
        assert applications.failures == ["publisher 0 ended: ValueError: a mistake"]

    asyncio.run(main())


def test_what_ends_the_watch_is_raised_where_one_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        run = Run(cast(Target, FakeTarget()), "t", 0, Path())
        async with run.watch:
            await run.watch.legitimate(0.0, SOON)

    async def mistaken(*_: object) -> list[str]:
        raise ValueError("a mistake")

    async def away(*_: object) -> None:
        raise Unreachable({"a": "nobody answers"})

    monkeypatch.setattr("planaria.chaos.watch.Watch._look", mistaken)
    with pytest.raises(ValueError, match="a mistake"):
        asyncio.run(asyncio.wait_for(main(), 10 * SOON))
    monkeypatch.undo()
    monkeypatch.setattr("planaria.network.survey.Surveyor.look", away)
    monkeypatch.setattr("planaria.chaos.watch.LOOK_SECONDS", 0.0)

    async def looked() -> None:
        run = Run(cast(Target, FakeTarget()), "t", 0, Path())
        async with run.watch:
            assert await run.watch.legitimate(0.0, 0.1) is None
            assert "nobody answers" in run.watch.wrong[0]
            assert len(run.watch.looks) <= 100

    asyncio.run(looked())


def test_a_schedule_that_cannot_be_carried_out_is_told_as_such(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refused(*_: object) -> None:
        raise UsageError("nobody is left to do it to")

    async def judged(self: Run, schedule: Schedule, work: Callable[[], Awaitable[None]]) -> None:
        await work()

    monkeypatch.setattr(Run, "_judged", judged)
    monkeypatch.setattr("planaria.chaos.faults.Faults.carry_out", refused)

    async def main() -> None:
        run = Run(cast(Target, FakeTarget()), "t", 0, Path())
        await run.timed(parse_schedule("at 0 crash count=1\nat 0 crash count=1", "test"))

    with pytest.raises(UsageError, match="nobody is left"):
        asyncio.run(main())
