"""From the runs of the skip ring's study to its facts: each by whose rules, and by size.

A fact is called `RULES: NAME`: what `ours` gives, what the text gives as `printed`, and so on.
"""

from collections.abc import Callable, Mapping
from math import ceil, log2
from typing import Any

from msgspec import Struct

from planaria.studies.facts import (
    Found,
    Kind,
    Moments,
    Summary,
    Summed,
    exact,
    fraction,
    mean,
    most,
    named,
    share,
)
from planaria.studies.judge import Fact, Facts, Sized, exactly, only

OURS, PRINTED = "ours", "printed"
LIMITS = ("fresh", "wiped", "crash50", "permuted", "corrupt", "swapped")  # with a promise each


_COUNTED = (
    *("order", "levels", "level_1", "level_2", "level_3", "level_4", "degree_max", "degree_zero"),
    *("directed", "diameter", "crossing", "example", "touched", "spread", "told"),
    *("gap_ratio", "degree_mean", "two_each", "computed", "consecutive", "congestion", "chord"),
)
_HEALED = {**named("healed", "intervals"), "ended": "intervals"}
SUMMED: Mapping[str, Summed] = {
    "shape": Summed(("rules", "n"), named(*_COUNTED) | {"worse": "congestion / chord"}),
    "requests": Summed(("rule", "n"), named("expected")),
    "quiet": Summed(
        ("rules", "n"),
        named("database", "ring", "shortcuts", "requests", "answers", "messages")
        | {"changed": "database + ring + shortcuts"},
        endless=("requests", "answers", "messages"),  # they multiplied
    ),
    "operations": Summed(("operation", "n"), named("supervisor", "peers") | {"undone": "not done"}),
    "topics": Summed(("n", "topics"), {"each": "sent / topics"}),
    "recovery": Summed(
        ("start", "n"),
        _HEALED
        | named("requests", "configurations", "peak_in", "peak_out", "messages")
        | {"per_log": "intervals / log2(n)"},
        endless=("ended", "per_log"),
    ),
    "literal_recovery": Summed(("start", "n"), _HEALED, endless=("ended",)),
    "states": Summed(("rules", "fault", "n"), _HEALED | named("recorded"), endless=("ended",)),
    "buildring": Summed(("n",), _HEALED, endless=("ended",)),
    "errata": Summed(("left_out", "scheduler"), _HEALED, endless=("ended",)),
    "lemmas": Summed(("lemma", "rules", "n"), _HEALED, endless=("ended",)),
    "tries": Summed(("tried", "rules", "n"), named("pairs", "good", "messages")),
    "antientropy": Summed(
        ("stored", "differing", "method", "packed", "n"),
        named("bytes", "messages", "bound", "redundant") | {"unequal": "not equal"},
    ),
    "backlog": Summed(
        ("start", "rules", "n"),
        named("equal", "intervals", "rises") | {"ended": "intervals"},
        endless=("ended",),
    ),
    "silence": Summed(("n",), named("changed", "exchanges")),
    "broadcast": Summed(
        ("rule", "n"),
        named("reached", "messages", "hops_max", "hops_mean", "hottest")
        | {"missing": "n - reached", "each": "messages / (n - 1)"},
    ),
}


class Asked(Struct, frozen=True):
    """A fact: of which sweep, which measure, of what kind, of which runs, by whose rules."""

    source: str
    kind: Kind
    measure: str
    where: Mapping[str, Any] = {}
    rules: str = "rules"  # the parameter that says whose rules are followed; ours if there is none
    names: Mapping[str, str] = {}  # of its values, where they are not called so


def _large(n: int) -> bool:
    return n >= 16


def _shape(measure: str, **where: Any) -> Asked:
    return Asked("shape", exact, measure, where)


