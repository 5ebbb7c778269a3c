"""From the runs of the study of leased routing to its facts and tables."""

from collections.abc import Mapping
from typing import Any

from planaria.lab.routing.analysis import MUS, OMEGAS, PAPER, RHOS
from planaria.studies.facts import (
    Found,
    Moments,
    Summary,
    Summed,
    exact,
    least,
    mean,
    moments,
    most,
    named,
    scaled,
    total,
)
from planaria.studies.judge import Fact, Facts, exactly, only
from planaria.studies.study import REAL, VERDICTS, WHOLE, WORD, Columns, Table, Tables

FEWEST, MOST = 10_000, 500_000  # fewer give too few control messages, more leave b_s near 0
EARLY = 200_000  # up to here mu decides, by section 4.2
(RHO_1, RHO_2), (MU_1, MU_2) = RHOS, MUS
POINT = ("subscriptions", "rho", "mu")
RULES = ("rho", "mu")
SCENARIO = ("omega", "rho", "mu")
STRATEGIES = ("flooding", "simple", "identity", "covering", "merging")

PROMISED: Mapping[str, Columns] = {
    "figure2": {
        **dict.fromkeys(("subscriptions",), WHOLE),
        **dict.fromkeys(("omega", "rho", "mu", "saved", "control"), REAL),
        "method": WORD,
    },
    "crossings": {**dict.fromkeys((*SCENARIO, "subscriptions"), REAL), "method": WORD},
    "stabilisation": {
        **dict.fromkeys(("strategy", "start"), WORD),
        **dict.fromkeys(("bound", "worst", "runs"), WHOLE),
    },
    "cases": {"case": WORD, "what": WORD, "printed": REAL, "ours": REAL},
    **VERDICTS,
}


SUMMED: Mapping[str, Summed] = {
    "closed": Summed(POINT, named("saved_1", "control")),
    "simulated": Summed(POINT, named("saved_1", "control", "alive", "crossed")),
    "crossing": Summed((*SCENARIO, "at", "seed"), named("closed", "tried", "gain")),
    "local": Summed((*SCENARIO, "subscriptions"), named("saved", "control", "simulated", "apart")),
    "setting": Summed(
        RULES,
        named("brokers", "leaves", "links", "depth", "refreshed", "limit", "flag_limit", "peak")
        | named("pi", "delta", "printed_delta"),
    ),
    "times": Summed(
        ("diameter",), named("lease", "delta", "printed_delta", "ours_rho", "ours_delta")
    ),
    "renewals": Summed(("links",), named("gap")),
    "lease": Summed(("pi", "renewed"), named("longest", "shortest")),
    "cases": Summed(("case", "what"), named("printed", "ours")),
    "stabilisation": Summed(
        ("strategy", "start"),
        {
            **named("healed", "bound"),
            "worst": "if(healed, intervals, null)",
            "over": "if(healed, intervals / bound, null)",
        },
        endless=("worst", "over"),  # also what became legitimate and did not stay so
    ),
    "deliveries": Summed(
        ("start",),
        named("duplicated", "unpublished", "unwanted", "missed", "delivered")
        | {"unsafe": "duplicated + unpublished + unwanted"},
    ),
}


def tables(found: Found) -> Tables:
    """The tables beside claims and checks."""
    return {
        "figure2": figure2(found["closed"], found["simulated"]),
        "crossings": crossings(found["crossing"]),
        "stabilisation": stabilisation(found["stabilisation"]),
        "cases": cases(found["cases"]),
    }


def figure2(closed: Summary, simulated: Summary) -> Table:
    """b_s and b_c of the eight combinations; both by number of subscriptions."""
    return [
        {**point, "omega": omega, "method": method}
        | {"saved": omega * part["saved_1"].mean, "control": part["control"].mean}
        for method, runs in (("closed_form", closed), ("simulated", simulated))
        for omega in OMEGAS
        for _, rules in runs.by(*RULES)
        for point, part in rules.by(*POINT)
    ]


def crossings(runs: Summary) -> list[dict[str, Any]]:
    """From so many subscriptions on flooding is cheaper; simulated: between two sizes tried."""
    rows = []
    for scenario, part in sorted(runs.by(*SCENARIO), key=lambda it: -it[0]["omega"]):
        for method, known in (
            ("closed_form", part.where(at=0.0)["closed"]),
            ("simulated", _met(part)),
        ):
            if known.runs:
                rows.append({**scenario, "subscriptions": known.mean, "method": method})
    return rows


