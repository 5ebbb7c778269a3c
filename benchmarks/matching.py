"""How many notifications per second does one core match against many filters?

    python benchmarks/matching.py [--filters 100000] [--notifications 20000] [--skew] [--json]

Filters have 3 to 5 constraints, at least one of them an equality. Beside ours: a plain loop over
the filters (a few notifications only: it is slow), and SQLite, a well-known matcher that can always
be installed: the ends of the filters as a table with an index on the equality, one prepared query
per notification. All three must give the same answers.
"""

import argparse
import json
import platform
import sqlite3
import time
from collections.abc import Callable
from random import Random
from typing import Any

from planaria.protocols.routing.filters import Attributes, Filter, conjunction, matches
from planaria.protocols.routing.matching import MatchingIndex
from planaria.protocols.routing.values import Values, point

MEASURES = ("price", "volume", "change", "yield")
TEXTS = ("exchange", "sector", "currency")
CLASSES = {"exchange": 20, "sector": 12, "currency": 8}

Spec = dict[str, Any]  # attribute to a text, or to (low, high)


def make_spec(rng: Random, symbols: int, skew: bool) -> Spec:
    """A conjunction: often the symbol, else one of the small classes, and ranges."""
    spec: Spec = {}
    if not skew or rng.random() < 0.5:
        spec["symbol"] = f"S{rng.randrange(symbols)}"
    for name in rng.sample(TEXTS, rng.randint(0 if spec else 1, 2)):
        spec[name] = f"{name[0]}{rng.randrange(CLASSES[name])}"
    for name in rng.sample(MEASURES, rng.randint(3, 5) - min(len(spec), 2)):
        low = rng.uniform(0, 900)
        spec[name] = (round(low, 2), round(low + rng.uniform(1, 200), 2))
    return spec


def make_filter(spec: Spec) -> Filter:
    constraints = []
    for name, wanted in spec.items():
        if isinstance(wanted, tuple):
            constraints.append((name, Values(numbers=(((wanted[0], 0), (wanted[1], 1)),))))
        else:
            constraints.append((name, point(wanted)))
    found = conjunction(constraints)
    assert found is not None
    return found


def make_notification(rng: Random, symbols: int) -> dict[str, Any]:
    found: dict[str, Any] = {"symbol": f"S{rng.randrange(symbols)}"}
    found |= {name: f"{name[0]}{rng.randrange(CLASSES[name])}" for name in TEXTS}
    found |= {name: round(rng.uniform(0, 1000), 2) for name in MEASURES}
    return found


def planaria(filters: list[Filter]) -> Callable[[Attributes], list[Any]]:
    index = MatchingIndex()
    for number, filter in enumerate(filters):
        index.add(number, filter)
    return index.match


def plain_loop(filters: list[Filter]) -> Callable[[Attributes], list[Any]]:
    return lambda it: [number for number, filter in enumerate(filters) if matches(filter, it)]


def sqlite(specs: list[Spec]) -> Callable[[Attributes], list[Any]]:
    base = sqlite3.connect(":memory:")
    texts, measures = ("symbol", *TEXTS), MEASURES
    columns = [*texts, *(f"{name}_{end}" for name in measures for end in ("low", "high"))]
    base.execute(f"CREATE TABLE filters (number, {', '.join(columns)})")
    rows = []
    for number, spec in enumerate(specs):
        ends = [end for name in measures for end in spec.get(name, (-1e9, 1e9))]
        rows.append([number, *(spec.get(name) for name in texts), *ends])
    base.executemany(f"INSERT INTO filters VALUES ({','.join('?' * (len(columns) + 1))})", rows)
    base.execute("CREATE INDEX by_symbol ON filters (symbol, exchange)")
    wanted = [f"({name} IS NULL OR {name} = :{name})" for name in TEXTS]
    wanted += [f":{name} BETWEEN {name}_low AND {name}_high" for name in measures]
    found = f"SELECT number FROM filters WHERE symbol {{}} AND {' AND '.join(wanted)}"
    query = f"{found.format('= :symbol')} UNION ALL {found.format('IS NULL')}"
    return lambda it: [row[0] for row in base.execute(query, dict(it))]


def rate(match: Callable[[Attributes], list[Any]], some: list[Attributes]) -> float:
    match(some[0])
    start = time.process_time()
    for it in some:
        match(it)
    return len(some) / (time.process_time() - start)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--filters", type=int, default=100_000)
    parser.add_argument("--notifications", type=int, default=20_000)
    parser.add_argument("--symbols", type=int, default=1_000)
    parser.add_argument("--skew", action="store_true", help="half of the filters name no symbol")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rng = Random(1)
    specs = [make_spec(rng, options.symbols, options.skew) for _ in range(options.filters)]
    filters = [make_filter(spec) for spec in specs]
    some: list[Attributes] = [
        make_notification(rng, options.symbols) for _ in range(options.notifications)
    ]
    start = time.process_time()
    index = planaria(filters)
    built = time.process_time() - start
    loop, table = plain_loop(filters), sqlite(specs)
    few = some[: max(5, 2_000_000 // options.filters)]
    for it in few[:20]:
        assert sorted(index(it)) == sorted(table(it)) == loop(it)
    result = {
        "filters": options.filters,
        "constraints_mean": sum(len(it.constraints) for it in filters) / len(filters),
        "matches_mean": sum(len(index(it)) for it in some[:2000]) / 2000,
        "build_seconds": built,
        "planaria_per_second": rate(index, some),
        "sqlite_per_second": rate(table, some[:2000]),
        "loop_per_second": rate(loop, few),
        "machine": f"{platform.python_implementation()} {platform.python_version()}",
    }
    if options.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name:22} {value:,.1f}" if isinstance(value, float) else f"{name:22} {value}")


if __name__ == "__main__":
    main()