_RULE = {"arc": OURS, "literal": PRINTED}
_METHOD = {"sketch": OURS, "Algorithm 5": "amended"}
FACTS: Mapping[str, Asked] = {
    **{name: _shape(name) for name in _COUNTED},
    "worse": Asked("shape", mean, "worse"),
    **{
        f"{name} of SR(16)": _shape(name, n=16)
        for name in ("order", "level_1", "level_2", "level_3", "level_4", "example")
    },
    "quiet messages": Asked("quiet", most, "messages", {"n": _large}),
    "quiet answers": Asked("quiet", mean, "answers", {"n": _large}),
    "quiet requests": Asked("quiet", mean, "requests", {"n": _large}),
    "quiet database": Asked("quiet", most, "database"),
    "quiet ring": Asked("quiet", most, "ring"),
    "quiet shortcuts": Asked("quiet", most, "shortcuts"),
    "topics": Asked("topics", mean, "each", rules=""),
    "requests": Asked("requests", exact, "expected", {"n": [2, 4, 16, 1024]}, "rule"),
    **{
        f"{whose} of {operation}": Asked(
            "operations", mean, whose, {"operation": operation}, rules=""
        )
        for whose in ("supervisor", "peers")
        for operation in ("subscribe", "unsubscribe", "unsubscribe '0'")
    },
    "buildring": Asked("buildring", share, "healed", rules=""),
    "large states": Asked("recovery", share, "healed", {"start": "corrupt"}, rules=""),
    **{
        f"states, {fault}": Asked("states", share, "healed", {"fault": fault})
        for fault in ("none", "crash", "leave")
    },
    "recorded": Asked("states", share, "recorded", {"fault": "none"}),
    **{
        f"lemma {lemma}": Asked("lemmas", share, "healed", {"lemma": lemma})
        for lemma in ("6", "9", "12")
    },
    "lemma 11": Asked("lemmas", most, "ended", {"lemma": "11"}),
    "newcomer": Asked("backlog", mean, "ended", {"start": "newcomer"}),
    "redundant": Asked("antientropy", most, "redundant", {"method": [*_METHOD]}, "method", _METHOD),
    "figure 2 messages": Asked("tries", exact, "messages", {"tried": "started by v"}),
    "figure 2 starts": Asked("tries", exact, "good", {"tried": ["started by u", "started by v"]}),
    "hops": Asked("broadcast", most, "hops_max", rules="rule", names=_RULE),
    "reached": Asked("broadcast", exact, "reached", rules="rule", names=_RULE),
    "rings equal": Asked("backlog", share, "equal"),
    "rises": Asked("backlog", most, "rises"),
    "silence changed": Asked("silence", most, "changed", rules=""),
    "silence exchanges": Asked("silence", most, "exchanges", rules=""),
}
FORMULAS: Mapping[str, Callable[[int], float]] = {
    "n": float,
    "log n": log2,
    "log n, rounded up": lambda n: ceil(log2(n)),
    "2 log n": lambda n: 2 * log2(n),
    "2 n": lambda n: 2 * n,
    "4 n - 4": lambda n: 4 * n - 4,
}


def facts(found: Found) -> Facts:
    """All that claims and checks speak of."""
    asked: dict[str, Sized] = {}
    for name, it in FACTS.items():
        runs = found[it.source].where(**it.where)
        for rules, part in _by_rules(runs, it):
            asked[f"{rules}: {name}"] = part.sized(it.kind, it.measure)
    for tried in ("equal", "closer"):
        for at, runs in found["tries"].where(tried=tried).by("rules"):
            pairs = {key["n"]: _pairs(tries) for key, tries in runs.by("n")}
            asked[f"{at['rules']}: tries {tried}"] = pairs
    sizes = {at["n"]: None for runs in found.values() for at in _sizes(runs)}
    for name, formula in FORMULAS.items():
        asked[name] = {n: exactly(formula(n)) for n in sizes if n > 0}
    return {**asked, **_promises(found)}


def _by_rules(runs: Summary, it: Asked) -> list[tuple[str, Summary]]:
    if not it.rules:
        return [(OURS, runs)]
    return [(it.names.get(at[it.rules], at[it.rules]), part) for at, part in runs.by(it.rules)]


def _sizes(runs: Summary) -> list[Mapping[str, Any]]:
    return [group.at for group in runs.groups if "n" in group.at]


def _pairs(tries: Summary) -> Fact:
    """The share of pairs of tries of which it is true."""
    pairs = round(tries["pairs"].total)
    return share(Moments(pairs, 0, tries["good"].total / pairs)) if pairs else Fact()


def _promises(found: Found) -> Facts:
    """The worst of all runs of ours."""
    recovery, quiet = found["recovery"], found["quiet"].where(rules=OURS)
    arcs = found["broadcast"].where(rule="arc")
    sketch = found["antientropy"].where(method="sketch")
    rounded = [
        (at["n"], runs["hops_max"].most) for at, runs in arcs.by("n") if runs["hops_max"].runs
    ]
    hops = [most_hops / max(1, ceil(log2(n))) for n, most_hops in rounded]
    return only(
        **{f"heal {start}": most(recovery.where(start=start)["per_log"]) for start in LIMITS},
        unrecovered=_failing(recovery),
        unhealed=_failing(found["states"].where(rules=OURS)),
        unhealed_lemmas=_failing(found["lemmas"].where(rules=OURS)),
        unbuilt=_failing(found["buildring"]),
        quiet_changes=most(quiet["changed"]),
        quiet_most=most(quiet["messages"]),
        requests_most=most(found["requests"].where(rule=OURS)["expected"]),
        undone=most(found["operations"]["undone"]),
        lacking=_without(found["backlog"].where(rules=OURS)["equal"]),
        silence_broken=most(found["silence"]["changed"] + found["silence"]["exchanges"]),
        missed=most(arcs["missing"]),
        copies=most(arcs["each"]),
        hops_most=exactly(max(hops, default=None)),
        unequal=most(sketch["unequal"]),
        exchange=most(sketch["messages"]),
    )


def _failing(runs: Summary) -> Fact:
    return _without(runs["healed"])


def _without(truth: Moments) -> Fact:
    """1 if something is not true of some run, else 0."""
    known = fraction(truth).value
    return exactly(None if known is None else float(truth.least < 1), truth.runs)
