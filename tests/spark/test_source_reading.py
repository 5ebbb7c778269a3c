"""Spark's readers without Spark: what they read from nodes on real sockets in this process."""

import json
import logging
from time import time
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from gate_lab import TOPIC, Lab, RawClient, numbered, publish, run, until
from planaria.core.errors import PlanariaError, UsageError
from planaria.network.client.messages import Lack, Pieces, Put, Read, Stored
from planaria.protocols.publications.deliveries import position_id
from planaria.protocols.publications.retention import Retention
from planaria.spark.source import fetch, holes, overview
from planaria.spark.source.fetch import DataLoss
from planaria.spark.source.stream import StreamReader
from source_lab import ALL, Empty, Row, apart, batch, follow, rows, stream, values


def test_a_row_has_all_that_was_published() -> None:
    async def read(lab: Lab) -> None:
        writer = await lab.client(0)
        stamp = 1_700_000_000_000_001
        await writer.publish(b"plain")
        assert [it["headers"] for it in await apart(lambda: rows(batch(lab)))] == [None]
        headers = (("h", b"\x00"), ("i", b""))
        record = writer.seal(b"whole", key=b"", headers=headers, timestamp=stamp)
        await writer.ask(Put, Stored, TOPIC, record.data)
        first, second = await apart(lambda: rows(batch(lab)))
        assert (first["key"], first["value"], first["headers"]) == (None, b"plain", None)
        assert (second["key"], second["value"]) == (b"", b"whole")
        assert [(it["key"], it["value"]) for it in second["headers"]] == list(headers)
        assert second["timestamp"].timestamp() * 1e6 == pytest.approx(stamp, abs=1)
        assert (second["topic"], second["publisher"]) == (TOPIC, writer.stream[0])
        assert [first["sequence"], second["sequence"]] == [0, 1]
        assert second["id"] == position_id(*writer.stream, 1)
        few = await apart(lambda: rows(batch(lab, columns="id,value")))
        assert [list(row) for row in few] == [["id", "value"]] * 2

    run(read, 1, 1)


def test_the_same_offsets_give_the_same_rows_from_every_node_and_after_a_restart() -> None:
    async def read(lab: Lab) -> None:
        writers = [await lab.client(at) for at in (0, 1, 0)]
        for writer in writers:
            await publish(writer, 40)
        readers = [await apart(lambda at=at: stream(lab, at)) for at in (0, 1)]
        await until(lambda: len(lab.store(0)) == len(lab.store(1)) == 120)
        one, other = readers
        start = Empty.of(one)
        middle = await apart(lambda: one.latestOffset(start, ReadMaxRows(50)))
        end = await apart(lambda: one.latestOffset(middle, ALL))
        for between in ((start, middle), (middle, end)):
            found = [await apart(rows, it, *between) for it in readers]
            again = await apart(rows, stream(lab, 1, minPartitions=3), *between)
            assert found[0] == found[1] == again
        assert len(await apart(lambda: rows(one, start, middle))) == 50
        whole = await apart(lambda: rows(other, start, end))
        assert sorted(values(whole)) == sorted(numbered(40) * 3)
        for reader in readers:
            await apart(reader.stop)

    run(read, 2, 2)


def test_latest_begins_with_what_comes_and_is_pinned_by_a_first_batch_without_rows() -> None:
    async def read(lab: Lab) -> None:
        writer = await lab.client(0)
        await publish(writer, 5)
        reader = await apart(lambda: stream(lab))
        start = await apart(reader.initialOffset)
        await publish(writer, 5, 8)
        pinned = await apart(lambda: reader.latestOffset(start, ALL))
        assert pinned == start
        assert rows(reader, start, pinned) == []
        found, end = await apart(lambda: follow(reader, pinned))
        assert values(found) == numbered(5, 8)
        other = await lab.client(0)
        await publish(other, 2)  # a publisher that was not there
        found, end = await apart(lambda: follow(reader, end))
        assert values(found) == numbered(2)
        idle = await apart(lambda: reader.latestOffset(end, ALL))
        assert json.dumps(idle) == json.dumps(end)
        await apart(reader.stop)

    run(read, 1, 1)


