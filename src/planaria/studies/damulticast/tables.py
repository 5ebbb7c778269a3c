"""The tables of the study of daMulticast: every figure in both readings."""

from collections.abc import Iterator, Mapping
from typing import Any

from planaria.studies.damulticast.facts import OURS, READINGS, links_of, sizes_of
from planaria.studies.damulticast.runs import LOSS, groups_of
from planaria.studies.damulticast.summed import KINDS
from planaria.studies.facts import Found, Summary, mean, row_of
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

MEANINGS = ("of_alive", "of_all", "p_all")
_ENDS = {**INTERVAL, "runs": WHOLE, "reading": WORD}
RELIABILITY = {"failed": REAL, "group": WORD, "meaning": WORD, "value": REAL, **_ENDS}
PROMISED: Mapping[str, Columns] = {
    "figure8": {"failed": REAL, "group": WORD, "sent": REAL, **_ENDS, "most": WHOLE},
    "figure9": {"failed": REAL, "link": WORD, "sent": REAL, "received": REAL, **_ENDS},
    "figure10": RELIABILITY,
    "figure11": RELIABILITY,
    "baselines": {
        "algorithm": WORD,
        "event_group": WORD,
        "sent": REAL,
        "parasites": REAL,
        "memory": WHOLE,
        "reading": WORD,
    },
    "formulas": {"formula": WORD, "printed": REAL, "corrected": REAL},
    **VERDICTS,
}


def tables(found: Found) -> Tables:
    """The tables beside claims and checks."""
    sizes = sizes_of(found)
    groups = groups_of(sizes)
    still, observed = (
        found["events"].where(failures=failures) for failures in ("stillborn", "observer")
    )
    return {
        "figure8": figure8(still, groups),
        "figure9": figure9(still, groups),
        "figure10": reliability(still, groups),
        "figure11": reliability(observed, groups),
        "baselines": approaches(found["baselines"].where(sizes=sizes)),
        "formulas": [
            {**at, "printed": part["printed"].mean, "corrected": part["corrected"].mean}
            for at, part in found["formulas"].by("formula")
        ],
    }


def _by_reading(events: Summary) -> Iterator[tuple[dict[str, Any], Summary]]:
    for reading in READINGS:
        for at, runs in events.where(reading=reading).by("failed"):
            yield {**at, "reading": reading}, runs


def figure8(events: Summary, groups: list[str]) -> Table:
    """Events sent within each group: the mean, and the maximum that the paper's figure shows."""
    rows = []
    for at, runs in _by_reading(events):
        for group in reversed(groups):
            sent = runs[f"{group} sent"]
            figures = {**row_of(mean(sent), "sent"), "most": round(sent.most)}
            rows.append({**at, "group": group, **figures})
    return rows


def figure9(events: Summary, groups: list[str]) -> Table:
    """Events sent between groups, with the interval of that, and those of them received."""
    rows = []
    for at, runs in _by_reading(events):
        for link in links_of(groups):
            lower = link.partition("->")[0]
            figures = row_of(mean(runs[f"{lower} up_sent"]), "sent")
            received = runs[f"{lower} up_received"].mean
            rows.append({**at, "link": link, **figures, "received": received})
    return rows


def reliability(events: Summary, groups: list[str]) -> Table:
    """The three meanings that Figures 10 and 11 may have."""
    return [
        {
            **at,
            "group": group,
            "meaning": meaning,
            **row_of(KINDS[meaning](runs[f"{group} {meaning}"]), "value"),
        }
        for at, runs in _by_reading(events)
        for group in reversed(groups)
        for meaning in MEANINGS
    ]


def approaches(runs: Summary) -> Table:
    """The alternatives of section VI-E, over links that lose as in section VII."""
    rows = []
    for at, part in runs.where(loss=LOSS).by("event_group", "algorithm", "reading"):
        figures = {"sent": part["sent"].mean, "parasites": part["parasites"].mean}
        rows.append({**at, **figures, "memory": round(part["memory"].most)})
    return sorted(rows, key=lambda row: (-int(row["event_group"][1:]), row["algorithm"] != OURS))
