"""Offsets and plans of Spark's source against their definition: sets of positions."""

import json
import random
from datetime import UTC, datetime
from time import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from planaria.core.errors import UsageError
from planaria.records.positions import Intervals, Mark
from planaria.records.record import Stream
from planaria.spark.datasource import PlanariaDataSource
from planaria.spark.source.offsets import (
    Offset,
    Range,
    Vectors,
    between,
    clipped,
    fingerprint,
    merged,
    mine,
    taken,
    union,
)
from planaria.spark.source.options import ReadOptions, Where
from planaria.spark.source.plan import advance, divide
from planaria.spark.source.stream import StreamReader
from planaria.spark.source.table import TYPES, schema_of

STREAMS: list[Stream] = [(number, bytes([number]) * 12) for number in (1, 2, 9)]
TOPICS = ("a", "b/c")


@st.composite
def marks(draw: st.DrawFn) -> Mark:
    end = draw(st.integers(0, 20))
    numbers = draw(st.sets(st.integers(0, 19)))
    have = Intervals((it, it + 1) for it in sorted(numbers) if it < end)
    return Mark(have.end, tuple(have.missing(0, have.end)))


vectors = st.dictionaries(
    st.sampled_from(TOPICS), st.dictionaries(st.sampled_from(STREAMS), marks(), max_size=3)
)


def positions(of: Vectors) -> set[tuple[str, Stream, int]]:
    """What a reader there has read, number by number."""
    return {
        (topic, stream, number)
        for topic, vector in of.items()
        for stream, mark in vector.items()
        for lo, hi in taken(mark)
        for number in range(lo, hi)
    }


def numbers(ranges: list[Range]) -> list[tuple[str, Stream, int]]:
    return [(it.topic, it.stream, number) for it in ranges for number in range(it.lo, it.hi)]


@given(vectors, vectors)
def test_rows_of_a_batch_are_what_its_end_has_read_and_its_start_has_not(
    start: dict[str, dict[Stream, Mark]], end: dict[str, dict[Stream, Mark]]
) -> None:
    found = numbers(between(start, end))
    assert sorted(found) == sorted(positions(end) - positions(start))
    assert len(found) == len({*found})


def test_what_nobody_was_promised_is_marked() -> None:
    one, other = STREAMS[:2]
    start = {"a": {one: Mark(5, ((2, 3),))}}
    found = between(start, {"a": {one: Mark(7), other: Mark(2)}})
    assert [(it.lo, it.hi, it.unsure) for it in found] == [
        (2, 3, True),
        (5, 7, False),
        (0, 2, True),
    ]


@given(vectors, vectors)
def test_readers_together_and_in_common_have_what_their_sets_have(
    one: dict[str, dict[Stream, Mark]], other: dict[str, dict[Stream, Mark]]
) -> None:
    assert positions(merged(one, other)) == positions(one) | positions(other)
    assert positions(clipped(one, other)) == positions(one) & positions(other)


@given(marks(), marks())
def test_a_union_of_marks_is_normal(one: Mark, other: Mark) -> None:
    both = union(one, other)
    assert both == union(other, one)
    assert Intervals(taken(both)).end == both.next


@given(vectors, vectors, st.integers(1, 12), st.integers(0, 8))
def test_a_batch_takes_its_share_of_every_stream_and_at_most_so_many(
    start: dict[str, dict[Stream, Mark]], have: dict[str, dict[Stream, Mark]], limit: int, low: int
) -> None:
    lows = {topic: dict.fromkeys(STREAMS, low) for topic in TOPICS}
    whole = {it for it in positions(merged(start, have)) - positions(start) if it[2] >= low}
    reached: Vectors = start
    steps = 0
    while True:
        end = advance(reached, have, lows, limit)
        new = positions(end) - positions(reached)
        assert new <= positions(have)
        rows = {it for it in new if it[2] >= low}
        left = {it for it in whole if it not in positions(reached)}
        assert len(rows) == min(limit, len(left))
        if len(left) > limit:
            ranges = between(reached, merged(reached, have))
            for topic in TOPICS:
                for stream in STREAMS:
                    waiting = sum(it[:2] == (topic, stream) for it in left)
                    share = sum(it[:2] == (topic, stream) for it in rows)
                    parts = [it for it in ranges if it[:2] == (topic, stream)]
                    assert abs(share - waiting * limit / len(left)) <= len(parts)
        if not new:
            break
        reached, steps = end, steps + 1
        assert steps < 300
    assert positions(reached) == positions(merged(start, have))


