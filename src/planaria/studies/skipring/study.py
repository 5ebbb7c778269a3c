"""The supervised skip ring: every lemma, theorem, figure and number of the paper, measured.

The paper has no experiments, so there are no settings to repeat: `paper` takes sizes at which what
it says of n can be told from what it says of log n, and enough seeds.
"""

from collections.abc import Callable, Mapping, Sequence
from math import log2
from pathlib import Path
from typing import Any

from msgspec import Struct

from planaria.literal.skipring.amendments import ALL, E22
from planaria.spark.grid import Cell, Grid, crossed
from planaria.spark.sweep import Result
from planaria.studies.judge import load
from planaria.studies.skipring import publications as publications
from planaria.studies.skipring import ring as ring
from planaria.studies.skipring.antientropy import METHODS, OUR_METHODS
from planaria.studies.skipring.broadcast import RULES
from planaria.studies.skipring.facts import SUMMED, facts
from planaria.studies.skipring.figures import figures
from planaria.studies.skipring.recovery import STARTS
from planaria.studies.skipring.tables import PROMISED, tables
from planaria.studies.study import Experiment, Row, Study, Table, Tables

HERE = Path(__file__).parent
ASKED = load(HERE / "claims.toml")
SMALLEST = 16  # subscribers, at every scale: what a constant is compared with
PACKED = 10  # publications in a record, where each is not its own

ERRATA = ("none", *sorted(ALL | {E22}, key=lambda name: int(name[1:])))
REQUEST_SIZES = tuple(1 << k for k in range(1, 13))
REAL, WHOLE = "float64", "int64"
HEALED = {"healed": "bool", "intervals": WHOLE, "recorded": "bool"}
LOAD = ("requests", "configurations", "peak_in", "peak_out", "messages")
RECOVERY = {"healed": "bool", "intervals": WHOLE, **dict.fromkeys(LOAD, REAL)}
QUIET = {
    **dict.fromkeys(("database", "ring", "shortcuts"), WHOLE),
    **dict.fromkeys(("requests", "answers", "messages"), REAL),
}
COUNTED = (
    *("order", "levels", "level_1", "level_2", "level_3", "level_4", "degree_max", "degree_zero"),
    *("directed", "diameter", "crossing", "example", "touched", "spread", "told"),
)
DIVIDED = ("gap_ratio", "degree_mean", "two_each", "computed", "consecutive", "congestion", "chord")
SHAPE = {**dict.fromkeys(COUNTED, WHOLE), **dict.fromkeys(DIVIDED, REAL)}


class Scale(Struct, frozen=True):
    """How far, and how often."""

    sizes: tuple[int, ...]  # of rings that are simulated
    literal: tuple[int, ...]  # of rings that follow the paper's text
    seeds: int
    states: int  # arbitrary states for each kind of fault
    errata: int  # arbitrary states for each amendment left out
    lemmas: int
    operations: int
    stored: tuple[int, ...]  # publications that two subscribers hold
    exchanges: int
    wide: tuple[int, ...]  # of rings that a publication is sent through
    origins: int
    chords: int = 5  # Chord rings, with random ids, that ours is compared with


SCALES: Mapping[str, Scale] = {
    "quick": Scale(
        sizes=(16, 32, 128),
        literal=(16, 64),
        seeds=3,
        states=24,
        errata=8,
        lemmas=4,
        operations=10,
        stored=(1_000,),
        exchanges=3,
        wide=(16, 64, 256, 1_024),
        origins=8,
        chords=3,
    ),
    "paper": Scale(
        sizes=(16, 64, 256, 1_024),
        literal=(16, 64, 256),
        seeds=10,
        states=960,
        errata=96,
        lemmas=30,
        operations=60,
        stored=(1_000, 10_000),
        exchanges=10,
        wide=(16, 64, 256, 1_024, 4_096),
        origins=32,
    ),
    "beyond": Scale(
        sizes=(16, 64, 256, 1_024, 4_096),
        literal=(16, 64, 256, 512),
        seeds=3,
        states=240,
        errata=24,
        lemmas=8,
        operations=20,
        stored=(1_000, 10_000, 100_000),
        exchanges=3,
        wide=(16, 64, 256, 1_024, 4_096, 16_384),
        origins=32,
    ),
}