def _met(scenario: Summary) -> Moments:
    """Where the curves of a scenario meet, in each of its simulations."""
    met = [_meeting(run) for _, run in scenario.where(at=lambda at: at > 0).by("seed")]
    return moments(it for it in met if it is not None)


def _meeting(run: Summary) -> float | None:
    """Where the gain is nothing, on the line through the lowest and the highest size tried."""
    sizes = [part for _, part in run.by("at")]
    low, high = sizes[0], sizes[-1]
    won, lost = low["gain"].mean, high["gain"].mean
    if won == lost:
        return None
    first, last = low["tried"].mean, high["tried"].mean
    return first + (last - first) * won / (won - lost)


def stabilisation(runs: Summary) -> Table:
    """Intervals until legitimate, the worst of all runs, peer-to-peer and hierarchical.

    There is no worst where a run never became legitimate, or did not stay so.
    """
    rows = []
    for at, part in runs.by("strategy", "start"):
        worst = part["worst"]
        rows.append(
            {
                **at,
                "bound": round(part["bound"].most),
                "worst": round(worst.most) if worst.most < float("inf") else None,
                "runs": part["bound"].runs,
            }
        )
    return rows


def cases(runs: Summary) -> Table:
    """The smallest cases, the worst of them first."""
    rows = [
        {**at, "printed": part["printed"].mean, "ours": part["ours"].mean}
        for at, part in runs.by("case", "what")
    ]
    return sorted(rows, key=lambda row: (-row["printed"], row["case"]))


def facts(found: Found) -> Facts:
    """All that claims and checks speak of."""
    times, lease = found["times"], found["lease"]
    renewed = lease.where(renewed=lambda steps: 0 < steps <= PI_STEPS)
    return {
        **_figure_facts(found["closed"], found["simulated"]),
        **_setting_facts(found["setting"]),
        **_crossing_facts(found["crossing"]),
        **_local_facts(found["local"]),
        **_case_facts(found["cases"]),
        **_healing_facts(found["stabilisation"]),
        **_delivery_facts(found["deliveries"]),
        **only(
            unrenewed=most(lease.where(renewed=0)["longest"]),
            renewed=least(renewed["shortest"]),
            example_pi=scaled(exact(times["lease"]), 1000),
            example_delta=exact(times["delta"]),
            example_printed=exact(times["printed_delta"]),
            ours_rho=exact(times["ours_rho"]),
            ours_delta=exact(times["ours_delta"]),
            gap=most(found["renewals"]["gap"]),
        ),
    }


PI_STEPS = 12  # a leasing period in steps of a clock, for the life of one entry


def _figure_facts(closed: Summary, simulated: Summary) -> Facts:
    """How far the simulation is from the closed form, and both where nobody subscribes."""
    off: dict[str, list[float]] = {"control": [], "saved": [], "crossed": []}
    for point, runs in simulated.where(subscriptions=lambda n: n >= FEWEST).by(*POINT):
        known = closed.where(**point)
        saved = known["saved_1"].mean
        off["control"].append(abs(runs["control"].mean / known["control"].mean - 1))
        off["crossed"].append(abs(PAPER.links - runs["crossed"].mean - saved) / PAPER.links)
        if point["subscriptions"] <= MOST:
            off["saved"].append(abs(runs["saved_1"].mean / saved - 1))
    early = []
    for _, runs in closed.where(subscriptions=lambda n: 0 < n <= EARLY).by("subscriptions", "rho"):
        slow, fast = (runs.where(mu=mu)["control"] for mu in (MU_1, MU_2))
        early += [fast.mean / slow.mean] if slow.runs and fast.runs else []
    empty = simulated.where(subscriptions=0)["saved_1"]
    saved_at_0 = empty.mean if empty.runs else None
    alive = [
        runs["alive"].over(at["subscriptions"])
        for at, runs in simulated.by("subscriptions")
        if at["subscriptions"]
    ]
    largest = [at["subscriptions"] for at, _ in simulated.by("subscriptions")]
    return only(
        **{f"{name}_off": exactly(max(values, default=None)) for name, values in off.items()},
        mu_early=exactly(max(early, default=None)),
        alive=mean(sum(alive, Moments())),
        saved_to=exactly(max(largest, default=None)),
        **{
            f"saved_at_0_{place}": exactly(None if saved_at_0 is None else saved_at_0 * omega)
            for place, omega in enumerate(OMEGAS, 1)
        },
        less_than_flooded=_less(PAPER.links, saved_at_0),
        less_than_published=_less(1, saved_at_0),
    )


