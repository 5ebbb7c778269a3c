"""Which publications may be missing: those whose holders all lost them, and no others."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from planaria.chaos.applications import ROAMING, Applications, Asked, Given
from planaria.chaos.faults import _spared
from planaria.chaos.judge import Judge
from planaria.chaos.run import LATE_INTERVALS
from planaria.chaos.target import Member, Target
from planaria.network.client.client import Client
from planaria.network.client.messages import Injected
from planaria.protocols.publications.deliveries import position_id

INCARNATION = b"i" * 12


def id_of(number: int) -> bytes:
    return position_id(7, INCARNATION, number)


class FakeTarget:
    """Nodes that hold what a test says."""

    def __init__(self, held: dict[str, list[int]]) -> None:
        self.held = held
        self.interval = 1.0
        self.members = {
            name: Member(name, at, f"127.0.0.1:{at}", 0, Path("/"), supervises=at == 0)
            for at, name in enumerate(held)
        }

    name_at = Target.name_at

    async def ask_all(self, fault: str, **options: Any) -> dict[str, Injected]:
        assert (fault, options["topic"]) == ("holdings", "t")
        self.overlay = options["overlay"]
        return {
            name: Injected(0, 0, {"held": [(7, INCARNATION, it, it + 1) for it in numbers]})
            for name, numbers in self.held.items()
            if self.members[name].running
        }


class Case:
    """So many publications, each acknowledged when `copies` nodes held it, or `by` one."""

    def __init__(
        self, held: dict[str, list[int]], acknowledged: int, copies: int = 2, by: str = ""
    ) -> None:
        self.target = FakeTarget(held)
        overlay = "mobile" if by else "ring"
        self.applications = Applications(cast(Target, self.target), "t", 0, overlay=overlay)
        self.applications._started = asyncio.get_running_loop().time()
        self.copies, self.by = 0 if by else copies, by
        for number in range(acknowledged):
            self.acknowledge(number)
        self.judge = Judge(cast(Target, self.target), self.applications)

    def acknowledge(self, number: int) -> None:
        now = self.applications.time
        one = Asked(number, b"%d" % number, 0, now, now, id_of(number), self.copies, self.by)
        self.applications.asked.append(one)

    async def destroy(self, *names: str, acknowledged_meanwhile: int | None = None) -> None:
        """Take all from these nodes; a test says what they hold then."""
        async with self.judge.destroying([self.target.members[name] for name in names]):
            if acknowledged_meanwhile is not None:
                self.acknowledge(acknowledged_meanwhile)
            for name in names:
                self.target.held[name] = []
            await self.judge.census()  # another fault comes meanwhile

    async def crash(self, *names: str) -> None:
        """End these nodes with what they hold intact."""
        await self.judge.census()
        for name in names:
            self.target.members[name].alive = False

    async def kill(self, *names: str) -> None:
        """Kill these nodes and start them again; what was not on their disks is gone."""
        await self.judge.census()
        for name in names:
            self.target.held[name] = []
            self.judge.ended(self.target.members[name])

    async def doomed(self) -> list[int]:
        found = await self.judge.doomed()
        return [number for number in range(20) if id_of(number) in found]


def test_what_another_node_held_is_owed() -> None:
    async def main() -> None:
        case = Case({"a": [0, 1, 2], "b": [1], "c": [2, 3]}, 4, copies=1)
        await case.destroy("a")
        assert await case.doomed() == [0]
        await case.destroy("b")
        assert await case.doomed() == [0, 1], "its other holder had lost it before"
        await case.destroy("b", "c")
        assert await case.doomed() == [0, 1, 2, 3]

    asyncio.run(main())


def test_what_nobody_acknowledged_is_not_counted() -> None:
    async def main() -> None:
        case = Case({"a": [0, 1, 9]}, 2, copies=1)
        await case.destroy("a")
        assert await case.doomed() == [0, 1]

    asyncio.run(main())


def test_who_took_it_again_after_its_loss_owes_it() -> None:
    async def main() -> None:
        case = Case({"a": [0], "b": [0]}, 1)
        await case.destroy("a")
        case.target.held["a"] = [0]
        await case.destroy("b")
        case.target.held["a"] = []  # which no fault did
        assert await case.doomed() == []

    asyncio.run(main())


def test_more_nodes_acknowledged_it_than_lost_anything() -> None:
    """Nobody was seen to hold it: it was acknowledged while the fault came."""

    async def main() -> None:
        case = Case({"a": [], "b": [], "c": []}, 0)
        await case.destroy("a", acknowledged_meanwhile=5)
        assert await case.doomed() == []
        await case.destroy("b")
        assert await case.doomed() == [5]

    asyncio.run(main())


def test_what_was_asked_for_after_the_loss_is_owed() -> None:
    async def main() -> None:
        case = Case({"a": [], "b": []}, 0, copies=1)
        await case.destroy("a", "b")
        case.acknowledge(3)
        assert await case.doomed() == []

    asyncio.run(main())


def test_what_a_node_holds_at_the_end_is_owed_whatever_was_lost() -> None:
    async def main() -> None:
        case = Case({"a": [0], "b": [0]}, 1)
        await case.destroy("a", "b")
        case.target.held["b"] = [0]
        assert await case.doomed() == []

    asyncio.run(main())


def test_a_crash_with_an_intact_store_destroys_nothing() -> None:
    """Who comes back owes what it held; who stays dead cannot give it."""

    async def main() -> None:
        case = Case({"a": [0], "b": [0], "c": []}, 1)
        await case.crash("a", "b")
        assert await case.doomed() == [0], "both are dead"
        case.target.members["a"].alive = True
        assert await case.doomed() == []
        case.target.held["a"] = []  # which no fault did
        assert await case.doomed() == []

    asyncio.run(main())


def test_a_crash_does_not_excuse_what_a_node_that_lives_lost() -> None:
    async def main() -> None:
        case = Case({"a": [0], "b": [0], "c": []}, 1)
        await case.crash("a")
        await case.destroy("c")
        case.target.held["b"] = []  # which no fault did
        assert await case.doomed() == []

    asyncio.run(main())


def test_a_stopped_node_holds_what_it_held() -> None:
    async def main() -> None:
        case = Case({"a": [0], "b": [0]}, 1, copies=1)
        await case.judge.census()
        case.target.members["b"].stopped = True
        await case.destroy("a")
        assert await case.doomed() == []

    asyncio.run(main())


def test_without_history_nothing_is_destroyed() -> None:
    async def main() -> None:
        case = Case({"a": [], "b": []}, 1)
        case.applications.overlay = "gossip"
        await case.destroy("a", "b")
        assert await case.doomed() == []

    asyncio.run(main())


# In `mobile` one node acknowledges, and what it holds is handed on


def test_mobile_owes_what_the_node_that_acknowledged_it_has_not_lost() -> None:
    async def main() -> None:
        case = Case({"a": [0], "b": [], "c": []}, 2, by="a")
        await case.destroy("b", "c")
        assert await case.doomed() == []
        assert case.target.overlay == "mobile"
        await case.destroy("a")
        assert await case.doomed() == [0], "it had forgotten the other before it lost anything"

    asyncio.run(main())


def test_mobile_owes_what_another_node_holds_when_a_store_is_lost() -> None:
    async def main() -> None:
        case = Case({"a": [0, 1], "b": [1], "c": []}, 2, by="a")
        await case.destroy("a", acknowledged_meanwhile=2)
        case.target.held["b"] = []  # which no fault did
        assert await case.doomed() == [0, 2]

    asyncio.run(main())


def test_what_mobile_handed_on_may_be_in_memory_alone_and_go_with_a_kill() -> None:
    async def main() -> None:
        case = Case({"a": [0, 1], "b": [0, 1]}, 2, by="a")
        await case.destroy("a")
        await case.kill("b")
        case.target.held["b"] = [1]
        assert await case.doomed() == [0], "the other was on its disk"
        ring = Case({"a": [0], "b": [0]}, 1, copies=1)
        await ring.destroy("a")
        await ring.kill("b")
        assert await ring.doomed() == [], "a ring has on disk what it holds"

    asyncio.run(main())


def test_what_mobile_acknowledged_is_on_disk_and_outlives_a_kill() -> None:
    async def main() -> None:
        case = Case({"a": [0], "b": [0]}, 1, by="a")
        await case.kill("a")
        await case.destroy("b")
        assert await case.doomed() == []

    asyncio.run(main())


def test_who_acknowledged_it_is_the_node_that_the_publisher_is_at_then() -> None:
    async def main() -> None:
        case = Case({"a": [], "b": []}, 0, by="a")
        ack = SimpleNamespace(id=b"id", copies=0)

        async def publish(topic: str, payload: bytes, overlay: str) -> SimpleNamespace:
            return ack

        client = SimpleNamespace(publish=publish, server="127.0.0.1:1")
        one = Asked(0, b"0", 0, 1.0)
        await case.applications._publish_one(cast(Client, client), one, asyncio.Semaphore(0))
        assert (one.id, one.by) == (b"id", "b")

    asyncio.run(main())


def test_a_node_that_nobody_can_name_must_have_lost_something_too() -> None:
    async def main() -> None:
        case = Case({"a": [], "b": []}, 1, by="a")
        case.applications.asked[0].by = ""
        assert await case.doomed() == []
        await case.destroy("b")
        assert await case.doomed() == [0]

    asyncio.run(main())


def test_what_not_all_who_live_hold_is_on_its_way() -> None:
    async def main() -> None:
        case = Case({"a": [0, 1, 2], "b": [0, 1], "c": [0]}, 3, by="a")

        async def on_its_way() -> list[int]:
            await case.judge.census()
            (*_, census) = case.judge.censuses
            return [one.number for one in case.applications.asked if census.on_its_way(one)]

        assert await on_its_way() == [1, 2]
        case.acknowledge(3)
        assert case.judge.censuses[-1].on_its_way(case.applications.asked[3])
        assert await on_its_way() == [1, 2], "nobody has the other: it is lost"
        case.target.members["c"].alive = False
        assert await on_its_way() == [2]
        case.target.members["b"].stopped = True
        case.acknowledge(4)
        assert await on_its_way() == [2, 4], "who does not answer has what it had, or more"

    asyncio.run(main())


def book_of(given: Sequence[tuple[int, int, bytes]], acknowledged: int = 2) -> Any:
    """Lost, twice, late and never published, of what readers were given of so many."""

    async def main() -> Any:
        case = Case({"a": [], "b": []}, acknowledged)
        readers = case.applications.readers
        assert readers == [*range(ROAMING + 2)]
        for reader, number, payload in given:
            case.applications.given.append(Given(number + 1.0, reader, id_of(number), payload))
        book = case.applications.book(LATE_INTERVALS)
        return book.summary(1000.0)

    return asyncio.run(main())


def test_every_reader_is_owed_every_acknowledged_publication_once() -> None:
    everything = [(reader, it, b"%d" % it) for reader in range(ROAMING + 2) for it in range(2)]
    whole = book_of(everything)
    assert (whole.delivered, whole.missed, whole.twice, whole.never_published) == (8, 0, 0, 0)
    assert book_of(everything[1:]).missed == 1
    assert book_of([*everything, everything[3]]).twice == 1


def test_another_body_is_not_what_was_published() -> None:
    everything = [(reader, it, b"%d" % it) for reader in range(ROAMING + 2) for it in range(2)]
    altered = [(0, 0, b"forged"), *everything[1:]]
    found = book_of(altered)
    assert (found.missed, found.never_published) == (1, 1)


def test_what_is_not_acknowledged_is_owed_to_nobody_but_comes_once() -> None:
    async def main() -> None:
        case = Case({"a": [], "b": []}, 0)
        applications = case.applications
        applications.asked.append(Asked(0, b"0", 0, 0.0))
        given = Given(1.0, 0, id_of(0), b"0")
        applications.given += [given]
        found = applications.book(LATE_INTERVALS).summary(1000.0)
        assert (found.due, found.missed, found.twice, found.never_published) == (1, 0, 0, 0)
        applications.given += [given]
        assert applications.book(LATE_INTERVALS).summary(1000.0).twice == 1
        applications.given += [Given(1.0, 0, id_of(1), b"0")]
        assert applications.book(LATE_INTERVALS).summary(1000.0).never_published == 1

    asyncio.run(main())


@pytest.mark.parametrize(
    ("victims", "spared"),
    [("a", ""), ("b", "b"), ("ab", "b"), ("bc", "bc"), ("abc", "bc"), ("", "")],
)
def test_one_supervisor_and_one_more_node_are_left(victims: str, spared: str) -> None:
    """`a` supervises, alone of three."""
    members = [Member(it, 0, "", 0, None, supervises=it == "a") for it in "abc"]
    chosen = _spared([it for it in members if it.name in victims], members)
    left = [it for it in members if it not in chosen]
    assert any(it.supervises for it in left)
    assert len(left) >= 2
    assert {it.name for it in chosen} <= {*spared}
