"""Arrow columns become records of the same rows, whatever is null, empty or sliced."""

from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, BinaryType, StringType, StructField, StructType

from planaria.core.chance import stream
from planaria.core.errors import UsageError
from planaria.records.record import INCARNATION_BYTES
from planaria.spark.sink import sealing
from planaria.spark.sink.options import WriteOptions, check_columns
from planaria.spark.sink.sealing import by_topic, records

STREAM = (7, bytes(INCARNATION_BYTES))
PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SWAPPED = pa.struct([("value", pa.string()), ("key", pa.string())])
TYPES: dict[str, list[Any]] = {
    "value": [pa.binary(), pa.string(), pa.large_binary(), pa.large_string()],
    "key": [pa.binary(), pa.string()],
    "topic": [pa.string(), pa.large_string()],
    "headers": [pa.map_(pa.string(), pa.binary()), pa.map_(pa.string(), pa.string()), PAIRS],
}
Row = tuple[str, bytes, bytes | None, list[tuple[str, bytes]]]


def text(rng: Random) -> str:
    return "".join(rng.choice("aé€") for _ in range(rng.choice([0, 1, 5, 40])))


def any_rows(rng: Random) -> list[Row]:
    def row() -> Row:
        names = rng.sample(["unit", "site", "é"], rng.randrange(4))
        headers = [(name, text(rng).encode()) for name in names]
        key = rng.choice([None, text(rng).encode()])
        return f"t/{rng.randrange(3)}", text(rng).encode(), key, headers

    return [row() for _ in range(rng.randrange(1, 60))]


def as_batch(rows: list[Row], rng: Random) -> pa.RecordBatch:
    """The rows as Spark might hand them over: any of the types, cut out of a longer batch."""
    chosen = {name: rng.choice(types) for name, types in TYPES.items()}

    def fitting(cell: bytes | None, type: Any) -> Any:
        plain = cell if pa.types.is_binary(type) or pa.types.is_large_binary(type) else None
        return plain if plain is not None or cell is None else cell.decode()

    def pairs(headers: list[tuple[str, bytes]]) -> Any:
        if not headers and rng.random() < 0.5:
            return None
        type = chosen["headers"]
        if type is PAIRS:
            return [{"key": name, "value": value} for name, value in headers]
        return [(name, fitting(value, type.item_type)) for name, value in headers]

    before = [("t/x", b"before", b"k", [("unit", b"x")])]
    columns: dict[str, list[Any]] = {"value": [], "key": [], "topic": [], "headers": []}
    for topic, value, key, headers in [*before, *rows, *before]:
        columns["topic"].append(topic)
        columns["value"].append(fitting(value, chosen["value"]))
        columns["key"].append(fitting(key, chosen["key"]))
        columns["headers"].append(pairs(headers))
    arrays = {name: pa.array(cells, chosen[name]) for name, cells in columns.items()}
    return pa.record_batch(arrays).slice(1, len(rows))


def test_records_have_the_rows_of_the_batch(
    seeds: Callable[[int, int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(seeds(150, 20_000)):
        rng = stream(seed, "sealing")
        monkeypatch.setattr(sealing, "RECORD_ROWS", rng.choice([1, 7, 1024]))
        monkeypatch.setattr(sealing, "RECORD_BYTES", rng.choice([1, 50, 1 << 17]))
        rows, found, first = any_rows(rng), list[Row](), 0
        for topic, part in by_topic(as_batch(rows, rng), None):
            for seal in records(part):
                record = seal(STREAM, first, 99)
                assert (record.first, record.time) == (first, 99)
                first = record.end
                for it in record.publications(record.first, record.end):
                    found.append((topic, it.payload, it.key, [*it.headers]))
        order = list(dict.fromkeys(row[0] for row in rows))
        assert found == sorted(rows, key=lambda row: order.index(row[0])), seed


def test_one_topic_for_all_wins_over_the_column() -> None:
    batch = pa.record_batch({"value": ["a", "b"], "topic": ["x", None]})
    assert [topic for topic, _ in by_topic(batch, "all")] == ["all"]
    with pytest.raises(UsageError, match="row 1 has no topic"):
        list(by_topic(batch, None))


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"value": ["a", None]}, "row 1 has no value"),
        ({"value": ["a"], "key": ["k" * 2000]}, "key of 2000: at most 1024"),
        ({"value": ["a" * (1 << 21)]}, "at most"),
        ({"value": ["a"], "headers": [[(str(n), "") for n in range(65)]]}, "at most 64"),
    ],
)
def test_what_no_record_holds_is_named(columns: dict[str, Any], said: str) -> None:
    types = {"headers": pa.map_(pa.string(), pa.string())}
    batch = pa.record_batch({name: pa.array(it, types.get(name)) for name, it in columns.items()})
    with pytest.raises(UsageError, match=said):
        [seal(STREAM, 0, 0) for seal in records(batch)]


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ([("unit", None)], "header 'unit' has no value: leave it out"),
        ([("a", "x"), ("b", None)], "header 'b' has no value"),
        ([(None, "x")], "a header has no name"),
        ([None], "a header has no name"),
    ],
)
def test_a_header_that_lacks_its_name_or_value_is_refused(cell: Any, said: str) -> None:
    pairs = [it and {"key": it[0], "value": it[1]} for it in cell]
    columns = [pa.array([None, pairs], pa.list_(SWAPPED))]
    if all(cell) and all(name for name, _ in cell):
        columns.append(pa.array([None, cell], pa.map_(pa.string(), pa.string())))
    for column in columns:
        batch = pa.record_batch({"value": pa.array(["a", "b"]), "headers": column})
        with pytest.raises(UsageError, match=said):
            list(records(batch))