@given(vectors, st.integers(1, 5), st.integers(0, 8))
def test_tasks_divide_the_ranges_without_loss_and_about_evenly(
    end: dict[str, dict[Stream, Mark]], tasks: int, low: int
) -> None:
    lows = {topic: dict.fromkeys(STREAMS, low) for topic in TOPICS}
    ranges = between({}, end)
    works = divide(ranges, tasks, lows)
    assert numbers([it for work in works for it in work.ranges]) == numbers(ranges)
    assert len(works) <= tasks
    sizes = [sum(n >= low for _, _, n in numbers(list(work.ranges))) for work in works]
    assert max(sizes, default=0) <= -(-sum(sizes) // tasks)


@given(vectors)
def test_an_offset_is_the_same_text_after_a_journey_and_its_keys_ascend(
    end: dict[str, dict[Stream, Mark]],
) -> None:
    plain = Offset("f" * 16, end).to_json()
    text = json.dumps(plain)
    assert text == json.dumps(plain, sort_keys=True)
    again = Offset.from_json(json.loads(text))
    assert json.dumps(again.to_json()) == text
    assert positions(again.vectors) == positions(end)


def test_an_offset_of_another_subscription_or_version_is_refused() -> None:
    own = Offset(fingerprint(["a/#", "b"]), {}).to_json()
    assert mine(own, ("b", "a/#")).vectors == {}
    with pytest.raises(UsageError, match=r"another subscription .* than a/\+ .*checkpointLocation"):
        mine(own, ("a/+",))
    for wrong in ({"v": 2, "sub": "x", "s": {}}, {"v": 1, "s": {}}, {"v": 1, "sub": "", "s": 3}, 7):
        with pytest.raises(UsageError):
            mine(wrong, ("a",))


def test_options_are_understood_or_refused_with_their_name() -> None:
    options = ReadOptions.parse(
        {
            "servers": "a:1, b:2", "subscribe": "b, a/#", "startingOffsets": "2026-11-16T12:00:00Z",
            "maxrowspertrigger": "5", "FAILONDATALOSS": "false", "columns": "value, id",
        }
    )  # fmt: skip
    assert options.patterns == ("a/#", "b")
    assert ReadOptions.parse({"path": "b"}).patterns == ("b",)
    assert ReadOptions.parse({"path": "b", "subscribe": " b"}).patterns == ("b",)
    assert options.network.servers == ("a:1", "b:2")
    at = int(datetime(2026, 11, 16, 12, tzinfo=UTC).timestamp())
    assert options.starting == Where("time", at)
    assert ReadOptions.parse({"subscribe": "a", "startingOffsets": f"{at}999"}).starting == Where(
        "time", at
    )
    assert (options.rows_max, options.fail_on_data_loss) == (5, False)
    given = '{"a": {"1/010101010101010101010101": 7}}'
    where = ReadOptions.parse({"subscribe": "a", "startingOffsets": given}).starting
    assert where is not None
    assert where.vectors == {"a": {STREAMS[0]: Mark(7)}}
    offset = json.dumps(Offset("x", where.vectors).to_json())
    assert ReadOptions.parse({"subscribe": "a", "startingOffsets": offset}).starting == where
    for word in ("Earliest", " LATEST"):
        found = ReadOptions.parse({"subscribe": "a", "startingOffsets": word}).starting
        assert found == Where(word.strip().lower())
    named_s = '{"s": {"1/010101010101010101010101": 7}}'
    found = ReadOptions.parse({"subscribe": "s", "startingOffsets": named_s}).starting
    assert found == Where("given", 0, {"s": {STREAMS[0]: Mark(7)}})


SEVEN = '{"a": {"1/010101010101010101010101": 7}}'
AHEAD = str(1000 * int(time() + 3600))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"subscibe": "a"}, "unknown option 'subscibe'; did you mean subscribe?"),
        ({"subscribe": ""}, "option subscribe: name a topic or pattern"),
        ({"subscribe": "a/#/b"}, "option subscribe: .*'#' may only be the last level"),
        ({"subscribe": "a,,b"}, "option subscribe: "),
        ({"path": "b"}, "option subscribe: 'a', but the path is 'b'; give one of them"),
        ({"servers": "a:b"}, "option servers: address 'a:b': write HOST:PORT"),
        ({"servers": ","}, "option servers: 0 servers"),
        ({"startingOffsets": "yesterday"}, "option startingOffsets: 'yesterday' is not earliest"),
        ({"startingOffsets": "-1"}, "option startingOffsets: '-1' is not earliest"),
        ({"startingOffsets": AHEAD}, "option startingOffsets: .* in the future; write latest"),
        ({"startingOffsets": "{}}"}, 'option startingOffsets: .*; write {"TOPIC": '),
        ({"startingOffsets": '{"a": 7}'}, "option startingOffsets: no vector .*; write {"),
        ({"startingOffsets": '{"a": {"0": 7}}'}, "it is publisher/incarnation; write {"),
        ({"startingOffsets": SEVEN.replace("7", "-2")}, "option startingOffsets: no vector"),
        ({"startingOffsets": '{"b": {}}'}, "option startingOffsets: 'b' is not subscribed to: a "),
        ({"startingOffsets": '{"s": {}, "sub": "", "v": 2}'}, "no offset of version 1"),
        ({"endingOffsets": "earliest"}, "option endingOffsets: a range does not end at the"),
        ({"endingOffsets": SEVEN.replace("a", "b")}, "option endingOffsets: 'b' is not"),
        ({"startingOffsets": "2000", "endingOffsets": "1000"}, "endingOffsets: .* before starting"),
        (
            {"startingOffsets": SEVEN, "endingOffsets": SEVEN.replace("7", "6")},
            "endingOffsets: .* before starting",
        ),
        ({"maxRowsPerTrigger": "0"}, "option maxRowsPerTrigger: '0' is not a number from 1"),
        ({"minPartitions": "many"}, "option minPartitions: 'many' is not a number from 1"),
        ({"failOnDataLoss": "perhaps"}, "option failOnDataLoss: 'perhaps' is neither"),
        ({"failOnDataLoss": ""}, "option failOnDataLoss: write true or false"),
        ({"columns": "value,id,value"}, "option columns: 'value' is named twice"),
        ({"columns": "values"}, "unknown column 'values'; did you mean value?"),
        ({"schema": "n INT, n STRING"}, "option schema: 'n' is named twice"),
        ({"schema": "n INT, N STRING"}, "option schema: 'N' is named twice"),
        ({"schema": "`ä ö` INT, `Ä Ö` INT"}, "option schema: 'Ä Ö' is named twice"),
        ({"schema": "ID STRING"}, "option schema: 'ID' is a column of every topic"),
        ({"schema": "n INT, Value STRING"}, "option schema: 'Value' is a column of every topic"),
        ({"schema": "n"}, "option schema: 'n' is not NAME TYPE"),
        ({"schema": "n DECIMAL(3,1)"}, "option schema: .* use from_json"),
        ({"schema": "key STRING"}, "option schema: 'key' is a column of every topic"),
        ({"filter": "a >"}, "option filter: "),
        ({"filter": "a > 1 AND a < 1"}, "option filter: never true"),
    ],
)
def test_what_an_option_cannot_be_is_told_in_one_line_that_names_it(
    wrong: dict[str, str], said: str
) -> None:
    with pytest.raises(UsageError, match=said) as error:
        schema_of(ReadOptions.parse({"subscribe": "a", **wrong}))
    assert "\n" not in str(error.value)


