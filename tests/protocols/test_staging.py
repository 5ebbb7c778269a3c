"""What one member stages: only what can be published later, and many manifests in turn."""

import pytest

from planaria.core.ids import NodeId
from planaria.protocols.publications.admission import EVERYTHING
from planaria.protocols.publications.holdings import Holdings
from planaria.protocols.publications.inspection import Inspection
from planaria.protocols.skipring import staging
from planaria.protocols.skipring.batches import Batches
from planaria.protocols.skipring.deposits import CROWDED, MALFORMED
from planaria.protocols.skipring.staging import Staging
from planaria.records.manifest import (
    STAGED_RECORD_BYTES_MAX,
    Manifest,
    Part,
    Portion,
    row_incarnation,
    seal_manifest,
    settled,
    stage_incarnation,
)
from planaria.records.memory import MemoryStore
from planaria.records.record import BATCH, Draft, MalformedRecord, Record, seal

TOPIC, PUBLISHER = "news", 7
STAGE = (PUBLISHER, stage_incarnation(bytes(12)))


def manifest(query: str = "q", batch: int = 0) -> Manifest:
    portion = Portion(row_incarnation(query, bytes(12)), [Part(STAGE[1], 2, 0)])
    return seal_manifest(PUBLISHER, query, batch, {TOPIC: portion}, time=0, staged=0)


def sized(size: int) -> Record:
    """A record of two rows that has so many bytes."""
    least = len(seal(STAGE, 0, [Draft(b""), Draft(b"")], time=0).data)
    return seal(STAGE, 0, [Draft(bytes(1 << 20)), Draft(bytes(size - least - (1 << 20)))], time=0)


def member(id: NodeId = 1) -> Batches:
    holdings = Holdings(MemoryStore())
    inspection = Inspection(TOPIC, holdings, EVERYTHING)
    return Batches(TOPIC, id, holdings, Staging(MemoryStore()), inspection)


def test_a_record_without_room_for_its_origin_is_refused_when_it_is_staged() -> None:
    batch, part = manifest(), manifest().portions[TOPIC].parts[0]
    for extra, reason in ((0, ""), (1, MALFORMED)):
        record = sized(STAGED_RECORD_BYTES_MAX + extra)
        assert member().refusal(record, lambda _: False) == reason
        if not reason:
            assert settled(record, batch, batch.portions[TOPIC], part).columns & BATCH
        else:
            with pytest.raises(MalformedRecord):
                settled(record, batch, batch.portions[TOPIC], part)


def test_a_record_that_was_settled_before_is_not_staged_again() -> None:
    batch = manifest()
    portion = batch.portions[TOPIC]
    first = seal(STAGE, 0, [Draft(b"a"), Draft(b"b")], time=0)
    again = Portion(portion.incarnation, [Part(STAGE[1], 2, 0)])
    row = settled(first, batch, again, again.parts[0])
    assert row.columns & BATCH
    disguised = settled(first, batch, Portion(STAGE[1], again.parts), again.parts[0])
    assert member().refusal(disguised, lambda _: False) == MALFORMED


def test_a_manifest_whose_rows_would_open_one_stream_too_many_is_refused() -> None:
    batch = manifest()
    stream = (PUBLISHER, batch.portions[TOPIC].incarnation)
    assert member().refusal(batch.record, lambda it: it == stream) == CROWDED
    assert member().refusal(batch.record, lambda it: it != stream) == ""


@pytest.mark.parametrize("turn", [0, 5, -3, 1 << 80])
def test_of_many_manifests_each_has_its_turn(turn: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "QUERIES_MAX", 3)
    one = Staging(MemoryStore())
    assert one.hold(seal(STAGE, 0, [Draft(b"a")], time=0), 0) == ""
    queries = [manifest(f"q{number}") for number in range(8)]
    for it in queries:
        assert one.hold(it.record, 0) == ""
    one.turn = turn
    seen = [[it.record.key for it in one.manifests()] for _ in range(3)]
    assert [len(it) for it in seen] == [3, 3, 3]
    assert {key for keys in seen for key in keys} == {it.record.key for it in queries}
    kept = Staging(MemoryStore())
    kept.load(one.state())
    assert [it.record.key for it in kept.manifests()] == [it.record.key for it in one.manifests()]
