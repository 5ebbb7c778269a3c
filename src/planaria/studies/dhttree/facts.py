"""From the runs of the study of the tree over a DHT to its facts and tables."""

from collections.abc import Mapping
from typing import Any

from planaria.studies.facts import (
    Found,
    Summary,
    Summed,
    exact,
    fraction,
    mean,
    most,
    named,
    ratio,
    row_of,
    share,
    total,
)
from planaria.studies.judge import Fact, Facts, exactly, only
from planaria.studies.study import (
    INTERVAL,
    REAL,
    VERDICTS,
    WHOLE,
    WORD,
    Columns,
    Table,
    Tables,
)

HOSTS_MAX = 120  # of the paper's networks
DEGREES = ("4", "5", "6")  # beyond the binary tree's
COUNTS = {"one": 1, "two": 2, "three": 3}  # neighbours
KINDS = ("join", "leave")

PROMISED: Mapping[str, Columns] = {
    "figure3": {"hosts": WHOLE, "degree": WHOLE, "fraction": REAL, **INTERVAL},
    "figure4": {"hosts": WHOLE, "change": WORD, "counting": WORD, "area": REAL, **INTERVAL},
    "ideal": {"hosts": WHOLE, "change": WORD, "area": REAL, "ideal": REAL},
    "example": {
        "step": WORD,
        "host": WHOLE,
        "topmost": WHOLE,
        "parent": WHOLE,
        "neighbours": WORD,
    },
    "lookups": {
        "bits": WHOLE,
        "ours": REAL,
        "ours_max": WHOLE,
        "printed": REAL,
        "printed_max": WHOLE,
    },
    "wide": {
        "degree": WHOLE,
        "bits": WHOLE,
        "within": REAL,
        "networks": REAL,
        **INTERVAL,
        "runs": WHOLE,
    },
    "recovery": {
        "start": WORD,
        "nemesis": WORD,
        "n": WHOLE,
        "p50": REAL,
        "p99": REAL,
        "max": WHOLE,
        "runs": WHOLE,
    },
    "wide_area": {"degree": WHOLE, "hosts": WHOLE, "change": WORD, "area": REAL, **INTERVAL},
    **VERDICTS,
}


_AREAS = {
    **named(*KINDS, "join_ideal", "leave_ideal"),
    "area": "(join + leave) / 2",
    "over": "(join + leave + 2) / (join_ideal + leave_ideal + 2)",  # with the host itself
}
SUMMED: Mapping[str, Summed] = {
    "churn": Summed(
        ("hosts",),
        named(*COUNTS, "degree_max", "tree", "printed_tree", "tied")
        | _AREAS
        | {"ends": "one + three"},
    ),
    "wide_churn": Summed(("degree", "hosts"), _AREAS),
    "sets": Summed(
        (),
        named("sets", "owned", "trees", "different", "printed_trees")
        | named("degree_max", "printed_degree_max", "lookups_max"),
    ),
    "together": Summed(("together",), named("printed", "amended")),
    "example": Summed(
        ("step", "host", "neighbours"),
        named("topmost", "printed_topmost", "parent", "links", "drawn"),
    ),
    "cases": Summed(
        (),
        named("property_degree", "links_dropped", "links_kept")
        | {"path_ratio": "path_depth / path_ideal"},
    ),
    "wide": Summed(("degree", "bits"), named("within", "kept")),
    "lookups": Summed(("bits",), named("ours", "ours_max", "printed", "printed_max")),
    "depths": Summed((), {"ratio": "depth / ideal", "degree_max": "degree_max"}),
    "live": Summed(
        ("start", "nemesis", "n"),
        named("healed", "tree", "intervals", "degree_max", "hops"),
        percentiles=True,
    ),
}


def tables(found: Found) -> Tables:
    """The tables beside claims and checks."""
    churn = found["churn"]
    return {
        "figure3": figure3(churn),
        "figure4": figure4(churn),
        "ideal": ideal(churn),
        "example": example(found["example"]),
        "lookups": lookups(found["lookups"]),
        "wide": wide(found["wide"]),
        "recovery": recovery(found["live"]),
        "wide_area": wide_area(found["wide_churn"]),
    }


def figure3(churn: Summary) -> Table:
    """The share of hosts with each number of neighbours."""
    return [
        {**at, "degree": degree, **row_of(fraction(runs[name]), "fraction")}
        for at, runs in churn.by("hosts")
        for name, degree in COUNTS.items()
    ]


def figure4(churn: Summary) -> Table:
    """Hosts in the reconfiguration area of a change, with and without the host itself."""
    rows = []
    for at, runs in churn.by("hosts"):
        for kind in KINDS:
            area = mean(runs[kind])
            for counting, more in (("with_host", 1), ("without_host", 0)):
                counted = {name: _plus(value, more) for name, value in row_of(area, "area").items()}
                rows.append({**at, "change": kind, "counting": counting, **counted})
    return rows


def _plus(value: float | None, more: int) -> float | None:
    return None if value is None else value + more


def ideal(churn: Summary) -> Table:
    """The area beside the ideal one, which is the host's neighbours; both without the host."""
    return [
        {**at, "change": kind, "area": runs[kind].mean, "ideal": runs[f"{kind}_ideal"].mean}
        for at, runs in churn.by("hosts")
        for kind in KINDS
    ]