def experiments(scale: str) -> Sequence[Experiment]:
    """The sweeps of the study at this scale."""
    at = SCALES[scale]
    return [*_shapes(at), *_operations(at), *_healings(at), *_readings(at), *_publications(at)]


def _experiment(
    name: str,
    columns: Mapping[str, str],
    run: Callable[[Cell], Result],
    cells: Sequence[Cell],
    share: int = 1,
) -> Experiment:
    return Experiment(name, columns, run, cells, SUMMED[name], share)


def _shapes(at: Scale) -> list[Experiment]:
    """What a legitimate ring is like, and what it does when it is left alone."""
    two: Grid = {"n": [SMALLEST, at.sizes[-1]]}
    shapes = (  # the same each time, but for Chord's rings beside ours
        *crossed({"rules": ["ours"], **two}, range(1, 1 + at.chords)),
        *crossed({"rules": ["printed"], **two}, [1]),
    )
    rule = ["ours", "printed", "prose", "proof"]
    asked = crossed({"rule": rule, "n": REQUEST_SIZES}, [0])
    small = [2, *(n for n in at.sizes if n <= 64)]
    large = [n for n in at.sizes if 64 < n <= 1_024]
    rules = ["ours", "printed", "amended", "E5 printed", "E14 printed"]
    left_alone = (
        *crossed({"rules": rules, "n": small}, range(at.seeds)),
        *crossed({"rules": ["ours"], "n": large}, range(at.seeds)),
    )
    return [
        _experiment("shape", SHAPE, ring.shape, shapes),
        _experiment("requests", {"expected": REAL}, ring.requests, asked, share=50),
        _experiment("quiet", QUIET, ring.quiet, left_alone, share=5),
    ]


def _operations(at: Scale) -> list[Experiment]:
    """One subscriber more or less, and several topics."""
    ways = ["subscribe", "unsubscribe", "unsubscribe '0'"]
    done = {"supervisor": REAL, "peers": WHOLE, "done": "bool"}
    operations = crossed({"operation": ways, "n": at.sizes}, range(at.operations))
    topics = crossed({"n": [8], "topics": [1, 2, 4, 8]}, range(at.seeds))
    return [
        _experiment("operations", done, ring.operation, operations, share=5),
        _experiment("topics", {"sent": REAL}, ring.topics, topics, share=5),
    ]


def _healings(at: Scale) -> list[Experiment]:
    """From all kinds of states: ours, and the paper's text with all errata amended."""
    starts = crossed({"start": STARTS, "n": at.sizes}, range(at.seeds))
    grid: Grid = {"start": ["fresh", "wiped", "permuted", "corrupt"], "n": at.literal}
    literally = crossed(grid, range(at.seeds))
    rules = ["ours", "printed", "amended"]
    states = crossed({"rules": rules, "fault": [*ring.FAULTS], "n": [12]}, range(at.states))
    alone = crossed({"n": [12]}, range(at.states))
    return [
        _experiment("recovery", RECOVERY, ring.heal, starts),
        _experiment("literal_recovery", HEALED, ring.heal_literally, literally),
        _experiment("states", HEALED, ring.state, states, share=60),
        _experiment("buildring", HEALED, ring.sorted_ring, alone, share=40),
    ]


def _readings(at: Scale) -> list[Experiment]:
    """What single errata do, each lemma with the reading of the text that it fails by."""
    grid = {"left_out": ERRATA, "scheduler": ["fifo", "newest"]}
    left_out = crossed(grid, range(at.errata))
    read = {"6": "E7 printed", "9": "E8 printed", "11": "amended", "12": "E4 printed"}
    lemmas: list[Cell] = []
    for name, literal in read.items():  # n = 9 is no power of two
        case: Grid = {"lemma": [name], "rules": ["ours", literal], "n": [9, 64]}
        lemmas += crossed(case, range(at.lemmas))
    return [
        _experiment("errata", HEALED, ring.erratum, left_out, share=40),
        _experiment("lemmas", HEALED, ring.lemma, lemmas, share=20),
    ]


