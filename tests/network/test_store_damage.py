"""A damaged store always starts: what is readable is kept, the rest is set aside with one line."""

import os
import sqlite3
from pathlib import Path
from random import Random

import pytest

from planaria.core.errors import UsageError
from planaria.lab.incidents.disk_ring import commit
from planaria.network.store import rows
from planaria.network.store.database import Database
from planaria.network.store.opening import FILE, MENDED
from planaria.network.store.salvage import readable_rows
from planaria.records.positions import Mark
from planaria.records.record import Record, intact
from planaria.records.window import Window
from records_lab import NOW, A, B, numbers, record

RECORDS = 600


def filled(path: Path, count: int = RECORDS) -> dict[int, Record]:
    """A directory with so many records, closed as it should be; the records by place."""
    records = [record(A, 4 * n, 4, time=NOW + n, text="x" * 100) for n in range(count)]
    with Database(path) as database:
        store = database.topic("news")
        store.append(records)
        commit(store)
    return {one.place: one for one in records}


def opened(path: Path, written: dict[int, Record]) -> tuple[int, list[str]]:
    """How many records a start finds, all of them as they were written, and what it says.

    What is missing can be appended again, and nothing is delivered twice that is still known.
    """
    said: list[str] = []
    with Database(path, said.append) as database:
        store = database.topic("news")
        found = store.get(store.places(0, NOW + 10**6))
        assert all(one == written[one.place] for one in found)
        for part in store.read({}).slices:
            assert part.record == written[part.record.place]
        if database.writer is not None:
            store.append(written.values())
            commit(store)
            assert len(store.get(store.places(0, NOW + 10**6))) == len(written)
            assert store.vector() == {A: Mark(4 * len(written))}
    return len(found), said


def test_a_sound_store_starts_without_a_word(tmp_path: Path) -> None:
    assert opened(tmp_path, filled(tmp_path)) == (RECORDS, [])


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_gives_what_lies_before_the_cut(tmp_path: Path, part: float) -> None:
    written = filled(tmp_path)
    size = (tmp_path / FILE).stat().st_size
    os.truncate(tmp_path / FILE, int(size * part))
    found, said = opened(tmp_path, written)
    assert len(said) == 1
    assert any(words in said[0] for words in ("anew", f"{found} records kept", "set aside"))
    assert found > (part - 0.1) * RECORDS
    assert found < RECORDS


def test_flipped_bytes_are_noticed_wherever_they_are(tmp_path: Path) -> None:
    """One byte in each of 40 copies, anywhere in the file: no record is served that was not so."""
    written = filled(tmp_path / "whole", 60)
    data = (tmp_path / "whole" / FILE).read_bytes()
    wrong = 0
    for seed in range(40):
        random = Random(seed)
        damaged = bytearray(data)
        at = random.choice([random.randrange(100), random.randrange(len(data))])
        damaged[at] ^= 1 << random.randrange(8)
        path = tmp_path / str(seed)
        path.mkdir()
        (path / FILE).write_bytes(damaged)
        found, said = opened(path, written)
        wrong += bool(said)
        assert bool(said) >= (found < len(written)), (seed, at, said)
    assert wrong > 10


@pytest.mark.parametrize("at", [18, 19])
def test_a_format_that_there_is_not_is_damage_and_no_reason_to_serve_read_only(
    tmp_path: Path, at: int
) -> None:
    """SQLite reads such a file and cannot write it, however often the node is started."""
    written = filled(tmp_path, 60)
    with (tmp_path / FILE).open("r+b") as file:
        file.seek(at)
        file.write(b"\x03")
    found, [said] = opened(tmp_path, written)
    assert "is damaged" in said
    assert "60 records kept" in said
    assert found == 60
    assert opened(tmp_path, written) == (60, [])