def test_headers_are_taken_by_the_names_of_their_fields_in_whatever_order() -> None:
    headers = pa.array([[{"key": "unit", "value": "mm"}]], pa.list_(SWAPPED))
    (seal,) = records(pa.record_batch({"value": pa.array(["a"]), "headers": headers}))
    (found,) = seal(STREAM, 0, 0).publications(0, 1)
    assert [*found.headers] == [("unit", b"mm")]


@pytest.mark.parametrize(
    ("fields", "good"),
    [
        ("key STRING, value BINARY", True),
        ("value STRING, key STRING", True),
        ("value BINARY, key STRING", True),
        ("name STRING, text STRING", False),
        ("Key STRING, value STRING", False),
        ("key BINARY, value STRING", False),
        ("key STRING, value STRING, more STRING", False),
        ("key STRING", False),
    ],
)
def test_fields_of_headers_have_the_names_of_what_they_are(fields: str, good: bool) -> None:
    types = {"STRING": StringType(), "BINARY": BinaryType()}
    inner = [StructField(it.split()[0], types[it.split()[1]]) for it in fields.split(", ")]
    headers = StructField("headers", ArrayType(StructType(inner)))
    schema = StructType([StructField("value", StringType()), headers])
    if good:
        check_columns(schema, "t")
    else:
        with pytest.raises(UsageError, match=r"column headers is array<.*with these names"):
            check_columns(schema, "t")


def test_a_path_is_the_topic_unless_the_option_names_another() -> None:
    assert WriteOptions.parse({"path": "t"}).topic == "t"
    assert WriteOptions.parse({"path": "t", "topic": "t"}).topic == "t"
    with pytest.raises(UsageError, match="option topic: 'u', but the path is 't'; give one"):
        WriteOptions.parse({"path": "t", "topic": "u"})


def test_a_column_that_is_there_twice_is_refused() -> None:
    schema = StructType([StructField("value", StringType())] * 2)
    with pytest.raises(UsageError, match="2 columns value: select one"):
        check_columns(schema, "t")


def test_records_end_at_rows_and_bytes() -> None:
    batch = pa.record_batch({"value": [b"x" * 100] * 5000})
    found = [seal(STREAM, 0, 0) for seal in records(batch)]
    assert {it.count for it in found[:-1]} == {sealing.RECORD_ROWS}
    large = pa.record_batch({"value": [b"x" * 50_000] * 7})
    assert [seal(STREAM, 0, 0).count for seal in records(large)] == [2, 2, 2, 1]


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("key", b"k" * 1000),
        ("headers", [("n" * 200, b"v" * 8000)]),
        ("headers", [(str(number), b"") for number in range(64)]),
    ],
)
def test_keys_and_headers_count_as_values_do(column: str, cell: Any) -> None:
    types = {"key": pa.binary(), "headers": pa.map_(pa.string(), pa.binary())}
    cells = pa.array([cell] * 2100, types[column])
    batch = pa.record_batch({"value": pa.array([b""] * 2100), column: cells}).slice(50, 2000)
    found = [seal(STREAM, 0, 0) for seal in records(batch)]
    assert sum(it.count for it in found) == 2000
    sizes = [len(it.data) for it in found[:-1]]
    assert min(sizes) > sealing.RECORD_BYTES // 2
    assert max(sizes) < sealing.RECORD_BYTES + 12 * sealing.RECORD_ROWS
