"""Topics in Parquet and back: whatever is interrupted is resumed, and nothing is there twice."""

import json
import logging
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyarrow import parquet

from gate_lab import TOPIC, Lab, RawClient, numbered, publish, run, until
from planaria.cli.main import main
from planaria.core.errors import PlanariaError, UsageError
from planaria.network import files
from planaria.network.client.messages import Put, Stored
from planaria.network.context import Context
from planaria.protocols.publications.retention import Retention
from planaria.records import packing
from planaria.records.packing import packed
from planaria.records.record import seal
from planaria.spark import archive as module
from planaria.spark import restore as restoring
from planaria.spark.archive import Archive, Commit, archive
from planaria.spark.restore import restore
from planaria.spark.source import holes
from planaria.spark.source.fetch import DataLoss
from source_lab import apart

DAY = 86_400_000_000


class Killed(BaseException):
    """Stands for a kill at that moment."""


def context(lab: Lab) -> Context:
    servers = tuple(lab.hosts[at].hello.addresses[0] for at in sorted(lab.alive))
    return Context(servers, insecure=True)


def write(lab: Lab, directory: Path, pattern: str = TOPIC, **options: Any) -> int:
    return sum(it.rows for it in archive(context(lab), [pattern], directory, **options))


def read(directory: Path) -> list[dict[str, Any]]:
    """As anybody reads partitioned Parquet."""
    return list(ds.dataset(directory, partitioning="hive").to_table().to_pylist())


