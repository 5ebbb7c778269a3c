"""What members say of a batch is judged anew each time, and who is silent may hold another one."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from gate_lab import TOPIC
from planaria.core.node import Command
from planaria.network.client import batches
from planaria.network.client.batches import Commit, Unsettled, _lacks, _spreaders
from planaria.network.client.messages import AskBatch, BatchIs, MemberHas, Put
from planaria.network.gate.settling import Settling
from planaria.protocols.skipring.batch_messages import Reviewed
from planaria.protocols.skipring.batches import Consulted
from planaria.protocols.skipring.deposits import STRANGER, DepositAnswered
from planaria.records.manifest import (
    Manifest,
    Part,
    Portion,
    decode_manifest,
    row_incarnation,
    seal_manifest,
    stage_incarnation,
)


def manifest(attempt: int, batch: int = 0) -> Manifest:
    part = Part(stage_incarnation(bytes([attempt]) * 12), 4, 0)
    portion = Portion(row_incarnation("q", bytes([attempt]) * 12), [part])
    return seal_manifest(1, "q", batch, {TOPIC: portion}, time=0, staged=0)


MINE, EARLIER, THIRD = (manifest(attempt) for attempt in range(3))
STAGED = MemberHas(1, -1, b"", b"", [0], [])
EMPTY = MemberHas(2, -1, b"", b"", [], [])
HOLDS = MemberHas(3, -1, b"", EARLIER.record.data, [], [])
DONE = MemberHas(1, 0, MINE.record.key, b"", [], [0], rows=5)


class Members:
    """Members that answer as they are told, and remember which manifests they were given."""

    def __init__(self, *script: tuple[int, list[MemberHas]]) -> None:
        self.script = [BatchIs(0, answers, asked) for asked, answers in script]
        self.requests = self
        self.held: list[bytes] = []
        self.settled: list[bytes] = []

    async def ask(self, kind: type, answer: type, topic: str, data: bytes, *rest: Any) -> BatchIs:
        assert (kind, answer, topic) == (AskBatch, BatchIs, TOPIC)
        found = decode_manifest(data)
        assert found is not None
        if rest:
            self.settled.append(found.record.key)
            return BatchIs(0, [DONE, DONE], 2)
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    async def begin(self, kind: type, topic: str, data: bytes, *_: Any) -> None:
        assert kind is Put
        self.held.append(data)

    def settle(self, it: Manifest = MINE) -> bool:
        return asyncio.run(Commit(self, 2).settle(it))  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "PAUSE_SECONDS_MAX", 0.0)


def test_a_manifest_that_a_silent_member_holds_is_finished_as_soon_as_it_answers() -> None:
    members = Members((2, [STAGED]), (2, [STAGED, HOLDS]), (2, [STAGED, EMPTY]))
    assert members.settle() is False
    assert (members.held, members.settled) == ([EARLIER.record.data], [EARLIER.record.key])


def test_a_manifest_that_comes_to_light_while_a_stage_is_missing_is_finished() -> None:
    members = Members((1, [EMPTY]), (2, [EMPTY, HOLDS]), (2, [STAGED, EMPTY]))
    assert members.settle() is False
    assert members.held == [EARLIER.record.data]


def test_a_batch_that_is_in_a_history_by_then_is_done() -> None:
    later = MemberHas(2, 3, THIRD.record.key, b"", [], [])
    members = Members((2, [STAGED]), (2, [STAGED, later]))
    assert members.settle() is False
    assert members.held == members.settled == []


def test_a_third_manifest_beside_the_one_to_finish_stops_the_commit() -> None:
    third = MemberHas(2, -1, b"", THIRD.record.data, [], [])
    members = Members((2, [STAGED, HOLDS]), (2, [STAGED, third]))
    with pytest.raises(Unsettled, match="two drivers"):
        members.settle()


def test_who_is_silent_for_long_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "SILENT_SECONDS", 0.0)
    members = Members((2, [STAGED]))
    assert members.settle() is True
    assert members.settled == [MINE.record.key]


def test_a_copy_counts_among_those_that_were_asked_not_those_that_answered() -> None:
    commit = Commit(Members(), 2)  # type: ignore[arg-type]
    some = MemberHas(2, 0, MINE.record.key, b"", [0], [], rows=3)
    assert commit._settled(MINE, TOPIC, BatchIs(0, [some], 1)) == (0, False, 3)
    assert commit._settled(MINE, TOPIC, BatchIs(0, [DONE], 2)) == (1, False, 5)
    assert commit._settled(MINE, TOPIC, BatchIs(0, [DONE], 1)) == (1, True, 5)
    assert commit._settled(MINE, TOPIC, BatchIs(0, [DONE, DONE], 3)) == (2, True, 10)
    assert commit._settled(MINE, TOPIC, BatchIs(0, [], 0)) == (0, False, 0)


def test_who_has_a_part_whole_broadcasts_it_and_else_all_that_have_some_of_it() -> None:
    parts = [Part(stage_incarnation(bytes([it]) * 12), 4, 4 * it) for it in range(2)]
    portion = Portion(row_incarnation("q", bytes(12)), parts)
    manifest = seal_manifest(1, "q", 0, {TOPIC: portion}, time=0, staged=0)
    have = [
        MemberHas(1, -1, b"", b"", [], [], [(0, 0, 2), (1, 0, 1)]),
        MemberHas(2, -1, b"", b"", [1], [], [(0, 2, 4)]),
        MemberHas(3, -1, b"", b"", [1], [], [(7, 0, 4)]),
    ]
    for answered in (have, have[::-1]):
        assert _spreaders(manifest, TOPIC, answered) == {1: [0], 2: [0], 3: [1]}
    assert _lacks(manifest, {TOPIC: have}) == {}
    assert _lacks(manifest, {TOPIC: have[1:]}) == {TOPIC: 1}


def test_who_is_no_member_is_not_counted_as_silent() -> None:
    given, answered = list[Command](), list[BatchIs]()
    memberships = SimpleNamespace(candidates=lambda _: ([1, 2], 2, True))
    session = SimpleNamespace(publisher=1, answer=answered.append)
    settling = Settling(memberships, given.append, lambda: 0.0, lambda *_: None)  # type: ignore[arg-type]
    settling.ask(session, AskBatch(7, TOPIC, MINE.record.data))  # type: ignore[arg-type]
    settling.on_refusal(DepositAnswered(TOPIC, 2, MINE.record.key, STRANGER))
    said = Reviewed(TOPIC, 1, MINE.record.key, -1, b"", b"", [0], [], [])
    settling.on_answer(Consulted(said))
    assert answered == [BatchIs(7, [STAGED], 1)]
