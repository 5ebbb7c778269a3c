"""docs/recovery_page.py: hunts in, tables out, and nothing else on the pages touched."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from toys import ROOT

page = runpy.run_path(str(ROOT / "docs" / "recovery_page.py"))

ROW = {"starts": 1200, "failed": 1, "void": 0, "p50": 3.0, "p99": 7.25, "max": 9}
CONDITION = {**ROW, "delay": "fixed:23", "silent_failures": True, "publish": 4}
HUNT: dict[str, Any] = {
    "overlay": "ring",
    "asked": "ring --supervisors 2",
    "n": "1:8",
    "conditions": [CONDITION],
    "starts": 2400,
    "instalments": [
        {"seeds": "0:999", "code": "1+abc"},
        {"seeds": "2000:2999", "code": "1+def"},
        {"seeds": "3000:3399", "code": "1+abc"},
    ],
    "of_bound": 0.4,
    "recovery": [{**ROW, "start": "corrupt", "nemesis": it} for it in ("crash", "none")],
    "schedulers": [{**ROW, "scheduler": it} for it in page["SCHEDULERS"]],
    "findings": [],
    "errors": [],
}
FINDING = {"checker": "closure", "detail": "labels at 3", "replay": "sim 1", "smaller": None}


def test_tables_say_what_the_hunts_said() -> None:
    name = "ring --supervisors 2"
    first = f"| {name} | 1:8 | 2,400 | 0:999, 2000:2999, 3000:3399 | 2 | 0.4 | 1+abc, 1+def |"
    assert page["runs"]([HUNT]).splitlines()[2] == first
    assert page["schedulers"]([HUNT]).splitlines()[2].startswith(f"| {name} | 3 / 7.25 / 9 |")
    condition = f"| {name} | fixed:23 | yes | 4 | 1,200 | 1 | 3 | 7.25 | 9 |"
    assert page["conditions"]([HUNT]).splitlines()[2] == condition
    never_healed = {**HUNT["recovery"][1], "p50": None, "p99": None, "max": None}
    text = page["classes"]([{**HUNT, "recovery": [HUNT["recovery"][0], never_healed]}])
    assert "| corrupt | crash | 1,200 | 1 | 0 | 3 | 7.25 | 9 |" in text
    assert "| corrupt | none | 1,200 | 1 | 0 | – | – | – |" in text


def test_hunts_of_many_nodes_have_tables_of_their_own() -> None:
    large = {**HUNT, "n": "9:64", "starts": 5000}
    small, both, other = (page["parts_of"](it) for it in ([HUNT], [HUNT, large], [large]))
    assert {*small} == {"runs", "conditions", "schedulers", "classes"}
    assert {*other} == {f"large {name}" for name in small}
    assert both == small | other
    assert "## ring --supervisors 2, n = 9:64\n" in other["large classes"]
    assert "| 5,000 |" in other["large runs"]
    assert "5,000" not in small["runs"]


def test_broken_promises_stand_below_the_runs_with_a_command() -> None:
    whole = {**HUNT, "recovery": [{**it, "failed": 0} for it in HUNT["recovery"]]}
    assert page["runs"]([whole]).endswith("\n\nOf 2,400 starts none failed.\n")
    raised = {"error": "MemoryError", "cells": 1, "replay": "sim 3"}
    found = [FINDING, {**FINDING, "smaller": "sim 2"}] + [FINDING] * page["FINDINGS_SHOWN"]
    text = page["runs"]([{**HUNT, "findings": found, "errors": [raised]}, whole])
    assert "\nOf 4,800 starts 2 failed:\n" in text
    assert "- ring --supervisors 2, closure: labels at 3: `sim 1`\n" in text
    assert "labels at 3: `sim 2`\n" in text
    assert "- ring --supervisors 2: and 2 more\n" in text
    assert text.endswith("- ring --supervisors 2, not run: MemoryError: `sim 3`\n")


def test_the_page_says_what_the_files_of_hunts_say() -> None:
    """Of all hunts, those too whose times were not kept: nobody edits the tables."""
    text, hunts = page["PAGE"].read_text(), page["read_hunts"](page["HUNTS"])
    assert len(hunts) >= len({hunt["overlay"] for hunt in hunts}) == 6
    assert page["written"](text, page["parts_of"](hunts)) == text
    bounds = page["BOUNDS"].read_text()
    assert page["with_measured"](bounds, hunts) == bounds


def test_what_is_quoted_beside_the_bounds_follows() -> None:
    before = page["BOUNDS"].read_text()
    shorter = {**HUNT, "starts": 9, "schedulers": [{**ROW, "max": 1, "scheduler": "priority"}]}
    unhealed = {**HUNT, "overlay": "dht", "schedulers": []}
    after = page["with_measured"](before, [HUNT, shorter, {**shorter, "n": "9:64"}, unhealed])
    changed = [
        it for it in zip(before.split("\n"), after.split("\n"), strict=True) if it[0] != it[1]
    ]
    (old, new), *others = changed
    assert not others
    cells = old.split(" | ")
    share = f"{9 / int(cells[2]):.2f}"
    assert new.split(" | ") == [*cells[:3], "3 / 7.25 / 9", share, *cells[5:]]
    assert cells[0] == "| ring"


RUN: dict[str, Any] = {
    "published": 1000,
    "acknowledged": 999,
    "delivered": 5000,
    "late": 7,
    "lost": 1,
    "twice": 0,
    "healed": False,
    "destroyed": 2,
    "faults": [
        {"fault": "at 0 for 3 loss rate=0.8", "affected": 5, "seconds": 0.5},
        {"fault": "at 1 crash count=1", "affected": 1, "seconds": 2.5},
        {"fault": "at 2 crash count=1", "affected": 1, "seconds": None},
    ],
}


def test_runs_on_processes_are_read_by_overlay_and_summed(tmp_path: Path) -> None:
    for at in (1, 2):
        (tmp_path / f"ring-{at}.json").write_text(json.dumps(RUN))
        (tmp_path / f"ring-{at}.info").write_text(json.dumps({"exit": at - 1, "code": "abc"}))
    (tmp_path / "ring-1.rss").write_text("9 7 50 1\n9 7 60 1024\n9 8 60 5\n9 7 180 3072\n")
    (tmp_path / "gossip-1.json").write_text("")  # it ended with a traceback
    (tmp_path / "gossip-1.info").write_text(json.dumps({"exit": 1, "code": "abc"}))
    (tmp_path / "mobile-1.json").write_text("")  # it runs still
    runs = page["read_runs"](tmp_path)
    gossip, ring = page["processes"](runs).splitlines()[2:]
    nothing = " | 0" * 7
    assert gossip == f"| gossip | 1 | 0 | 0 | 1{nothing} | – | – | – | – | abc |"
    sums = "2,000 | 1,998 | 10,000 | 14 | 2 | 0 | 4"
    assert ring == f"| ring | 2 | 6 | 4 | 1 | {sums} | 1.5 | 2.5 | 2.5 | +1.00 | abc |"
    crash, loss = page["process_faults"](runs).splitlines()[2:]
    assert crash == "| `crash` | 0 / 4 | – / – / – | 2.5 / 2.5 / 2.5 |"
    assert loss == "| `loss` | 0 / 2 | – / – / – | 0.5 / 0.5 / 0.5 |"
    assert page["written"](page["PAGE"].read_text(), {"processes": "", "process faults": ""})


def test_only_what_is_between_markers_changes() -> None:
    text = "before\n<!-- runs -->\nold\n<!-- end of runs -->\nafter\n"
    new = page["written"](text, {"runs": "new\n"})
    assert new == "before\n<!-- runs -->\n\nnew\n\n<!-- end of runs -->\nafter\n"
    assert page["written"](new, {"runs": "new\n"}) == new


def test_a_page_without_markers_is_refused() -> None:
    with pytest.raises(SystemExit, match="no <!-- runs -->"):
        page["written"]("before\n", {"runs": "new\n"})


def test_the_page_has_all_markers() -> None:
    text = page["PAGE"].read_text()
    parts = page["parts_of"]([HUNT, {**HUNT, "n": "9:64"}])
    bare = page["written"](text, dict.fromkeys(parts, ""))
    assert "| corrupt |" in text
    assert "| corrupt |" not in bare
