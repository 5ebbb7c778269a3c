"""docs/recovery_hunts.py: instalments of a hunt in, the tables of the whole out."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from planaria.cli.main import main
from toys import ROOT, SORTED

pytest_plugins = ("spark_session",)

script = runpy.run_path(str(ROOT / "docs" / "recovery_hunts.py"))
add, Refused = script["add"], script["Refused"]
TABLES = script["TABLES"]

NOWHERE = Path("no/such/hunt.json")
GRID = {"overlay": ["ring"], "n": [1, 2], "scheduler": ["fifo"]}


def row(times: dict[str, int] | None, **group: Any) -> dict[str, Any]:
    """A row of a table, its percentiles wrong: they are made anew."""
    starts = sum((times or {}).values())
    figures = {"p50": -1.0, "p99": -1.0, "max": max(map(int, times)) if times else None}
    counts = {"starts": starts, "failed": 1, "void": 2, "of_bound": 0.25 if times else None}
    return {**group, **counts, **figures, "times": times}


def report(seeds: str, times: dict[str, int] | None, code: str = "1+a", rows: str = "x") -> Any:
    """What a hunt of one scheduler said."""
    first, last = script["first_and_last"](seeds)
    return {
        "overlay": "ring", "asked": "ring --supervisors 2", "n": "1:2", "grid": GRID,
        "seeds": seeds, "code": code, "starts": last - first + 1, "findings": [], "errors": [],
        "head": {"seeds": f"{first}:{min(last, first + 9)}", "rows": rows},
        "recovery": [row(times, start="corrupt", nemesis="none")],
        "schedulers": [row(times, scheduler="fifo")],
        "conditions": [row(times, delay="fixed:23", silent_failures=True, publish=0)],
    }  # fmt: skip


def said(seeds: str, tmp: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """What a hunt of these seeds says."""
    words = ["hunt", SORTED, "--seeds", seeds, "--n", "2:6", "--json"]
    words += [
        "--silent-failures",
        "no",
        "--schedulers",
        "fifo,lifo",
        "--nemesis",
        "crash",
        "--nemesis",
        "none",
    ]
    assert main([*words, "--out", str(tmp)]) == 0
    return json.loads(capsys.readouterr().out)


def test_parts_of_a_hunt_give_the_tables_of_the_whole(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Run on its own, or as a part of the whole: the same rows."""
    monkeypatch.chdir(ROOT)
    first = said("0:11", tmp_path / "first", capsys)
    whole, again, second, third = (
        said(seeds, tmp_path / "whole", capsys) for seeds in ("0:39", "0:11", "12:30", "31:39")
    )
    for name, by in TABLES.items():
        for made, asked in zip(add(NOWHERE, [whole])[name], whole[name], strict=True):
            assert {key: made[key] for key in by} == {key: asked[key] for key in by}
            figures = [made["p50"], made["p99"], made["max"]]
            assert figures == pytest.approx([asked["p50"], asked["p99"], asked["max"]])
    file = tmp_path / "hunt.json"
    file.write_text(script["text_of"](add(NOWHERE, [third, first])))
    assert script["gaps"](json.loads(file.read_text())) == ["12:30"]
    parts = add(file, [second])
    assert script["gaps"](parts) == []
    assert parts["instalments"] == [{"seeds": "0:39", "code": whole["code"], "head": first["head"]}]
    everything = add(NOWHERE, [whole])
    assert {**parts, "instalments": []} == {**everything, "instalments": []}
    assert add(NOWHERE, [whole]) == json.loads(script["text_of"](everything))
    assert again["head"] == first["head"] != second["head"]


def test_times_are_added_and_percentiles_are_of_all_of_them() -> None:
    made = add(NOWHERE, [report("0:2", {"9": 1, "10": 2}), report("3:3", {"0": 1})])
    (fifo,) = made["schedulers"]
    assert fifo["times"] == {"0": 1, "9": 1, "10": 2}
    assert [fifo[it] for it in ("p50", "p99", "max")] == [9.5, 10, 10]
    assert [fifo[it] for it in ("starts", "failed", "void")] == [4, 2, 4]
    assert (made["starts"], made["of_bound"]) == (4, 0.25)
    (never,) = add(NOWHERE, [report("0:2", None)])["schedulers"]
    assert [never[it] for it in ("p50", "p99", "max")] == [None] * 3