@pytest.mark.parametrize("reads", [1, 2, 4])
def test_bytes_that_were_right_are_known_again_and_noticed_when_they_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: int
) -> None:
    written = filled(tmp_path, 3)
    hashed: list[int] = []

    def counted(data: bytes, place: int) -> Record | None:
        hashed.append(place)
        return intact(data, place)

    monkeypatch.setattr(rows, "intact", counted)
    with Database(tmp_path, lambda _: None) as database:
        store = database.topic("news")
        places = sorted(written)
        for _ in range(reads):
            assert [it.key for it in store.get(places)] == [written[it].key for it in places]
        assert hashed == places * min(reads, 2)  # then a checksum does, however often they are read
        commit(store)
        with sqlite3.connect(tmp_path / FILE) as other:
            other.execute("UPDATE records SET body = body || x'00' WHERE id = 2")
        assert [it.place for it in store.get(places)] == [places[0], places[2]]


def test_a_place_that_a_fault_changed_is_not_served_with_the_bytes_of_another(
    tmp_path: Path,
) -> None:
    filled(tmp_path, 2)
    with Database(tmp_path, lambda _: None) as database:
        store = database.topic("news")
        store.get(store.places(0, NOW + 10**6))
        place, entry = next(iter(store.index.shown.items()))
        entry.place = place ^ 1 << 140  # its time
        with pytest.raises(ValueError, match="not where it says"):  # so the index is mended
            store.get([place])


def test_pages_of_zeros_lose_their_own_rows_only(tmp_path: Path) -> None:
    written = filled(tmp_path)
    data = bytearray((tmp_path / FILE).read_bytes())
    for page in (20, 21, 60):
        data[4096 * page : 4096 * (page + 1)] = bytes(4096)
    (tmp_path / FILE).write_bytes(data)
    found, said = opened(tmp_path, written)
    assert len(said) == 1
    assert RECORDS - 60 < found < RECORDS


def test_pages_of_zeros_are_not_read_again_and_again(tmp_path: Path) -> None:
    """Some SQLites find rows on such a page, all of them number 0: a scan must not turn back."""
    filled(tmp_path, 100)
    size = (tmp_path / FILE).stat().st_size
    os.truncate(tmp_path / FILE, size - 20_000)
    found = [row[1] for row in readable_rows(tmp_path / FILE) if row[0] == "records"]
    assert 50 < len(found) < 100
    assert len(found) == len(set(found))


def test_a_bad_checksum_takes_one_record_out_of_vector_and_digest(tmp_path: Path) -> None:
    written = filled(tmp_path)
    with sqlite3.connect(tmp_path / FILE) as connection:
        connection.execute("UPDATE records SET body = zeroblob(length(body)) WHERE id = 7")
    connection.close()
    said: list[str] = []
    with Database(tmp_path, said.append) as database:
        store = database.topic("news")
        assert store.vector() == {A: Mark(4 * RECORDS)}
        assert said == []
        assert numbers(store.read({})) == {A: list(range(24))}
        assert store.vector() == {A: Mark(24)}
        assert store.digest(0, NOW + 10**6).records == RECORDS - 1
        assert said == [
            f"{tmp_path}: the bytes of 1 records are damaged; set aside, peers have them"
        ]
        (arrival,) = store.append([record(A, 24, 4, time=NOW + 6, text="x" * 100)])
        assert arrival.new == [], "delivered once, before the damage"
        assert store.vector() == {A: Mark(4 * RECORDS)}
        commit(store)
        kept = database.reading.execute("SELECT id FROM set_aside").fetchall()
        assert kept == [(7,)]
    assert opened(tmp_path, written) == (RECORDS, [])


def test_a_head_with_a_bad_checksum_is_set_aside_at_the_start(tmp_path: Path) -> None:
    written = filled(tmp_path)
    with sqlite3.connect(tmp_path / FILE) as connection:
        connection.execute("UPDATE records SET head = zeroblob(length(head)) WHERE id <= 3")
    connection.close()
    found, said = opened(tmp_path, written)
    assert found == RECORDS - 3
    assert said == [f"{tmp_path}: the heads of 3 records are damaged; set aside, peers have them"]


def test_an_audit_finds_what_nobody_reads(tmp_path: Path) -> None:
    filled(tmp_path)
    with sqlite3.connect(tmp_path / FILE) as connection:
        connection.execute("UPDATE records SET body = x'00' WHERE id IN (5, 500)")
    connection.close()
    with Database(tmp_path, list[str]().append) as database:
        store = database.topic("news")
        assert sum(store.audit(100) for _ in range(7)) == 2