NAMED = {"columns": "topic,n", "schema": "n INT"}


@pytest.mark.parametrize(
    ("fields", "options", "said"),
    [
        ([("Sequence", LongType(), True)], {}, "a column 'Sequence': write sequence, as every"),
        ([("TOPIC", StringType(), True)], {}, "a column 'TOPIC': write topic"),
        ([("n", LongType(), True), ("N", LongType(), True)], {}, "'n' and 'N' differ in case"),
        ([("key", StringType(), True)], {}, "column key is binary, not string"),
        ([("key", BinaryType(), False)], {}, "column key may be null: leave out NOT NULL"),
        ([("headers", TYPES["headers"], False)], {}, "column headers may be null"),
        ([("n", LongType(), False)], {}, "column n may be null: leave out NOT NULL"),
        ([("topic", StringType(), True)], {"columns": "topic,id"}, "a schema beside the options"),
        ([("topic", StringType(), True)], {"schema": "n INT"}, "a schema beside the options"),
        ([("topic", StringType(), True), ("n", LongType(), True)], NAMED, "a schema beside the"),
        ([("topic", StringType(), True)], {"columns": "nosuch"}, "unknown column 'nosuch'"),
    ],
)
def test_a_schema_of_the_users_that_would_be_read_wrongly_is_refused(
    fields: list[tuple[str, DataType, bool]], options: dict[str, str], said: str
) -> None:
    schema = StructType([StructField(*field) for field in fields])
    source = PlanariaDataSource({"servers": "a:1", "subscribe": "a", **options})
    with pytest.raises(UsageError, match=said):
        source.reader(schema)


