"""Incidents of other systems: a naive protocol stuck, and Planaria that recovers."""

import json
import re
import runpy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from planaria.cli.incidents import in_words
from planaria.cli.main import main
from planaria.core.scenario import WORKLOAD
from planaria.lab.incidents import incidents, safeguards
from planaria.lab.incidents.incidents import (
    NAIVE,
    PLANARIA,
    Incident,
    Story,
    load,
    names,
    run,
    tell,
    verdict,
)
from planaria.lab.incidents.naive import Mesh
from planaria.lab.incidents.picture import picture
from planaria.network.store.database import Database
from planaria.protocols.skipring import peer
from planaria.simulator.checkers import SafetyBroken
from planaria.simulator.pictures.backlog import Line, backlog
from toys import ROOT

page = runpy.run_path(str(ROOT / "docs" / "incidents_page.py"))
RESTLESS = "graft-prune"  # it is never legitimate: that is its incident


@pytest.fixture(scope="module")
def stories() -> list[Story]:
    return [tell(load(name)) for name in names()]


def test_the_naive_protocol_is_stuck_or_loses_and_planaria_heals(stories: list[Story]) -> None:
    assert len(stories) == 26
    for it in stories:
        row = it.row
        assert row.naive in ("stuck", "lost"), row
        assert it.naive.outcome.tested, row
        assert row.naive_lost > 0, row
        assert row.healed, (row, it.planaria.wrong)
        assert (row.lost, row.twice) == (0, 0), row
        assert len(it.planaria.dues) > 50, row
        assert all(check.held for check in row.checks), row


def test_only_a_naive_protocol_may_break_safety_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> None:
        raise SafetyBroken("once", 1, "delivered twice")

    monkeypatch.setattr(incidents, "_publish_once_more", broken)
    incident = load("blip")
    assert run(incident, NAIVE[incident.naive], incidents.PATIENCE).outcome
    with pytest.raises(SafetyBroken, match="delivered twice"):
        run(incident, PLANARIA[incident.planaria], None)


def test_what_is_not_a_matter_of_convergence_is_checked(stories: list[Story]) -> None:
    ran = [check.name for it in stories for check in it.checks]
    assert sorted(ran) == sorted(safeguards.SAFEGUARDS)


def test_every_protocol_of_the_gallery_is_used_and_every_file_is_told(
    stories: list[Story],
) -> None:
    gallery = [it.incident for it in stories]
    assert {it.naive for it in gallery} == {*NAIVE}
    assert {it.planaria for it in gallery} == {*PLANARIA}
    for it in gallery:
        assert all(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", source) for source in it.source), it.name
        assert any(action.kind not in WORKLOAD for action in it.faults) or it.name == "reload"


@pytest.mark.parametrize("name", [name for name in NAIVE if name != RESTLESS])
def test_a_naive_protocol_delivers_all_while_nothing_goes_wrong(name: str) -> None:
    calm = Incident("calm", "", (), "", "", name, "at 1 publish count=8\nat 3 publish count=8")
    found = run(calm, NAIVE[name], 40)
    assert (verdict(found), found.lost, found.twice) == ("healed", 0, 0)
    assert len(found.dues) == 7 * 24


def test_a_majority_heals_what_is_not_split_equally() -> None:
    split = load("three-way-split")
    two = structs.replace(split, schedule="at 2 for 6 partition groups=2")
    assert verdict(run(two, NAIVE[split.naive], 40)) == "healed", "five and four"
    four = structs.replace(two, n=8)
    assert verdict(run(four, NAIVE[split.naive], 40)) == "stuck", "four and four"


def test_planaria_heals_with_other_seeds_too(seeds: Callable[[int, int], int]) -> None:
    for seed in range(100, 100 + seeds(1, 40)):
        for name in names():
            incident = structs.replace(load(name), seed=seed)
            found = run(incident, PLANARIA[incident.planaria], None)
            assert found.recovered, (name, seed, found.wrong)
            assert (found.lost, found.twice) == (0, 0), (name, seed)


def test_the_page_and_its_pictures_are_current(stories: list[Story]) -> None:
    text = page["PAGE"].read_text()
    assert page["written"](text, page["parts_of"](stories)) == text, "run docs/incidents_page.py"
    drawn = {f"{it.incident.name}.svg": picture(it) for it in stories}
    there = {it.name: it.read_text() for it in page["PICTURES"].iterdir()}
    assert there == drawn, "run docs/incidents_page.py"


def test_stories_fit_into_a_terminal(stories: list[Story]) -> None:
    for it in stories:
        lines = in_words(it)
        assert lines[0] == it.incident.title
        assert max(map(len, lines)) <= 80, it.incident.name
        assert any("lost" in line for line in lines)


def test_a_backlog_is_what_was_published_and_has_not_arrived() -> None:
    line = Line("x", "red", [(1, 2.5), (1, None), (4, 4)])
    assert [backlog(line, time) for time in (0, 1, 2, 2.5, 4, 9)] == [0, 2, 2, 1, 1, 1]


# Checks that can fail


def test_a_store_without_what_was_acknowledged_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safeguards, "Database", lambda path: Database(path / "elsewhere"))
    assert not safeguards.kill().held


def test_a_publisher_that_is_never_refused_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planaria.records.packing.UNSETTLED_BYTES_MAX", 1 << 40)
    assert not safeguards.back_pressure().held


def test_a_member_that_obeys_anybody_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "speaker", lambda _: None)
    assert not safeguards.spoken_for().held


def test_a_record_that_does_not_arrive_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safeguards, "SETTLE", 0)
    assert not safeguards.published_again().held


# The command


def run_incidents(
    capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, list[str], str]:
    code = main(["incidents", *arguments])
    out, err = capsys.readouterr()
    return code, out.splitlines(), err


def test_an_incident_is_a_row_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    code, lines, _ = run_incidents(capsys, "restored-session", "--json")
    (row,) = map(json.loads, lines)
    expected: dict[str, Any] = {
        "name": "restored-session",
        "source": "rmqtt/rmqtt#475",
        "naive": "stuck",
        "healed": True,
        "lost": 0,
        "twice": 0,
    }
    assert code == 0
    assert {key: row[key] for key in expected} == expected
    assert row["intervals"] >= 1


@pytest.mark.parametrize("broken", [False, True])
def test_the_table_fits_and_the_exit_code_says_whether_all_healed(
    broken: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planaria.cli.incidents.names", lambda: ["same-id", "restored-session"])
    if broken:
        monkeypatch.setattr(incidents, "PLANARIA", {"ring": Mesh})
    code, lines, _ = run_incidents(capsys)
    assert code == int(broken)
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["incident", "source", "naive", "healed", "in", "lost", "twice"]
    assert ("NEVER" in lines[1]) == broken
    assert f"Planaria healed from {1 if broken else 2} of 2" in " ".join(lines)


def test_a_misspelt_incident_is_answered_with_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, lines, err = run_incidents(capsys, "two-owner")
    assert (code, lines) == (2, [])
    assert "two-owners" in err


def test_scenarios_are_part_of_the_package() -> None:
    found: Sequence[str] = [it.name for it in incidents.SCENARIOS.iterdir()]
    assert sorted(int(it.partition("-")[0]) for it in found if it.endswith(".toml")) == [
        *range(1, 27)
    ]
    assert Path(str(incidents.SCENARIOS)).is_relative_to(ROOT / "src")