def _less(sent: float, saved: float | None) -> Fact:
    return exactly(None if saved is None else (sent - saved) * OMEGAS[0])


def _setting_facts(runs: Summary) -> Facts:
    slow, fast = runs.where(mu=MU_1), runs.where(mu=MU_2)
    sizes = {name: most(runs[name]) for name in ("brokers", "leaves", "links", "depth")}
    found = {**sizes, "path": scaled(sizes["depth"], 2)}
    for place, rho in enumerate(RHOS, 1):
        for name in ("refreshed", "limit", "flag_limit", "pi", "delta", "printed_delta"):
            found[f"{name}_{place}"] = exact(slow.where(rho=rho)[name])
        for name in ("limit", "peak"):
            found[f"{name}_{place}_fast"] = exact(fast.where(rho=rho)[name])
    return only(**found)


def _crossing_facts(runs: Summary) -> Facts:
    met = {
        (row["omega"], row["rho"], row["mu"], row["method"]): row["subscriptions"]
        for row in crossings(runs)
    }
    known = {key[:3]: value for key, value in met.items() if key[3] == "closed_form"}
    tried = {key[:3]: value for key, value in met.items() if key[3] == "simulated"}
    off = [abs(value / known[key] - 1) for key, value in tried.items()]
    first = (OMEGAS[0], RHO_1, MU_1)
    there = runs.where(**dict(zip(SCENARIO, first, strict=True)))
    beside = list(runs.where(at=lambda at: at > 0).by("at", *SCENARIO, "seed"))
    wrong = [(part["gain"].mean > 0) != (at["at"] < 1) for at, part in beside]
    return only(
        crossings=exactly(len(known)),
        crossings_simulated=exactly(len(tried)),
        crossing=exactly(known.get(first)),
        crossing_simulated=mean(_met(there)),
        crossing_off=exactly(max(off, default=None)),
        wrong_sides=exactly(sum(wrong) if wrong else None, len(wrong)),
    )


def _local_facts(runs: Summary) -> Facts:
    """Interests that are local: is filtering cheaper whatever the number of subscriptions?"""
    gains = [
        (part["saved"].mean - part["control"].mean, part["saved"].mean / at["omega"] / PAPER.links)
        for at, part in runs.by(*SCENARIO, "subscriptions")
    ]
    won = [gain > 0 for gain, _ in gains]
    return only(
        local_wins=exactly(sum(won) / len(won) if won else None),
        local_saved=exactly(min((saved for _, saved in gains), default=None)),
        local_control=most(runs["apart"]),
        local_simulated=least(runs["simulated"]),
    )


def _case_facts(runs: Summary) -> Facts:
    names = ("phases", "clock", "unsubscription", "cover", "merge", "ids", "filter", "flag")
    found = {
        f"{name}_{rule}": exact(runs.where(case=name)[rule])
        for name in names
        for rule in ("ours", "printed")
    }
    return only(**found, cases_ours=total(runs["ours"]))


def _healing_facts(runs: Summary) -> Facts:
    """The worst stabilization over its bound, by strategy, and the share that stabilizes."""
    worst = {f"worst_{name}": most(runs.where(strategy=name)["over"]) for name in STRATEGIES}
    return only(**worst, worst=most(runs["over"]), healed=exact(runs["healed"]))


def _delivery_facts(runs: Summary) -> Facts:
    calm, later = runs.where(start="legitimate"), runs.where(start="corrupt")
    names = ("duplicated", "unpublished", "unwanted", "missed")
    return only(
        **{name: total(calm[name]) for name in names},
        unsafe_later=total(later["unsafe"]),
        missed_later=total(later["missed"]),
        delivered=least(runs["delivered"]),
    )
