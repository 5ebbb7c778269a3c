"""Records as Arrow: the same rows as one by one, without touching one."""

import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planaria.core.errors import UsageError
from planaria.records.arrow import to_arrow
from planaria.records.batches import Slice
from planaria.records.memory import MemoryStore
from planaria.records.positions import Mark
from planaria.records.record import Draft, Record, Stream, seal
from records_lab import NOW, A, B, record

EPOCH = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)

headers = st.lists(st.tuples(st.text(max_size=3), st.binary(max_size=3)), max_size=2).map(tuple)
plain = st.binary(max_size=9).map(Draft)
rich = st.builds(
    Draft,
    st.binary(max_size=9),
    st.none() | st.binary(max_size=3),
    headers,
    st.none() | st.integers(0, 2**52),
)


@st.composite
def slices(draw: st.DrawFn) -> list[Slice]:
    found = []
    for of in draw(st.lists(st.sampled_from([A, B]), max_size=6)):
        first = draw(st.integers(0, 100))
        drafts = draw(st.lists(draw(st.sampled_from([plain, rich])), min_size=1, max_size=12))
        one = seal(of, first, drafts, time=NOW)
        lo = draw(st.integers(one.first, one.end - 1))
        found.append(Slice(one, lo, draw(st.integers(lo + 1, one.end))))
    return found


def rows(parts: list[Slice]) -> list[dict[str, Any]]:
    """The table's rows, each made from its publication."""
    return [
        {**row._asdict(), "timestamp": EPOCH + timedelta(microseconds=row.timestamp)}
        | {"headers": list(row.headers)}
        for part in parts
        for row in part.publications()
    ]


@given(slices())
def test_the_table_says_what_the_publications_say(parts: list[Slice]) -> None:
    table = to_arrow(parts)
    table.validate(full=True)
    assert table.to_pylist() == [
        {name: row[name] for name in table.column_names} for row in rows(parts)
    ]


def test_history_is_read_into_arrow_in_batches() -> None:
    store = MemoryStore()
    store.append([record(of, 32 * n, 32) for of in (A, B) for n in range(20)])
    vector, tables = dict[Stream, Mark](), []
    while (batch := store.read(vector, limit=100)).slices:
        tables.append(to_arrow(batch.slices))
        vector = batch.vector
    assert [table.num_rows for table in tables] == [100] * 12 + [80]
    numbers = [n for table in tables for n in table["sequence"].to_pylist()]
    assert numbers == [*range(640), *range(640)]


def test_no_row_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    def touched(*_: object) -> None:
        raise AssertionError("a row was made")

    one = record(A, 0, 32)
    monkeypatch.setattr(Record, "publications", touched)
    monkeypatch.setattr(Record, "payloads", touched)
    assert to_arrow([Slice(one, 0, 32)]).num_rows == 32


def test_without_pyarrow_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"planaria\[trace\]"):
        to_arrow([])
