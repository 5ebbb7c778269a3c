"""Damage to the files of stores: what it changes, and that a store opens afterwards."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from planaria.chaos import stores
from planaria.network.store.database import Database
from records_lab import A, record

TOPIC = "news"
RECORDS = 40


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A node's directory, whose process was killed: its log is still there."""
    with Database(tmp_path / "node" / stores.STORE) as database:
        store = database.topic(TOPIC)
        store.append([record(A, number, text="x" * 1000) for number in range(RECORDS)])
    return tmp_path / "node"


def held(directory: Path) -> int:
    with Database(directory / stores.STORE, lambda _: None) as database:
        return len(database.topic(TOPIC).read({}).slices)


@pytest.mark.parametrize(
    "damage",
    [
        lambda it: stores.flip(it, 1000, Random(1)),
        lambda it: stores.truncate(it, 0.5),
        lambda it: stores.truncate(it, 0),
        stores.wipe,
    ],
    ids=["flip", "truncate", "empty", "wipe"],
)
def test_damage_takes_records_and_says_so(directory: Path, damage: Callable[[Path], int]) -> None:
    assert held(directory) == RECORDS
    assert damage(directory) > 0
    assert held(directory) < RECORDS


def test_one_bit_is_one_byte_of_each_file(directory: Path) -> None:
    before = {path.name: path.read_bytes() for path in (directory / stores.STORE).iterdir()}
    changed = stores.flip(directory, 1, Random(2))
    after = {path.name: path.read_bytes() for path in (directory / stores.STORE).iterdir()}
    files = [name for name in before if before[name] != after[name]]
    assert changed == len(files) > 0


def test_an_old_copy_is_what_a_store_was(directory: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    stores.keep_copy(directory, copy)
    with Database(directory / stores.STORE) as database:
        database.topic(TOPIC).append([record(A, RECORDS)])
    assert held(directory) == RECORDS + 1
    assert stores.bring_back(directory, copy) > 0
    assert held(directory) == RECORDS
    stores.keep_copy(directory, copy)
    assert stores.bring_back(directory, copy) == 0


def test_a_file_that_is_being_written_is_not_copied(directory: Path, tmp_path: Path) -> None:
    """A running node replaces its files: what it was writing may be gone before it is read."""
    part = directory / "overlays" / ".mobile.1.part"
    part.parent.mkdir()
    part.symlink_to("gone")
    (part.parent / "mobile").write_bytes(b"whole")
    stores.keep_copy(directory, tmp_path / "copy")
    assert [it.name for it in (tmp_path / "copy" / "overlays").iterdir()] == ["mobile"]