def test_without_its_log_a_store_starts_from_its_file(tmp_path: Path) -> None:
    path, copy = tmp_path / "store", tmp_path / "copy"
    written = filled(path, 100)
    database = Database(path)
    store = database.topic("news")
    store.append([record(B, n) for n in range(50)])
    commit(store)
    copy.mkdir()
    for name in (FILE, "lock"):  # as a process that was killed leaves them, but for the log
        (copy / name).write_bytes((path / name).read_bytes())
    database.close()
    found, said = opened(copy, written)
    assert found == 100
    assert [line for line in said if "its log is missing" in line] == said
    assert len(said) == 1


def test_a_checkpoint_that_ended_half_way_without_its_log_is_mended(tmp_path: Path) -> None:
    """Some pages are old and some new, as when the log vanishes in the midst of a checkpoint."""
    path = tmp_path / "store"
    filled(path, 100)
    before = (path / FILE).read_bytes()
    written = filled(path, 300)
    after = (path / FILE).read_bytes()
    for seed in range(8):
        random, mixed = Random(seed), bytearray(after)
        for page in range(len(before) // 4096):
            if random.random() < 0.5:
                mixed[4096 * page : 4096 * (page + 1)] = before[4096 * page : 4096 * (page + 1)]
        copy = tmp_path / str(seed)
        copy.mkdir()
        (copy / FILE).write_bytes(mixed)
        (copy / "lock").write_text("in use by process 1")
        found, said = opened(copy, written)
        assert found >= 100, "what both states hold is kept"
        assert "its log is missing" in said[0]


def test_a_free_list_newer_than_the_rest_overwrites_nothing(tmp_path: Path) -> None:
    """The first page says that pages are free which the others, older ones, still use."""
    written = filled(tmp_path, 300)
    before = (tmp_path / FILE).read_bytes()
    connection = sqlite3.connect(tmp_path / FILE, isolation_level=None)
    connection.execute("DELETE FROM records WHERE id BETWEEN 50 AND 250")
    connection.close()
    after = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(after[:4096] + before[4096:])
    (tmp_path / "lock").write_text("in use by process 1")
    extra = record(A, 1200, 4, time=NOW + 300, text="x" * 100)
    found, said = opened(tmp_path, {**written, extra.place: extra})
    assert found == 300
    assert ["its log is missing" in said[0], "300 records kept" in said[1]] == [True, True]


def test_a_log_of_another_file_is_not_believed(tmp_path: Path) -> None:
    written = filled(tmp_path, 100)
    (tmp_path / f"{FILE}-wal").write_bytes(Random(1).randbytes(50_000))
    found, _ = opened(tmp_path, written)
    assert found == 100


@pytest.mark.parametrize(
    ("what", "line"),
    [("PRAGMA user_version = 99", "version 99, not 1"), ("PRAGMA application_id = 5", "another")],
)
def test_another_version_is_set_aside_whole(tmp_path: Path, what: str, line: str) -> None:
    written = filled(tmp_path, 50)
    connection = sqlite3.connect(tmp_path / FILE)
    connection.execute(what)
    connection.close()
    found, said = opened(tmp_path, written)
    assert found == 50, "each row has its own checksum"
    assert len(said) == 1
    assert line in said[0]
    assert (tmp_path / f"{FILE}.set-aside-1").exists()


@pytest.mark.parametrize("content", [b"not a database at all" * 500, b"SQLite format 3\0", b"x"])
def test_what_is_no_database_is_set_aside(tmp_path: Path, content: bytes) -> None:
    written = {one.place: one for one in (record(A, 0, 4), record(A, 4, 4))}
    for round in (1, 2):
        (tmp_path / FILE).write_bytes(content)
        found, said = opened(tmp_path, written)
        assert found == 0
        assert len(said) == 1
        assert f"set-aside-{round}" in said[0]
        (tmp_path / FILE).unlink()


@pytest.mark.parametrize("moved", [False, True])
def test_who_is_killed_while_mending_mends_again(tmp_path: Path, moved: bool) -> None:
    """The copy is in the way until the damaged file is moved; then it is all there is."""
    written = filled(tmp_path, 100)
    whole = (tmp_path / FILE).read_bytes()
    if moved:
        (tmp_path / FILE).rename(tmp_path / MENDED)
        assert opened(tmp_path, written) == (100, [])
    else:
        (tmp_path / MENDED).write_bytes(whole[:20_000])
        (tmp_path / FILE).write_bytes(whole[:-20_000])
        found, said = opened(tmp_path, written)
        assert found > 50
        assert len(said) == 1
    assert not (tmp_path / MENDED).exists()


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        database.topic("news")
        with pytest.raises(UsageError, match=f"in use by process {os.getpid()}"):
            Database(tmp_path)
    Database(tmp_path).close()


def test_what_was_dropped_stays_settled_after_a_restart(tmp_path: Path) -> None:
    window = Window(limit=4)
    with Database(tmp_path) as database:
        store = database.topic("news")
        store.show(window)
        store.purge([])
        store.append([record(A, 2, time=NOW, low=1), record(A, 4, time=NOW + 1)])
        store.append([record(A, 6, 4, time=NOW + 2, text="y")])
        assert store.vector() == {A: Mark(3)}
        commit(store)
    with Database(tmp_path) as database:
        store = database.topic("news")
        store.show(window)
        store.purge([])
        assert store.vector() == {A: Mark(3)}
        assert store.append([record(A, 2, time=NOW, low=1)])[0].new == []
        assert store.append([record(A, 3, time=NOW)])[0].new == [(3, 4)]


def test_what_a_publisher_vouched_away_stays_so_when_its_record_is_gone(tmp_path: Path) -> None:
    window = Window(limit=1)
    with Database(tmp_path) as database:
        store = database.topic("news")
        store.show(window)
        store.purge([])
        store.append([record(A, 9, time=NOW, low=7), record(B, 0, time=NOW + 1)])
        assert store.vector()[A] == Mark(7)
        commit(store)
    with Database(tmp_path) as database:
        store = database.topic("news")
        store.show(window)
        assert store.vector()[A] == Mark(7)


def test_what_was_delivered_and_never_kept_is_not_delivered_after_a_restart(
    tmp_path: Path,
) -> None:
    for expected in ([(0, 1)], []):
        with Database(tmp_path) as database:
            store = database.topic("news")
            store.show(Window(limit=1))
            store.purge([])
            store.append([record(A, 5, time=NOW + 5)])
            (arrival,) = store.append([record(A, 0, time=NOW)])
            assert arrival.new == expected
            assert arrival.record.place not in store
            commit(store)


def test_topics_share_one_file_and_know_nothing_of_each_other(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        for name in ("news", "weather"):
            database.topic(name).append([record(A, 0, 3, text=name)])
        commit(database.topic("news"))
    with Database(tmp_path) as database:
        assert database.unopened() == ["news", "weather"]
        (one,) = database.topic("weather").read({}).slices
        assert one.publications()[0].payload == b"1/0weather"
        assert database.unopened() == ["news"]


def test_pages_that_are_destroyed_while_in_use_are_mended_by_the_next_start(tmp_path: Path) -> None:
    written = filled(tmp_path)
    said: list[str] = []
    with Database(tmp_path, said.append) as database:
        store = database.topic("news")
        with (tmp_path / FILE).open("r+b") as file:
            file.seek(4096 * 30)
            file.write(bytes(4096 * 8))
        database.reading.execute("PRAGMA shrink_memory")  # or it reads the pages that it remembers
        found = store.get(store.places(0, NOW + 10**6))
        assert all(one == written[one.place] for one in found)
        assert 0 < len(found) < RECORDS
        assert any("damaged" in line and "start again to mend it" in line for line in said)
    kept, said = opened(tmp_path, written)
    assert len(found) - 8 <= kept < RECORDS
    assert [f"was found damaged; {kept} records kept" in line for line in said] == [True]
