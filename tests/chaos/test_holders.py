"""Which publications may be missing: those whose holders all lost them, and no others."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from planaria.chaos.applications import ROAMING, Applications, Asked, Given
from planaria.chaos.faults import _spared
from planaria.chaos.judge import Judge
from planaria.chaos.run import LATE_INTERVALS
from planaria.chaos.target import Member, Target
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

    async def ask_all(self, fault: str, **told: Any) -> dict[str, Injected]:
        assert fault == "holdings"
        return {
            name: Injected(0, 0, {"held": [(7, INCARNATION, it, it + 1) for it in numbers]})
            for name, numbers in self.held.items()
            if self.members[name].running
        }


class Case:
    def __init__(self, held: dict[str, list[int]], acknowledged: int) -> None:
        self.target = FakeTarget(held)
        self.applications = Applications(cast(Target, self.target), "t", 0)
        for number in range(acknowledged):
            one = Asked(number, b"%d" % number, 0, number, number + 0.5, id_of(number))
            self.applications.asked.append(one)
        self.judge = Judge(cast(Target, self.target), self.applications)

    async def destroy(self, *names: str, acknowledged_meanwhile: int | None = None) -> None:
        victims = [self.target.members[name] for name in names]
        async with self.judge.destroying(victims):
            if acknowledged_meanwhile is not None:
                number = acknowledged_meanwhile
                now = self.applications.time
                one = Asked(number, b"%d" % number, 0, now, now + 1, id_of(number))
                self.applications.asked.append(one)

    @property
    def doomed(self) -> list[int]:
        return [number for number in range(20) if id_of(number) in self.judge.doomed]


def test_what_another_node_held_is_owed() -> None:
    async def main() -> None:
        case = Case({"a": [0, 1, 2], "b": [1], "c": [2, 3]}, 4)
        await case.destroy("a")
        assert case.doomed == [0]
        case.target.held["a"] = []
        await case.destroy("b")
        assert case.doomed == [0, 1], "its other holder had lost it before"
        await case.destroy("b", "c")
        assert case.doomed == [0, 1, 2, 3]

    asyncio.run(main())


def test_what_nobody_acknowledged_is_not_counted() -> None:
    async def main() -> None:
        case = Case({"a": [0, 1, 9]}, 2)
        await case.destroy("a")
        assert case.doomed == [0, 1]

    asyncio.run(main())


def test_what_is_acknowledged_meanwhile_may_have_been_counted_on_a_victim() -> None:
    async def main() -> None:
        case = Case({"a": [0], "b": [0]}, 1)
        await case.destroy("a", acknowledged_meanwhile=5)
        assert case.doomed == [5]

    asyncio.run(main())


def test_a_stopped_node_holds_what_it_held_and_a_dead_one_nothing() -> None:
    async def main() -> None:
        case = Case({"a": [0], "b": [0], "c": [0]}, 1)
        await case.judge.census()
        case.target.members["b"].stopped = True
        case.target.members["c"].alive = False
        await case.destroy("a")
        assert case.doomed == []
        case.target.members["b"].alive = False
        await case.destroy("a")
        assert case.doomed == [0]

    asyncio.run(main())


def test_publishers_wait_while_the_judge_counts() -> None:
    async def main() -> None:
        case = Case({"a": [0]}, 1)
        async with case.judge.destroying([]):
            assert not case.applications._going.is_set()
        assert case.applications._going.is_set()

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