def test_a_schema_of_the_users_may_name_what_there_is_and_what_options_name() -> None:
    given = {"servers": "a:1", "subscribe": "a"}
    never_null = [StructField(name, TYPES[name], name in ("key", "headers")) for name in TYPES]
    members = [StructField("n", IntegerType()), StructField("é", StringType())]
    PlanariaDataSource(given).reader(StructType([*never_null, *members]))
    same = StructType([StructField("topic", StringType(), False), members[0]])
    PlanariaDataSource({**given, **NAMED}).reader(same)


def test_a_range_may_be_empty_and_a_stream_has_no_end() -> None:
    for same in ("1000", SEVEN):
        given = {"subscribe": "a", "startingOffsets": same, "endingOffsets": same}
        options = ReadOptions.parse({**given, "servers": "a:1"})
        assert options.starting == options.ending
    said = r"endingOffsets: a stream has no end; use trigger"
    with pytest.raises(UsageError, match=said):
        StreamReader(options, schema_of(options))
    reader: Any = PlanariaDataSource(given | {"servers": "a:1"}).streamReader(schema_of(options))
    questions = (
        reader.initialOffset,
        reader.prepareForTriggerAvailableNow,
        lambda: reader.latestOffset({}, reader.getDefaultReadLimit()),
        lambda: reader.partitions({}, {}),
    )
    for question in questions:
        with pytest.raises(UsageError, match=said):
            question()
    reader.stop()


def test_ten_thousand_publishers_are_planned_by_one_pass() -> None:
    chance = random.Random(1)
    have = {"a": {(number, bytes(12)): Mark(chance.randrange(1, 10)) for number in range(10_000)}}
    end = advance({}, have, {}, 20_000)
    assert sum(mark.next for mark in end["a"].values()) == 20_000
    works = divide(between({}, end), 4, {})
    assert [work.size for work in works] == [5000] * 4
