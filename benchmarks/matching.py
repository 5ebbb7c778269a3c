"""How many notifications per second does one core match against many filters?

    python benchmarks/matching.py [--filters 100000] [--notifications 20000] [--skew] [--json]

Filters have 3 to 5 constraints, at least one of them an equality. Beside ours:

    a plain loop over the filters (a few notifications only: it is slow);
    SQLite: the ends of the filters as a table, indexed by symbol and by each class, one prepared
    query per notification;
    CLIPS, the rule engine with the Rete algorithm, if it is there (pip install clipspy): a rule for
    each filter, a notification is a fact, asserted and retracted.

All must give the same answers. Rates are CPU time, the best of three passes over different
notifications; what an index makes when it is first asked counts as building it.
"""

import argparse
import json
import platform
import sqlite3
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from random import Random
from typing import Any

from planaria.filters.filters import Attributes, Filter, conjunction, matches
from planaria.filters.matching import MatchingIndex
from planaria.filters.values import Values, point

MEASURES = ("price", "volume", "change", "yield")
TEXTS = ("exchange", "sector", "currency")
CLASSES = {"exchange": 20, "sector": 12, "currency": 8}

Spec = dict[str, Any]  # attribute to a text, or to (low, high)
Notifications = Sequence[dict[str, Any]]


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
    base.execute(f"CREATE INDEX by_text ON filters ({', '.join(texts)})")
    ranges = [f":{name} BETWEEN {name}_low AND {name}_high" for name in measures]
    # One part for each combination of named texts: each is a look-up in the index.
    parts = [
        " AND ".join([f"{name} {how}" for name, how in zip(texts, hows, strict=True)] + ranges)
        for hows in product(*([f"= :{name}", "IS NULL"] for name in texts))
    ]
    query = " UNION ALL ".join(f"SELECT number FROM filters WHERE {part}" for part in parts)
    return lambda it: [row[0] for row in base.execute(query, dict(it))]


def clips(specs: list[Spec]) -> Callable[[Attributes], list[Any]]:
    engine = import_module("clips").Environment()
    slots = " ".join(f"(slot {name})" for name in ("symbol", *TEXTS, *MEASURES))
    engine.build(f"(deftemplate event {slots})")
    for number, spec in enumerate(specs):
        tests = [
            f"({name} ?{name}&:(<= {wanted[0]} ?{name} {wanted[1]}))"
            if isinstance(wanted, tuple)
            else f'({name} "{wanted}")'
            for name, wanted in sorted(spec.items(), key=lambda it: isinstance(it[1], tuple))
        ]
        engine.build(f"(defrule f{number} (event {' '.join(tests)}) =>)")
    event = engine.find_template("event")

    def match(attributes: Attributes) -> list[Any]:
        fact = event.assert_fact(**attributes)
        found = [int(it.name[1:]) for it in engine.activations()]
        fact.retract()
        return found

    return match


def rate(match: Callable[[Attributes], list[Any]], some: Sequence[Attributes]) -> float:
    """The best of three passes: other work on the machine only makes a pass slower."""
    best, each = 0.0, max(1, len(some) // 3)
    for first in range(0, 3 * each, each):
        part = some[first : first + each]
        start = time.process_time()
        for it in part:
            match(it)
        best = max(best, len(part) / (time.process_time() - start))
    return best


def measure(specs: list[Spec], warm: Notifications, some: Notifications, rules: int) -> Any:
    """The figures of all matchers on the same filters; CLIPS gets the first `rules` of them."""
    filters = [make_filter(spec) for spec in specs]
    start = time.process_time()
    index = planaria(filters)
    matched = sum(len(index(it)) for it in warm)
    built = time.process_time() - start
    loop, table = plain_loop(filters), sqlite(specs)
    few = some[: max(6, 2_000_000 // len(specs))]
    result = {
        "filters": len(specs),
        "constraints_mean": sum(len(it.constraints) for it in filters) / len(filters),
        "matches_mean": matched / len(warm),
        "build_seconds": built,
        "planaria_per_second": rate(index, some),
        "sqlite_per_second": rate(table, some[:600]),
        "loop_per_second": rate(loop, few),
        "machine": f"{platform.python_implementation()} {platform.python_version()}",
    }
    for it in few[:20]:
        assert sorted(index(it)) == sorted(table(it)) == loop(it)
    if find_spec("clips"):
        start = time.process_time()
        engine = clips(specs[:rules])
        result["clips_rules"] = min(rules, len(specs))
        result["clips_build_seconds"] = time.process_time() - start
        result["clips_per_second"] = rate(engine, some[:600])
        for it in few[:20]:
            assert sorted(engine(it)) == [found for found in loop(it) if found < rules]
    return result


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--filters", type=int, default=100_000)
    parser.add_argument("--notifications", type=int, default=20_000)
    parser.add_argument("--symbols", type=int, default=1_000)
    parser.add_argument("--skew", action="store_true", help="half of the filters name no symbol")
    parser.add_argument("--rules", type=int, default=10_000, help="filters given to CLIPS at most")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rng = Random(1)
    specs = [make_spec(rng, options.symbols, options.skew) for _ in range(options.filters)]
    warm, some = (
        [make_notification(rng, options.symbols) for _ in range(count)]
        for count in (8 * options.symbols, options.notifications)
    )
    result = measure(specs, warm, some, options.rules)
    if options.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name:22} {value:,.1f}" if isinstance(value, float) else f"{name:22} {value}")


if __name__ == "__main__":
    main()
