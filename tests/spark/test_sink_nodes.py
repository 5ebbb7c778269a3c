"""Source, sink and nodes, without Spark: what they refuse, and how long they let a task wait."""

import asyncio
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from planaria.core.errors import PlanariaError
from planaria.network.client.batches import AHEAD_BYTES_MAX, Stager
from planaria.records.record import Draft, seal
from planaria.spark.datasource import PlanariaDataSource
from planaria.spark.sink.writers import BatchWriter, StreamWriter, Written
from secure_lab import Secure, run

RIGHTS = """
[[allow]]
who = ["alice"]
rights = ["publish", "subscribe"]
topics = ["weather/#"]
"""

DIVIDED = """["publish"]
topics = ["#"]
[[allow]]
who = ["alice"]
rights = ["subscribe"]
topics = ["weather/#"]"""


def test_a_topic_without_the_right_to_publish_is_an_error_that_names_the_batch(
    tmp_path: Path,
) -> None:
    file = tmp_path / "rights.toml"
    file.write_text(RIGHTS)
    rows = pa.RecordBatch.from_pydict({"value": [b"mild", b"wet"]})
    schema = StructType([StructField("value", BinaryType())])

    async def test(lab: Secure) -> None:
        node = await lab.node(rights=file)

        async def stage(topic: str) -> int:
            options = {
                "servers": node.listen,
                "credentials": str(lab.people["alice"]),
                "copies": "1",
            }
            writer = BatchWriter({**options, "topic": topic}, schema, overwrite=False)
            return len(await asyncio.to_thread(writer.stage, "q", 7, iter([rows])))

        assert await stage("weather/oslo") == 1
        with pytest.raises(PlanariaError) as error:
            await stage("news")
        said = str(error.value)
        assert "batch 7 of query q: " in said
        assert "has no right to publish on 'news'" in said
        assert "\n" not in said

    run(tmp_path, test)


def test_a_query_that_gets_fewer_copies_than_it_wants_is_told_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = pa.RecordBatch.from_pydict({"value": [b"mild", b"wet"], "topic": ["a", "b"]})
    schema = StructType([StructField("value", BinaryType()), StructField("topic", StringType())])

    async def test(lab: Secure) -> None:
        node = await lab.node()
        options = {"servers": node.listen, "credentials": str(lab.people["alice"])}

        def write(query: str, batch: int, copies: int) -> list[str]:
            writer = StreamWriter({**options, "copies": str(copies)}, schema)
            caplog.clear()
            written = Written(query, writer.stage(query, batch, iter([rows])))
            writer.commit([written, None], batch)
            return [it.getMessage() for it in caplog.records if it.name == "planaria.spark"]

        assert await asyncio.to_thread(write, "content", 0, 1) == []
        (said,) = await asyncio.to_thread(write, "wants-more", 4, 2)
        assert "query wants-more, batch 4: 1 of 2 copies on a: " in said
        assert await asyncio.to_thread(write, "wants-more", 5, 2) == []
        (said,) = await asyncio.to_thread(write, "another", 0, 3)
        assert "query another, batch 0: 1 of 3 copies" in said

    with caplog.at_level(logging.WARNING, "planaria.spark"):
        run(tmp_path, test)


def test_a_topic_without_the_right_to_subscribe_is_an_error_and_a_pattern_passes_over_it(
    tmp_path: Path,
) -> None:
    file = tmp_path / "rights.toml"
    file.write_text(RIGHTS.replace('["publish", "subscribe"]\ntopics = ["weather/#"]', DIVIDED))

    async def test(lab: Secure) -> None:
        node = await lab.node(rights=file)
        options = {"servers": node.listen, "credentials": str(lab.people["alice"])}

        def read(topics: str) -> list[bytes]:
            source = PlanariaDataSource({**options, "subscribe": topics, "columns": "value"})
            reader: Any = source.reader(source.schema())
            parts = [one for task in reader.partitions() for one in reader.read(task)]
            return [value for one in parts for value in one.column("value").to_pylist()]

        def followed(topics: str) -> set[str]:
            source = PlanariaDataSource({**options, "subscribe": topics})
            reader: Any = source.streamReader(source.schema())
            try:
                start = end = {"s": {}, "sub": reader.options.fingerprint, "v": 1}
                while end == start:
                    end = reader.latestOffset(start, ReadAllAvailable())
                return {*end["s"]}
            finally:
                reader.stop()

        async with lab.client("alice", node) as alice:
            for topic in ("news", "weather/oslo"):
                await alice.publish(topic, topic.encode(), copies=1)
        assert await asyncio.to_thread(read, "#") == [b"weather/oslo"]
        assert await asyncio.to_thread(followed, "#") == {"weather/oslo"}
        with pytest.raises(PlanariaError, match=r"no right to subscribe .*'news'") as error:
            await asyncio.to_thread(read, "news")
        assert "\n" not in str(error.value)

    run(tmp_path, test)


def test_a_task_waits_while_too_much_of_it_is_not_held() -> None:
    """So back-pressure reaches Spark, which hands on no rows meanwhile."""
    asked: list[asyncio.Future[None]] = []

    def begin(*_: object) -> asyncio.Future[None]:
        asked.append(asyncio.get_running_loop().create_future())
        return asked[-1]

    def sealing(stream: tuple[int, bytes], first: int, time: int) -> Any:
        return seal(stream, first, [Draft(bytes(1 << 16))], time=time)

    async def main() -> None:
        client: Any = SimpleNamespace(
            publisher=1,
            requests=SimpleNamespace(begin=begin),
            access=SimpleNamespace(sealer=lambda *_: None),
        )
        stager = Stager(client, 2)
        room = AHEAD_BYTES_MAX >> 16

        async def write() -> int:
            for _ in range(3 * room):
                await stager.put("t", sealing)
            return sum(it.rows for it in await stager.finish())

        writing = asyncio.create_task(write())
        for held in range(3 * room):
            for _ in range(100):
                await asyncio.sleep(0)
            assert not writing.done()
            assert len(asked) == min(room + held, 3 * room), "one more for each that is held"
            asked[held].set_result(None)
        assert await writing == 3 * room

    asyncio.run(main())