def test_earliest_given_positions_and_times_begin_where_they_say() -> None:
    async def read(lab: Lab) -> None:
        writer = await lab.client(0)
        now = int(time())
        for number in range(6):
            record = writer.seal(b"%d" % number, at=now - 60 + 10 * number)
            await writer.ask(Put, Stored, TOPIC, record.data, copies=1)
        name = f"{writer.stream[0]}/{writer.stream[1].hex()}"
        given = json.dumps({TOPIC: {name: 4}})
        at = f"{now - 35}000"
        for starting, first in (("earliest", 0), (given, 4), (at, 3)):
            reader = await apart(lambda it=starting: stream(lab, startingOffsets=it))
            begun = await apart(reader.initialOffset)
            if starting == at:
                assert await apart(reader.latestOffset, begun, ALL) == begun
            found, _ = await apart(follow, reader, begun)
            assert values(found) == numbered(first, 6), starting
            await apart(reader.stop)
            whole = await apart(lambda it=starting: rows(batch(lab, startingOffsets=it)))
            assert values(whole) == numbered(first, 6), starting
        for ending, end in ((given, 4), (at, 3)):
            part = await apart(lambda it=ending: rows(batch(lab, endingOffsets=it)))
            assert values(part) == numbered(end), ending
        with pytest.raises(UsageError, match="startingOffsets"):
            batch(lab, startingOffsets="latest")

    run(read, 1, 1)


def test_available_now_ends_with_what_was_there() -> None:
    async def read(lab: Lab) -> None:
        writer = await lab.client(0)
        await publish(writer, 10)
        reader = await apart(lambda: stream(lab, startingOffsets="earliest", maxRowsPerTrigger=4))
        assert reader.getDefaultReadLimit() == ReadMaxRows(4)
        await apart(reader.prepareForTriggerAvailableNow)
        await publish(writer, 10, 20)
        at, found = await apart(reader.initialOffset), list[Row]()
        for _ in range(4):
            more, at = await apart(lambda at=at: follow(reader, at, ReadMaxRows(4)))
            found += more
        assert values(found) == numbered(10)
        await apart(reader.stop)

    run(read, 1, 1)


def test_available_now_from_a_time_reads_all_in_one_run() -> None:
    """Spark asks where a query begins twice, and ends it with the second batch without rows."""

    async def read(lab: Lab) -> None:
        writer = await lab.client(0)
        await publish(writer, 10)
        at = f"{int(time()) - 3600}000"

        async def new() -> StreamReader:
            reader = await apart(lambda: stream(lab, startingOffsets=at))
            await apart(reader.prepareForTriggerAvailableNow)
            return reader

        reader = await new()
        begun = await apart(reader.initialOffset)
        assert await apart(reader.latestOffset, begun, ALL) == begun
        assert await apart(reader.initialOffset) == begun
        found, end = await apart(follow, reader, begun)
        assert values(found) == numbered(10)
        assert await apart(reader.latestOffset, end, ALL) == end
        await apart(reader.stop)

        again = await new()  # after a crash before the first batch was committed
        assert await apart(again.initialOffset) == begun
        assert await apart(rows, again, begun, begun) == []
        assert values((await apart(follow, again, begun))[0]) == numbered(10)
        await apart(again.stop)

    run(read, 1, 1)


