"""Stores in memory and on disk, for tests to run on both: `pytest_plugins = ("record_stores",)`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from planaria.network.store.database import Database
from planaria.records.memory import MemoryStore
from planaria.records.store import Store
from records_lab import Make


@pytest.fixture(params=["memory", "sqlite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Makes stores: `make(name)` gives one that is empty."""
    if request.param == "memory":
        yield lambda name: MemoryStore()
        return
    said: list[str] = []
    database = Database(tmp_path / "store", said.append)
    yield database.topic
    database.close()
    assert said == []


@pytest.fixture
def store(make: Make) -> Store:
    return make("news")
