"""docs/recovery_page.py: hunts in, tables out, and nothing else on the page touched."""

import runpy
from typing import Any

import pytest

from toys import ROOT

page = runpy.run_path(str(ROOT / "docs" / "recovery_page.py"))

ROW = {"starts": 1200, "failed": 1, "void": 0, "p50": 3.0, "p99": 7.25, "max": 9, "of_bound": 0.4}
CONDITION = {**ROW, "delay": "fixed:23", "silent_failures": True, "publish": 4}
HUNT: dict[str, Any] = {
    "overlay": "ring",
    "asked": "ring --supervisors 2",
    "n": "1:8",
    "conditions": [CONDITION],
    "starts": 2400,
    "code": "1+abc",
    "recovery": [{**ROW, "start": "corrupt", "nemesis": it} for it in ("crash", "none")],
    "schedulers": [{**ROW, "scheduler": it} for it in page["SCHEDULERS"]],
}


def test_tables_say_what_the_hunts_said() -> None:
    name = "ring --supervisors 2"
    assert page["runs"]([HUNT]).splitlines()[2] == f"| {name} | 1:8 | 2,400 | 2 | 0.4 | 1+abc |"
    assert page["schedulers"]([HUNT]).splitlines()[2].startswith(f"| {name} | 3 / 7.25 / 9 |")
    condition = f"| {name} | fixed:23 | yes | 4 | 1,200 | 1 | 3 | 7.25 | 9 |"
    assert page["conditions"]([HUNT]).splitlines()[2] == condition
    never_healed = {**HUNT["recovery"][1], "p50": None, "p99": None, "max": None}
    told = page["classes"]([{**HUNT, "recovery": [HUNT["recovery"][0], never_healed]}])
    assert "| corrupt | crash | 1,200 | 1 | 0 | 3 | 7.25 | 9 |" in told
    assert "| corrupt | none | 1,200 | 1 | 0 | – | – | – |" in told


def test_hunts_of_many_nodes_have_tables_of_their_own() -> None:
    large = {**HUNT, "n": "9:64", "starts": 5000}
    small, both, other = (page["parts_of"](it) for it in ([HUNT], [HUNT, large], [large]))
    assert {*small} == {"runs", "conditions", "schedulers", "classes"}
    assert {*other} == {f"large {name}" for name in small}
    assert both == small | other
    assert "## ring --supervisors 2, n = 9:64\n" in other["large classes"]
    assert "| 5,000 |" in other["large runs"]
    assert "5,000" not in small["runs"]


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