def payloads(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(int(row["payload"]) for row in rows)


async def dated(writer: RawClient, count: int) -> None:
    """Publish on several days, with keys and headers."""
    for number in range(count):
        stamp = number * DAY // 4
        record = writer.seal(b"%d" % number, timestamp=stamp, key=b"k", headers=(("h", b"v"),))
        await writer.ask(Put, Stored, TOPIC, record.data, copies=1)


def test_a_topic_is_divided_by_name_and_date_and_each_run_adds_what_is_new(tmp_path: Path) -> None:
    async def use(lab: Lab) -> None:
        writer = await lab.client(0)
        await dated(writer, 10)
        assert await apart(write, lab, tmp_path, "#") == 10
        rows = read(tmp_path)
        assert payloads(rows) == list(range(10))
        assert {row["topic"] for row in rows} == {TOPIC}
        for row in rows:
            day = datetime.fromtimestamp(row["timestamp"].timestamp(), UTC).date()
            assert str(row["date"]) == str(day)
        assert await apart(write, lab, tmp_path, "#") == 0
        await publish(writer, 10, 12)
        other = await lab.client(0)
        await other.publish(b"12", topic="a/b%c d", copies=1)
        assert await apart(write, lab, tmp_path, "#") in (2, 3)
        rest = 13 - len(read(tmp_path))
        assert await apart(write, lab, tmp_path, "#") == rest
        found = read(tmp_path)
        assert payloads(found) == list(range(13))
        assert {row["topic"] for row in found} == {TOPIC, "a/b%c d"}
        with pytest.raises(UsageError, match="archive of #"):
            await apart(write, lab, tmp_path, TOPIC)

    run(use, 1, 1)


@pytest.mark.parametrize("moment", ["written", "committed", "half moved"])
def test_a_run_that_is_killed_is_resumed_exactly_once(
    tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH_ROWS", 8)

    async def use(lab: Lab) -> None:
        writer = await lab.client(0)
        await dated(writer, 20)
        with monkeypatch.context() as patch:
            kill(patch, moment)
            with pytest.raises(Killed):
                await apart(write, lab, tmp_path)
        seen = read(tmp_path) if list(tmp_path.glob("topic=*")) else []
        assert len(payloads(seen)) == len({*payloads(seen)})
        assert len(seen) < 20
        await apart(write, lab, tmp_path)
        assert payloads(read(tmp_path)) == list(range(20))
        assert not list((tmp_path / "_planaria/staged").rglob("*.parquet"))

    run(use, 1, 1)


def kill(patch: pytest.MonkeyPatch, moment: str) -> None:
    """Raise at the second batch, at this moment."""
    calls = 0

    def dying(honest: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == 2:
                raise Killed
            return honest(*arguments)

        return called

    if moment == "written":
        patch.setattr(module, "write_atomically", dying(files.write_atomically))
    elif moment == "committed":
        patch.setattr(Archive, "_put_in_place", dying(Archive._put_in_place))
    else:
        patch.setattr(Path, "replace", dying(Path.replace))


def test_two_runs_at_a_time_are_refused_and_a_committed_file_that_is_gone_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH_ROWS", 4)

    async def use(lab: Lab) -> None:
        writer = await lab.client(0)
        await dated(writer, 10)
        first = archive(context(lab), [TOPIC], tmp_path)
        assert (await apart(next, first)).rows == 4
        with pytest.raises(UsageError, match="another run"):
            await apart(write, lab, tmp_path)
        rest: list[Commit] = await apart(list, first)
        assert sum(it.rows for it in rest) == 6
        assert payloads(read(tmp_path)) == list(range(10))
        for name in Archive(tmp_path).commits()[-1].files:
            (tmp_path / name).unlink()
        with pytest.raises(PlanariaError, match="is committed and is not there"):
            await apart(write, lab, tmp_path)

    run(use, 1, 1)


def test_so_many_files_are_open_at_a_time_however_many_days_a_table_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "OPEN_MAX", 3)
    stamps = pa.array([number * DAY for number in range(10)], pa.timestamp("us", tz="UTC"))
    table, most = pa.table({"timestamp": stamps}), 0
    with module._Files(tmp_path, 0) as files:
        honest = parquet.ParquetWriter

        def counted(*arguments: Any) -> Any:
            nonlocal most
            most = max(most, len(files._open) + 1)
            return honest(*arguments)

        monkeypatch.setattr(parquet, "ParquetWriter", counted)
        for _ in range(2):
            files.write(TOPIC, table)
    assert (most, sum(files.rows.values())) == (3, 20)
    assert len(list(tmp_path.rglob("*.parquet"))) == len(files.rows)


def test_times_that_no_calendar_has_are_archived_without_a_date_and_come_back(
    tmp_path: Path,
) -> None:
    stamps = [0, (1 << 63) - 1, -(1 << 63), 253_402_300_800_000_000, 253_402_300_799_999_999]

    async def use(lab: Lab) -> None:
        writer = await lab.client(0)
        for number, stamp in enumerate(stamps):
            record = writer.seal(b"%d" % number, timestamp=stamp)
            await writer.ask(Put, Stored, TOPIC, record.data, copies=1)
        assert await apart(write, lab, tmp_path) == len(stamps)
        found = ds.dataset(tmp_path, partitioning="hive").to_table()
        days = dict(zip(*(found[it].to_pylist() for it in ("payload", "date")), strict=True))
        none = dict.fromkeys([b"1", b"2", b"3"])
        assert days == {b"0": "1970-01-01", **none, b"4": "9999-12-31"}
        assert await apart(restore, context(lab), Archive(tmp_path), TOPIC, 1) == (5, 5)
        await apart(write, lab, tmp_path)
        found = ds.dataset(tmp_path, partitioning="hive").to_table()
        assert Counter(found["timestamp"].cast("int64").to_pylist()) == Counter(stamps * 2)

    run(use, 1, 1)


def test_a_topic_whose_name_no_directory_can_have_is_told(tmp_path: Path) -> None:
    with module._Files(tmp_path, 0) as files:
        files.write("é" * 41, pa.table({"timestamp": pa.array([0], pa.timestamp("us"))}))
        with pytest.raises(UsageError, match="takes 258 bytes as the name of a directory"):
            files.write("é" * 42, pa.table({"timestamp": pa.array([0], pa.timestamp("us"))}))


def test_a_hole_that_nobody_fills_is_passed_over_and_archived_if_it_comes_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(holes, "GIVE_UP_SECONDS", 0.0)

    async def use(lab: Lab) -> None:
        writer = await lab.client(0)
        records = [writer.seal(payload) for payload in numbered(6)]
        for at in (0, 1, 3, 4):
            await writer.ask(Put, Stored, TOPIC, records[at].data, copies=1)
        assert await apart(write, lab, tmp_path) == 4
        assert f"numbers 2 to 2 of {writer.stream[0]}" in caplog.text
        monkeypatch.setattr(holes, "GIVE_UP_SECONDS", 1e9)  # what was passed is not waited for
        await writer.ask(Put, Stored, TOPIC, records[5].data, copies=1)
        assert await apart(write, lab, tmp_path) == 1
        await writer.ask(Put, Stored, TOPIC, records[2].data, copies=1)
        assert await apart(write, lab, tmp_path) == 1
        assert payloads(read(tmp_path)) == list(range(6))

    with caplog.at_level(logging.WARNING, "planaria.spark"):
        run(use, 1, 1)


def test_what_retention_took_fails_the_run_or_is_passed_over(tmp_path: Path) -> None:
    async def use(lab: Lab) -> None:
        writer = await lab.client(0)

        async def aged(lo: int, hi: int) -> None:
            for number in range(lo, hi):
                record = writer.seal(b"%d" % number, at=1_700_000_000 + number)
                await writer.ask(Put, Stored, TOPIC, record.data, copies=1)

        await aged(0, 6)
        assert await apart(write, lab, tmp_path) == 4
        await aged(6, 16)
        with pytest.raises(DataLoss, match="numbers 6 to 11"):
            await apart(write, lab, tmp_path)
        assert await apart(write, lab, tmp_path, fail_on_data_loss=False) == 4
        assert payloads(read(tmp_path)) == [2, 3, 4, 5, 12, 13, 14, 15]

    run(use, 1, 1, retention={TOPIC: Retention(count=4)})


def test_an_archive_is_restored_once_however_often_it_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "PACKED_PUBLICATIONS", 3)

    async def fill(lab: Lab) -> None:
        await dated(await lab.client(0), 20)
        await apart(write, lab, tmp_path)

    async def use(lab: Lab) -> None:
        found = Archive(tmp_path)
        assert found.topics() == [TOPIC]
        honest = seal
        calls = 0

        def dying(*arguments: Any, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == 4:
                raise Killed
            return honest(*arguments, **named)

        with monkeypatch.context() as patch:
            patch.setattr(restoring, "seal", dying)
            with pytest.raises(Killed):
                await apart(restore, context(lab), found, TOPIC, 1)
        await until(lambda: len(lab.store(0)) > 0)
        new, total = await apart(restore, context(lab), found, TOPIC, 1)
        assert 0 < new < total == 20
        with monkeypatch.context() as patch:
            calls = 3
            patch.setattr(restoring, "seal", dying)  # nothing is left to publish
            assert await apart(restore, context(lab), found, TOPIC, 1) == (0, 20)
        again = tmp_path / "again"
        await apart(write, lab, again)
        assert summary(read(again)) == summary(read(tmp_path / f"topic={TOPIC}"))
        for claim in (tmp_path / "_planaria").glob("restored-*"):
            claim.write_text("7\n")
        with pytest.raises(UsageError, match="publisher 7"):
            await apart(restore, context(lab), found, TOPIC, 1)

    run(fill, 1, 1)
    run(use, 1, 1)


def test_what_is_restored_fits_into_records_whatever_keys_and_headers_it_has() -> None:
    large, headers = bytes(60 << 10), [[("h", bytes(8000))] * 32]
    rows = pa.record_batch(
        {
            "payload": [b"a", large, large, *[b"b"] * 40],
            "key": [None] * 43,
            "headers": pa.array([[]] * 3 + headers * 40, pa.map_(pa.string(), pa.binary())),
            "timestamp": pa.array([0] * 43, pa.timestamp("us")),
        }
    )
    found = SimpleNamespace(tables=lambda _: [rows])
    packs = list(packed(restoring._drafts(found, TOPIC)))  # type: ignore[arg-type]
    sizes = [len(seal((7, bytes(12)), 0, it, time=0).data) for it in packs]
    assert sum(map(len, packs)) == 43
    assert [len(it) for it in packs[:2]] == [2, 1]
    assert max(sizes) < 300_000, "one row, or about as much as is packed"


def summary(rows: list[dict[str, Any]]) -> Counter[str]:
    """What was published, whoever did."""
    names = ("payload", "key", "headers", "timestamp")
    return Counter(json.dumps([repr(row[name]) for name in names]) for row in rows)


def test_the_command_writes_says_how_much_and_restores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def use(lab: Lab) -> None:
        writer = await lab.client(0)
        await dated(writer, 5)
        network = ("-s", context(lab).servers[0], "--insecure")
        words = ["archive", TOPIC, str(tmp_path / "a"), *network]
        assert await apart(main, [*words, "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == {"rows": 5, "batches": 1}
        assert await apart(main, words) == 0
        assert "nothing new" in capsys.readouterr().out
        assert await apart(main, [*words, "--restore"]) == 0
        assert "news: 5 of 5 published" in capsys.readouterr().out
        await until(lambda: len(lab.store(0)) == 10)
        nothing = ["archive", "else", str(tmp_path / "a"), *network, "--restore"]
        assert await apart(main, nothing) == 2
        assert "has nothing of else" in capsys.readouterr().err

    run(use, 1, 1)