def example(steps: Summary) -> Table:
    """Section 3.5, host by host."""
    rows = []
    for at, runs in steps.by("step", "host", "neighbours"):
        above = runs["parent"]
        topmost = round(runs["topmost"].mean)
        parent = round(above.mean) if above.runs else None
        rows.append({**at, "topmost": topmost, "parent": parent})
    return sorted(rows, key=lambda row: row["step"] != "start")


def lookups(searches: Summary) -> Table:
    """Lookups of a search, ours and as printed."""
    rows = []
    for at, runs in searches.by("bits"):
        printed = runs["printed"].runs > 0
        rows.append(
            {
                **at,
                "ours": runs["ours"].mean,
                "ours_max": round(runs["ours_max"].most),
                "printed": runs["printed"].mean if printed else None,
                "printed_max": round(runs["printed_max"].most) if printed else None,
            }
        )
    return rows


def wide(networks: Summary) -> Table:
    """Reference trees of larger degree: hosts, and networks, within it."""
    return [
        {**at, "within": runs["within"].mean, **row_of(share(runs["kept"]), "networks")}
        for at, runs in networks.by("degree", "bits")
    ]


def wide_area(churn: Summary) -> Table:
    """The reconfiguration area on such trees, without the host itself."""
    return [
        {**at, "change": kind, **row_of(mean(runs[kind]), "area")}
        for at, runs in churn.by("degree", "hosts")
        for kind in KINDS
    ]


def recovery(live: Summary) -> Table:
    """Intervals until the tree is right."""
    rows = []
    for at, runs in live.by("start", "nemesis", "n"):
        took = runs["intervals"]
        middle, high = took.percentiles
        rows.append({**at, "p50": middle, "p99": high, "max": round(took.most), "runs": took.runs})
    return rows


def facts(found: Found) -> Facts:
    """All that claims and checks speak of."""
    sets, live, changes = found["sets"], found["live"], found["together"]
    return only(
        **_churn_facts(found["churn"]),
        **_wide_facts(found["wide"], found["wide_churn"]),
        **_example_facts(found["example"]),
        **{name: _of_sets(sets, name) for name in ("owned", "trees", "printed_trees")},
        different=total(sets["different"]),
        set_degree=most(sets["degree_max"]),
        printed_set_degree=most(sets["printed_degree_max"]),
        set_lookups=most(sets["lookups_max"]),
        **{
            f"{rule}_{number}": total(changes.where(together=number)[rule])
            for rule in ("amended", "printed")
            for number in (1, 2)
        },
        **{
            name: exact(found["cases"][name])
            for name in ("property_degree", "links_dropped", "links_kept", "path_ratio")
        },
        lookups=most(found["lookups"]["ours_max"]),
        depth=mean(found["depths"]["ratio"]),
        large_degree=most(found["depths"]["degree_max"]),
        live_trees=share(live["tree"]),
        healed=exact(live["healed"]),
        live_degree=most(live["degree_max"]),
        hops=most(live["hops"]),
    )


def _of_sets(sets: Summary, name: str) -> Fact:
    """The share of all sets of hosts: every one of them was tried."""
    tried = sets["sets"]
    return exactly(sets[name].total / tried.total if tried.runs else None, tried.runs)


def _churn_facts(churn: Summary) -> dict[str, Fact]:
    ends = [fraction(runs["ends"]) for _, runs in churn.by("hosts")]
    sizes = [mean(runs["area"]) for _, runs in churn.by("hosts")]
    return {
        "churn_trees": share(churn["tree"]),
        "printed_churn_trees": share(churn["printed_tree"]),
        "every_churn": exact(churn["tree"]),
        "tied": share(churn["tied"]),
        "churn_degree": most(churn["degree_max"]),
        "join": mean(churn["join"]),
        "leave": mean(churn["leave"]),
        "over_ideal": mean(churn["over"]),
        "ends": min(ends, key=lambda fact: fact.value or 0.0, default=Fact()),
        "growth": ratio(sizes[-1], sizes[0]) if sizes else Fact(),
    }


def _wide_facts(wide: Summary, churn: Summary) -> dict[str, Fact]:
    hosts = [fraction(runs["within"]) for _, runs in wide.by("degree", "bits")]
    found = {"wide_hosts": min(hosts, key=lambda fact: fact.value or 0.0, default=Fact())}
    for degree in DEGREES:
        runs = churn.where(degree=int(degree))
        sizes = [mean(part["area"]) for _, part in runs.by("hosts")]
        found[f"area_{degree}"] = mean(runs["area"])
        found[f"over_ideal_{degree}"] = mean(runs["over"])
        found[f"growth_{degree}"] = ratio(sizes[-1], sizes[0]) if sizes else Fact()
    return found


def _example_facts(steps: Summary) -> dict[str, Fact]:
    """The steps of section 3.5 beside each other."""

    def at(step: str, host: int, measure: str) -> Fact:
        return exact(steps.where(step=step, host=host)[measure])

    def beside(step: str, host: int) -> list[Any]:
        return [group.at["neighbours"] for group in steps.where(step=step, host=host).groups]

    changed = [beside("start", host) != beside("h4 joined", host) for host in (11, 13, 15)]
    links = steps.where(step="h4 joined")["links"]
    return {
        "drawn_start": total(steps.where(step="start")["drawn"]),
        "drawn_failed": total(steps.where(step="h13 failed")["drawn"]),
        "h5_topmost": at("h4 joined", 5, "topmost"),
        "h5_printed": at("h4 joined", 5, "printed_topmost"),
        "h15_topmost": at("h13 failed", 15, "topmost"),
        "links_joined": exactly(links.total / 2 if links.runs else None),
        "affected": exactly(sum(changed)),
    }