def test_a_topic_that_appears_later_is_read_and_an_empty_one_is_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(overview, "TOPICS_SECONDS", 0.0)

    async def read(lab: Lab) -> None:
        assert await apart(lambda: rows(batch(lab, subscribe="nobody,none/#"))) == []
        reader = await apart(lambda: stream(lab, subscribe="news,more/#"))
        at = await apart(reader.initialOffset)
        assert await apart(lambda: reader.latestOffset(at, ALL)) == at
        writer, found = await lab.client(0), list[Row]()
        await writer.publish(b"0", topic="more/sport", copies=1)
        writer.next, writer.stream = 0, (writer.stream[0], bytes(12))
        await writer.publish(b"1", copies=1)
        while len(found) < 2:
            more, at = await apart(lambda at=at: follow(reader, at))
            found += more
        assert sorted((row["topic"], row["value"]) for row in found) == [
            ("more/sport", b"0"), (TOPIC, b"1")
        ]  # fmt: skip
        await apart(reader.stop)

    run(read, 1, 0)


def test_a_gap_of_retention_fails_or_is_skipped_and_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def read(lab: Lab) -> None:
        writer = await lab.client(0)
        await aged(writer, 0, 10)
        reader = await apart(lambda: stream(lab, startingOffsets="earliest"))
        begun = await apart(reader.initialOffset)
        found, at = await apart(follow, reader, begun)
        assert values(found) == numbered(6, 10), "what was expired before is no loss"
        await aged(writer, 10, 20)
        end = await apart(lambda: reader.latestOffset(at, ALL))
        lost = f"numbers 10 to 15 of {writer.stream[0]}/{writer.stream[1].hex()} in {TOPIC}"
        with pytest.raises(DataLoss, match=lost):
            await apart(lambda: rows(reader, at, end))
        lenient = await apart(lambda: stream(lab, failOnDataLoss="false"))
        with caplog.at_level(logging.WARNING, "planaria.spark"):
            rest = await apart(lambda: rows(lenient, at, end))
        assert values(rest) == numbered(16, 20)
        assert lost in caplog.text
        await apart(reader.stop)

    run(read, 1, 1, retention={TOPIC: Retention(count=4)})


async def aged(writer: RawClient, lo: int, hi: int) -> None:
    """Publish with ten seconds between: retention is by seconds."""
    start = int(time()) - 1000
    for number in range(lo, hi):
        record = writer.seal(b"%d" % number, at=start + 10 * number)
        await writer.ask(Put, Stored, TOPIC, record.data, copies=1)


def test_a_hole_is_waited_for_then_passed_and_read_when_it_comes_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def read(lab: Lab) -> None:
        writer = await lab.client(0)
        records = [writer.seal(payload) for payload in numbered(6)]
        for at in (0, 1, 3, 4):
            await writer.ask(Put, Stored, TOPIC, records[at].data, copies=1)
        reader = await apart(lambda: stream(lab, startingOffsets="earliest"))
        begun = await apart(reader.initialOffset)
        found, at = await apart(follow, reader, begun)
        assert values(found) == numbered(2)
        monkeypatch.setattr(holes, "GIVE_UP_SECONDS", 0.0)
        found, passed = await apart(lambda: follow(reader, at))
        assert values(found) == numbered(3, 5)
        assert [[5], [2, 3]] in next(iter(passed["s"].values())).values()
        await writer.ask(Put, Stored, TOPIC, records[2].data, copies=1)
        found, _ = await apart(lambda: follow(reader, passed))
        assert values(found) == [b"2"]
        await apart(reader.stop)

    run(read, 1, 1)


def test_a_read_goes_on_at_another_node_when_its_node_dies_in_the_middle() -> None:
    async def read(lab: Lab) -> None:
        writer = await lab.client(1)
        payloads = [b"%06d" % number + bytes(122) for number in range(40_000)]
        for at in range(0, len(payloads), 1000):
            await writer.publish(*payloads[at : at + 1000], copies=2)
        await until(lambda: len(lab.store(0)) == len(payloads))
        reader = await apart(lambda: stream(lab, 0, 1, startingOffsets="earliest"))
        start = await apart(reader.initialOffset)
        end = await apart(lambda: reader.latestOffset(start, ALL))
        (task,) = await apart(lambda: stream(lab, 0, 1, minPartitions=1).partitions(start, end))
        parts = reader.read(task)
        found = [await apart(lambda: next(parts))]
        await lab.kill(0)
        found += await apart(lambda: list(parts))
        table = pa.Table.from_batches(found)
        assert table.column("value").to_pylist() == payloads
        await apart(reader.stop)

    run(read, 2, 2)


