"""A manifest says what becomes of staged rows, and every member makes the same of it."""

import pytest
from msgspec import msgpack

from planaria.core.errors import UsageError
from planaria.records import manifest as module
from planaria.records.manifest import (
    Manifest,
    Origin,
    Part,
    Portion,
    origin_of,
    query_incarnation,
    read_manifest,
    row_incarnation,
    same_query,
    seal_manifest,
    settled,
    stage_incarnation,
)
from planaria.records.memory import MemoryStore
from planaria.records.record import SEQUENCE_MAX, Draft, MalformedRecord, decode, seal

PUBLISHER, QUERY = 77, "3f2c"
STAGED = stage_incarnation(bytes(12))
ROWS = row_incarnation(QUERY, bytes(12))
DRAFTS = [
    Draft(b"plain"),
    Draft(b"", b"key", (("unit", b"mm"), ("site", b""))),
    Draft(b"last", None, (), 5),
]


def one(first: int = 0, batch: int = 4, count: int = 3) -> Manifest:
    portions = {"news": Portion(ROWS, [Part(STAGED, count, first)])}
    return seal_manifest(PUBLISHER, QUERY, batch, portions, time=900, staged=800)


@pytest.mark.parametrize("drafts", [DRAFTS[:1], DRAFTS, [Draft(b"%d" % at) for at in range(300)]])
def test_settled_rows_are_those_that_were_staged_under_new_numbers(drafts: list[Draft]) -> None:
    staged, found = seal((PUBLISHER, STAGED), 7, drafts, time=800), one(first=100)
    portion = found.portions["news"]
    record = settled(staged, found, portion, portion.parts[0])
    assert record.stream == (PUBLISHER, ROWS)
    assert (record.first, record.count, record.time, record.low) == (107, len(drafts), 900, 0)
    before = [row[3:6] for row in staged.publications(7, 7 + len(drafts))]
    assert [row[3:6] for row in record.publications(107, 107 + len(drafts))] == before
    assert decode(record.data) == record
    assert origin_of(record) == Origin(found.record.key, 4, 100)
    assert origin_of(staged) is None


def test_a_cut_origin_is_no_record() -> None:
    staged, found = seal((PUBLISHER, STAGED), 0, DRAFTS, time=800), one()
    portion = found.portions["news"]
    data = settled(staged, found, portion, portion.parts[0]).data
    for wrong in (data[:-1], data + b"x", data[:-32]):
        with pytest.raises(MalformedRecord, match="columns end"):
            decode(wrong)


def test_a_manifest_is_a_record_at_the_position_of_its_query_and_batch() -> None:
    found = one()
    assert found.record.stream == (PUBLISHER, query_incarnation(QUERY))
    assert (found.batch, found.record.time, found.time) == (4, 800, 900)
    again = read_manifest(decode(found.record.data))
    assert again is not None
    assert again.portions == found.portions


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"rows",
        msgpack.encode([900]),
        msgpack.encode([-1, {}]),
        msgpack.encode([900, {"news": [ROWS, []]}]),
        msgpack.encode([900, {"news": [ROWS, [[STAGED, 0, 0]]]}]),
        msgpack.encode([900, {"news": [ROWS, [[STAGED, 1, SEQUENCE_MAX]]]}]),
        msgpack.encode([900, {"news": [ROWS, [[b"short", 1, 0]]]}]),
        msgpack.encode([900, {"news": [row_incarnation("other", bytes(12)), [[STAGED, 1, 0]]]}]),
    ],
)
def test_what_is_no_manifest_is_not_read_as_one(body: bytes) -> None:
    record = seal((PUBLISHER, query_incarnation(QUERY)), 0, [Draft(body)], time=0)
    assert read_manifest(record) is None


def test_only_a_query_has_manifests() -> None:
    payload = one().record.payloads(4, 5)[0]
    assert read_manifest(seal((PUBLISHER, STAGED), 4, [Draft(payload)], time=0)) is None
    two = [Draft(payload), Draft(payload)]
    assert read_manifest(seal((PUBLISHER, query_incarnation(QUERY)), 4, two, time=0)) is None


def test_rows_of_a_query_lie_together_in_the_order_of_streams() -> None:
    low, high = same_query((PUBLISHER, ROWS))
    mine = [(PUBLISHER, row_incarnation(QUERY, bytes([at]) * 12)) for at in (0, 7, 255)]
    assert all(low <= it <= high for it in mine)
    others = [(PUBLISHER, row_incarnation(f"q{at}", bytes(12))) for at in range(200)]
    assert not any(low <= it <= high for it in others)


def test_too_many_parts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PARTS_MAX", 2)
    portions = {"news": Portion(ROWS, [Part(STAGED, 1, at) for at in range(3)])}
    with pytest.raises(UsageError, match="use fewer partitions"):
        seal_manifest(PUBLISHER, QUERY, 0, portions, time=0, staged=0)


def test_a_dropped_stream_leaves_nothing_behind() -> None:
    store = MemoryStore()
    kept = seal((1, bytes(12)), 0, [Draft(b"kept")], time=1)
    store.append([kept, *(seal((2, bytes(12)), at, [Draft(b"a")], time=1) for at in range(5))])
    store.drop((2, bytes(12)))
    store.drop((3, bytes(12)))
    assert [part.record for part in store.read({}).slices] == [kept]
    assert len(store.delivered) == 1
    fresh = MemoryStore()
    fresh.append([kept])
    assert store.state().bodies == fresh.state().bodies
    assert store.digest(0, 1 << 39) == fresh.digest(0, 1 << 39)