def test_findings_and_errors_stand_in_the_order_of_the_whole() -> None:
    early, late = report("0:9", None), report("10:19", None)
    early["findings"], late["findings"] = [{"n": 2, "seed": 3}], [{"n": 1, "seed": 12}]
    early["errors"] = [{"error": "A", "cells": 1, "replay": "sim 1"}]
    late["errors"] = [{"error": it, "cells": 1, "replay": "sim 15"} for it in ("A", "B")]
    made = add(NOWHERE, [late, early])
    assert [it["seed"] for it in made["findings"]] == [12, 3]
    assert [(it["cells"], it["replay"]) for it in made["errors"]] == [(2, "sim 1"), (1, "sim 15")]


def test_what_does_not_belong_together_is_refused() -> None:
    first = report("0:99", {"1": 100})
    for seeds in ("99:120", "0:99", "20:30"):
        with pytest.raises(Refused, match=f"seeds {seeds} overlap with|seeds 0:99 overlap with"):
            add(NOWHERE, [first, report(seeds, {"1": 1})])
    other = {**report("100:109", {"1": 10}), "grid": {**GRID, "scheduler": ["lifo"]}}
    with pytest.raises(Refused, match="its grid differs"):
        add(NOWHERE, [first, other])
    with pytest.raises(Refused, match=r"1\+b is not 1\+a: give a hunt of seeds 0:9 by it"):
        add(NOWHERE, [first, report("100:109", {"1": 10}, code="1+b")])


def test_other_code_has_to_repeat_the_first_rows(tmp_path: Path) -> None:
    first, more = report("0:99", {"1": 100}), report("100:109", {"1": 10}, code="1+b")
    proof = report("0:9", {"1": 10}, code="1+b")
    made = add(NOWHERE, [proof, first, more])
    assert made["starts"] == 110
    assert [it["code"] for it in made["instalments"]] == ["1+a", "1+b"]
    with pytest.raises(Refused, match=r"seeds 0:9 give other rows by 1\+b"):
        add(NOWHERE, [first, {**proof, "head": {"seeds": "0:9", "rows": "y"}}, more])
    file = tmp_path / "hunt.json"
    file.write_text(script["text_of"](add(NOWHERE, [first, proof])))
    assert add(file, [more]) == made
    beside = report("200:209", {"1": 10})
    both = add(NOWHERE, [first, beside, proof, {**beside, "code": "1+b"}])
    assert (both["starts"], both["codes"]) == (110, ["1+a", "1+b"])


def test_files_are_written_when_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(script["main"].__globals__, "HUNTS", tmp_path / "hunts")
    texts = [report("5:9", {"1": 5}), report("7:9", {"1": 3}), ""]
    names = [str(tmp_path / name) for name in "abc"]
    for name, text in zip(names, texts, strict=True):
        Path(name).write_text(json.dumps(text) if text else "")
    with pytest.raises(SystemExit, match="ring --supervisors 2, n = 1:2: seeds 7:9 overlap"):
        script["main"](names)
    assert not (tmp_path / "hunts").exists()
    script["main"](names[::2])
    name = "ring-supervisors-2-1-2.json"
    said = f"{name}: 5 starts\n{name}: seeds 0:4 are missing\n"
    assert capsys.readouterr().out == said
    assert [it.name for it in (tmp_path / "hunts").iterdir()] == [name]


def test_a_hunt_without_times_is_not_added_to() -> None:
    with pytest.raises(Refused, match=r"docs/hunts/dht-1-8\.json has no times to add to"):
        add(ROOT / "docs" / "hunts" / "dht-1-8.json", [report("0:9", {"1": 10})])