def _publications(at: Scale) -> list[Experiment]:
    """How publications spread: between two tries, two subscribers, in a ring, to all at once."""
    tried = ["equal", "closer", "started by u", "started by v"]
    pair: Grid = {"tried": tried, "rules": ["ours", "printed", "amended"], "n": [2]}
    pairs = crossed(pair, range(at.seeds))
    lacking = ["newcomer", "one more"]
    starts = (
        *crossed({"start": lacking, "rules": ["ours"], "n": at.sizes}, range(at.seeds)),
        *crossed({"start": lacking, "rules": ["amended"], "n": at.literal}, range(at.seeds)),
    )
    alike = crossed({"n": [n for n in at.sizes if n <= 256]}, range(at.seeds))
    origins = crossed({"rule": [*RULES], "n": at.wide}, range(at.origins))
    exchanged = {**dict.fromkeys(("bytes", "messages", "bound", "redundant"), WHOLE)}
    exchanged |= {"equal": "bool"}
    sent = {**dict.fromkeys(("reached", "messages", "hops_max", "hottest"), WHOLE)}
    sent |= {"hops_mean": REAL}
    found = {"pairs": WHOLE, "good": WHOLE, "messages": REAL}
    caught_up = {"equal": "bool", "intervals": WHOLE, "rises": WHOLE}
    kept = {"changed": WHOLE, "exchanges": WHOLE}
    exchange, spread = publications.antientropy, publications.spread
    return [
        _experiment("tries", found, publications.tries, pairs, share=12),
        _experiment("antientropy", exchanged, exchange, _differences(at), share=3),
        _experiment("backlog", caught_up, publications.backlog, starts),
        _experiment("silence", kept, publications.silence, alike),
        _experiment("broadcast", sent, spread, origins, share=10),
    ]


def _differences(at: Scale) -> tuple[Cell, ...]:
    """All differences from one publication to a tenth of what is stored, alone and in records."""
    cells: list[Cell] = []
    for stored in at.stored:
        differing = [d for d in (1, 10, 100, 1_000, 10_000) if d <= stored // 10]
        grid: Grid = {"method": METHODS, "stored": [stored], "differing": differing, "n": [2]}
        in_records = {"differing": [d for d in differing if d % PACKED == 0], "packed": [PACKED]}
        cells += crossed({**grid, "packed": [1]}, range(at.exchanges))
        cells += crossed({**grid, **in_records, "method": OUR_METHODS}, range(at.exchanges))
    return tuple(cells)


def numbers(tables: Tables) -> Mapping[str, Any]:
    """What the page says beside its tables."""
    ours, text = (_healed(tables[name]) for name in ("recovery", "literal_recovery"))
    permuted = [row for row in text if row["start"] == "permuted"][-1]
    beside = [row for row in ours if row["start"] == "permuted" and row["n"] >= permuted["n"]]
    left_out = {row["left_out"]: None for row in tables["errata"] if row["not_healed"]}
    zero = [row for row in tables["operations"] if row["operation"] == "unsubscribe '0'"]
    return {
        "healed": {
            rules: _total(tables["states"], rules) for rules in ("printed", "amended", "ours")
        },
        "worst": max(row["max"] / log2(row["n"]) for row in ours),
        "permuted": permuted,
        "beside": beside[0],
        "errata": ", ".join(sorted(left_out, key=_number)) or "none",
        "zero": zero,
        "rises": max(row["rises"] for row in tables["backlog"] if row["rules"] == "ours"),
        "requests": {
            rule: [row for row in tables["requests"] if row["rule"] == rule][-1]
            for rule in ("ours", "printed")
        },
    }


def _healed(rows: Table) -> list[Row]:
    return [row for row in rows if row["seeds"]]


def _total(states: Table, rules: str) -> tuple[int, int]:
    rows = [row for row in states if row["rules"] == rules]
    return sum(row["healed"] for row in rows), sum(row["states"] for row in rows)


def _number(erratum: str) -> int:
    return int(erratum[1:]) if erratum[1:].isdecimal() else 0


STUDY = Study(
    name="skipring",
    title="The supervised skip ring",
    paper="Michael Feldmann, Christina Kolb, Christian Scheideler, Thim Strothmann: "
    "Self-Stabilizing Supervised Publish-Subscribe Systems. Paderborn University, 2018.",
    promised=PROMISED,
    experiments=experiments,
    asked=lambda _: ASKED,
    facts=facts,
    tables=tables,
    figures=figures,
    page=(HERE / "page.html").read_text(encoding="utf-8"),
    numbers=numbers,
)