def test_what_a_node_lacks_is_read_at_another(monkeypatch: pytest.MonkeyPatch) -> None:
    async def read(lab: Lab) -> None:
        writer = await lab.client(0)
        await publish(writer, 5)
        await until(lambda: len(lab.store(1)) == 5)

        def lacking(message: Read, *_: Any) -> Pieces:
            lacks = tuple(Lack(*writer.stream, it.next, 5, False) for it in message.after)
            return Pieces(message.request, TOPIC, [], [], lacks)

        monkeypatch.setattr(lab.gates[0].queries, "_range", lacking)
        end: Any = {"s": {TOPIC: {f"{writer.stream[0]}/{writer.stream[1].hex()}": 5}}}
        reader = await apart(lambda: stream(lab, 0, 1))
        end |= {"sub": reader.options.fingerprint, "v": 1}
        found = await apart(lambda: rows(reader, Empty.of(reader), end))
        assert values(found) == numbered(5)
        monkeypatch.setattr(fetch, "ABSENT_SECONDS", 0.0)
        far = json.loads(json.dumps(end).replace(": 5}", ": 7}"))
        with pytest.raises(PlanariaError, match=r"numbers 5 to 6 of .* at no node"):
            await apart(lambda: rows(reader, end, far))

    run(read, 2, 2)


def test_an_answer_that_does_not_fit_the_question_fails_the_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A node that forgets a record in the middle of a range must not make a shorter result."""
    monkeypatch.setattr(fetch, "PATIENCE_SECONDS", 0.2)

    async def read(lab: Lab) -> None:
        writer = await lab.client(0)
        await publish(writer, 5)
        reader = await apart(lambda: stream(lab))
        end = await apart(lambda: reader.latestOffset(Empty.of(reader), ALL))
        honest = lab.gates[0].queries._range

        def forgetful(message: Read, *rest: Any) -> Any:
            found = honest(message, *rest)
            found.pieces.pop(2)
            return found

        monkeypatch.setattr(lab.gates[0].queries, "_range", forgetful)
        with pytest.raises(PlanariaError, match="of what was asked for"):
            await apart(lambda: rows(reader, Empty.of(reader), end))
        await apart(reader.stop)

    run(read, 1, 1)


def test_a_filter_is_judged_at_the_node_and_members_become_columns() -> None:
    async def read(lab: Lab) -> None:
        writer = await lab.client(0)
        said = [
            b'{"n": 1, "s": "a", "x": 2}', b'{"n": 2.5, "s": 3, "x": 1e3, "b": true}', b"[1]", b"",
            b'{"n": 2147483648, "t": "2026-11-16T12:00:00+01:00", "d": "2026-11-16"}',
        ]  # fmt: skip
        await writer.publish(*said, copies=1)
        options = {"schema": "n INT, s STRING, x DOUBLE, b BOOLEAN, t TIMESTAMP, d DATE"}
        found = await apart(lambda: rows(batch(lab, **options, columns="sequence,n,s,x,b,t,d")))
        assert [tuple(row.values())[:5] for row in found] == [
            (0, 1, "a", 2.0, None), (1, None, None, 1000.0, True), (2, *[None] * 4),
            (3, *[None] * 4), (4, *[None] * 4),
        ]  # fmt: skip
        assert found[4]["t"].isoformat() == "2026-11-16T11:00:00+00:00"
        assert found[4]["d"].isoformat() == "2026-11-16"
        part = await apart(lambda: rows(batch(lab, filter="x > 1", columns="sequence")))
        assert [row["sequence"] for row in part] == [0, 1]
        for wrong in ("n DECIMAL(3,1)", "key STRING", "n"):
            with pytest.raises(UsageError, match="schema"):
                batch(lab, schema=wrong)

    run(read, 1, 1)
