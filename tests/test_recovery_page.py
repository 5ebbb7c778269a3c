"""docs/recovery_page.py: hunts in, tables out, and nothing else on the page touched."""

import runpy
from typing import Any

import pytest

from toys import ROOT

page = runpy.run_path(str(ROOT / "docs" / "recovery_page.py"))

ROW = {"starts": 1200, "failed": 1, "void": 0, "p50": 3.0, "p99": 7.25, "max": 9}
HUNT: dict[str, Any] = {
    "overlay": "ring",
    "starts": 2400,
    "code": "1+abc",
    "recovery": [{**ROW, "start": "corrupt", "nemesis": it} for it in ("crash", "none")],
    "schedulers": [{**ROW, "scheduler": it} for it in page["SCHEDULERS"]],
}


def test_tables_say_what_the_hunts_said() -> None:
    assert page["runs"]([HUNT]).splitlines()[2] == "| ring | 2,400 | 2 | 1+abc |"
    assert page["schedulers"]([HUNT]).splitlines()[2].startswith("| ring | 3 / 7.25 / 9 |")
    never_healed = {**HUNT["recovery"][1], "p50": None, "p99": None, "max": None}
    told = page["classes"]([{**HUNT, "recovery": [HUNT["recovery"][0], never_healed]}])
    assert "| corrupt | crash | 1,200 | 1 | 0 | 3 | 7.25 | 9 |" in told
    assert "| corrupt | none | 1,200 | 1 | 0 | – | – | – |" in told


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
    bare = page["written"](text, dict.fromkeys(("runs", "schedulers", "classes"), ""))
    assert "| corrupt |" in text
    assert "| corrupt |" not in bare
