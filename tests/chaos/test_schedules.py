"""What can be asked of a running network: names, files and drawn schedules."""

from pathlib import Path

import pytest

from planaria.chaos.draw import draw, kinds_drawn
from planaria.chaos.faults import Faults
from planaria.chaos.names import SIMULATED, SINGLE, kinds, load
from planaria.core.errors import UsageError
from planaria.core.scenario import ACTIONS, parse_schedule, print_schedule
from planaria.simulator.schedule import NAMED


@pytest.mark.parametrize("name", [*SINGLE, *NAMED])
def test_every_name_is_a_schedule_that_chaos_can_carry_out_or_refuses_in_one_line(
    name: str,
) -> None:
    if name not in SINGLE and any(kind in NAMED[name] for kind in SIMULATED):
        with pytest.raises(UsageError, match="needs a simulation"):
            load(name)
        return
    schedule = load(name)
    assert schedule or name == "none"
    for action in schedule:
        assert hasattr(Faults, f"_{action.kind}"), action.kind


def test_every_action_is_carried_out_or_refused() -> None:
    carried_out = {kind for kind in ACTIONS if hasattr(Faults, f"_{kind}")}
    assert carried_out.isdisjoint(SIMULATED)
    assert carried_out | set(SIMULATED) == set(ACTIONS)


def test_a_file_is_read_as_the_simulator_reads_it(tmp_path: Path) -> None:
    text = "# micro\nat 1 for 0.01 partition groups=3\nat 2 flip count=1 bits=3\nat 3 publish\n"
    path = tmp_path / "schedule.txt"
    path.write_text(text)
    assert load(str(path)) == parse_schedule(text)
    with pytest.raises(UsageError, match=r"is no readable file .* and none of: .*corrupt.*kill"):
        load(str(tmp_path / "nowhere"))
    path.write_text("at 1 damage count=1")
    with pytest.raises(UsageError, match="'damage' needs a simulation: planaria sim"):
        load(str(path))


@pytest.mark.parametrize("text", ["join count=1", "corrupt count=1\nat 1 join count=1"])
def test_nobody_comes_back_who_did_not_end_before(text: str, tmp_path: Path) -> None:
    path = tmp_path / "schedule.txt"
    path.write_text(f"at 0 {text}")
    for name in ("join", str(path)):
        with pytest.raises(UsageError, match="brings back who") as refused:
            load(name)
        assert "\n" not in str(refused.value)
    path.write_text("at 0 leave count=1\nat 1 join count=1")
    assert [it.kind for it in load(str(path))] == ["leave", "join"]


def test_what_is_drawn_is_of_the_seed_and_of_as_many_faults() -> None:
    assert draw(7, 20) == draw(7, 20) != draw(8, 20)
    assert len(draw(7, 20)) in (20, 21)  # who was killed last comes back too
    assert parse_schedule(print_schedule(draw(7, 20))) == draw(7, 20)


def test_a_few_seeds_draw_every_kind_of_fault() -> None:
    drawn = {action.kind for seed in range(5) for action in draw(seed, 4)}
    assert drawn == {*kinds_drawn(), "join"}
    assert {*kinds()} == drawn


def test_who_is_killed_comes_back_with_the_next_action() -> None:
    for seed in range(50):
        schedule = [action.kind for action in draw(seed, 9)]
        for place, kind in enumerate(schedule):
            assert (kind == "crash") == (schedule[place + 1 : place + 2] == ["join"])
