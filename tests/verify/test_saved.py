"""A search that is stopped and goes on says what one that was not stopped says."""

import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from random import Random

import numpy as np
import pytest

from planaria.cli.main import main
from planaria.core.errors import UsageError
from planaria.verify.bursts import Bursts
from planaria.verify.cases import Case
from planaria.verify.fields import Fields
from planaria.verify.graph import SAVED
from planaria.verify.model import Model
from planaria.verify.saved import BURSTS, SECONDS, WIDE, SavedWide, read, write
from planaria.verify.space import Schedule
from planaria.verify.wide import Wide
from verify_toys import ToyModel

ALL = 10_000_000
LEAVING = Case("ring", 1, "leavers", delay=1)
CASES = (
    LEAVING,
    Case("dht", 2, "living", delay=1),
    Case("sorted-ring", 3, "right", fifo=True),
)
COMMAND = ["verify", "ring", "--n", "1", "--starts", "leavers", "--delay", "1", "--wide"]
KILLED = """
import os, signal, sys
from planaria.cli.main import main
from planaria.verify import saved, wide
def killing(function, times):
    def counted(*args):
        nonlocal times
        if not times:
            os.kill(os.getpid(), signal.SIGKILL)
        times -= 1
        return function(*args)
    return counted
arrays, levels, *command = sys.argv[1:]
saved.SECONDS = 0
saved.np.save = killing(saved.np.save, int(arrays))
wide.Known.add = killing(wide.Known.add, int(levels))
main(command)
"""


class Stopped(Exception):
    """As by somebody who ends the process."""


def stop_after(ticks: int) -> Callable[[Wide], None]:
    """Let a search go on for so long."""
    numbers = count(1)

    def tick(_: Wide) -> None:
        if next(numbers) == ticks:
            raise Stopped

    return tick


def kept(model: Model, schedule: Schedule, directory: Path) -> Wide:
    """A search that is saved at every level."""
    clock = partial(next, count(0, SECONDS))
    return Wide(model, schedule, SavedWide(directory, "the same", clock))


def shown(wide: Wide) -> tuple[object, ...]:
    """All that a search says, and the names of its states, legitimate or not."""
    judged = wide.run(wide.model.firsts(), ALL)
    result = wide.result(judged, range(len(wide.starts)))
    cells = wide.cells
    names = [cells.space.digest(cells.state(it)) for it in judged.codes.tolist()]
    good = {name: bool(it) for name, it in zip(names, judged.good, strict=True)}
    wrong = {kind: int(it.sum()) for kind, it in judged.wrong.items()}
    return result, good, wrong, len(judged.steps.ends), [names[it] for it in judged.starts]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_packed_search_that_is_stopped_goes_on_with_the_same_figures(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planaria.verify.wide.CHUNK", 500)
    plain = case.search()
    whole = shown(case.wide())
    expanded = 0
    for ticks in (1, 2, 5, 9):
        part = kept(plain.model, plain.schedule, tmp_path)
        with pytest.raises(Stopped):
            part.run(part.model.firsts(), ALL, stop_after(ticks))
        assert (tmp_path / WIDE).exists()
        assert part.expanded > expanded
        expanded = part.expanded
    assert shown(kept(plain.model, plain.schedule, tmp_path)) == whole
    done = kept(plain.model, plain.schedule, tmp_path)
    assert shown(done) == whole


def test_a_search_goes_on_with_the_fields_that_were_made_wider(tmp_path: Path) -> None:
    plain = LEAVING.search()
    part = kept(plain.model, plain.schedule, tmp_path)
    part.cells.fields = Fields([4] * part.cells.n)
    with pytest.raises(Stopped):
        part.run(part.model.firsts(), ALL, stop_after(9))
    assert len(set(part.cells.fields.sizes)) > 1
    again = kept(plain.model, plain.schedule, tmp_path)
    assert shown(again) == shown(LEAVING.wide())
    assert again.cells.fields.sizes == part.cells.fields.sizes


def test_a_file_of_an_older_version_is_refused_in_one_line(tmp_path: Path) -> None:
    write(tmp_path / WIDE, lambda file: np.save(file, np.frombuffer(b"\x90", dtype=np.uint8)))
    with pytest.raises(UsageError, match="of an older version: remove it"):
        LEAVING.wide(tmp_path).run([], ALL)
    write(tmp_path / BURSTS, lambda file: file.write(b"\x90"))
    bursts = LEAVING.bursts(tmp_path)
    with pytest.raises(UsageError, match="of an older version: remove it"):
        bursts.run([], ALL)


def test_a_packed_search_that_came_to_its_end_is_not_made_again(tmp_path: Path) -> None:
    plain = LEAVING.search()
    kept(plain.model, plain.schedule, tmp_path).run(plain.model.firsts(), ALL)
    again, phases = kept(plain.model, plain.schedule, tmp_path), list[str]()
    again.run(plain.model.firsts(), ALL, lambda it: phases.append(it.phase))
    assert len(phases) > 1
    assert all(phases)  # no state was expanded


@pytest.mark.parametrize("rule", ToyModel.starts)
def test_faults_are_found_after_a_stop_as_without_one(rule: str, tmp_path: Path) -> None:
    whole = shown(Wide(ToyModel(2, rule), Schedule(0, 1)))
    part = kept(ToyModel(2, rule), Schedule(0, 1), tmp_path)
    with pytest.raises(Stopped):
        part.run(part.model.firsts(), ALL, stop_after(1))
    assert shown(kept(part.model, Schedule(0, 1), tmp_path)) == whole


def test_a_packed_search_of_too_many_states_goes_on_when_more_are_allowed(tmp_path: Path) -> None:
    part = LEAVING.wide(tmp_path)
    with pytest.raises(UsageError, match="--states 1,500"):
        part.run(part.model.firsts(), 1_500)
    assert (tmp_path / WIDE).exists()
    again = LEAVING.wide(tmp_path)
    assert shown(again) == shown(LEAVING.wide())


def test_nothing_is_saved_before_it_is_time(tmp_path: Path) -> None:
    wide = LEAVING.wide(tmp_path)
    with pytest.raises(Stopped):
        wide.run(wide.model.firsts(), ALL, stop_after(3))
    assert not list(tmp_path.iterdir())


def test_a_packed_search_whose_process_is_killed_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*COMMAND, "--json"]) == 0
    whole = capsys.readouterr().out
    resumed = ["--resume", str(tmp_path)]
    for arrays, levels in ((2, 99), (5, 99), (99, 2), (9, 99)):  # within a file, or between two
        command = [sys.executable, "-c", KILLED, str(arrays), str(levels), *COMMAND, *resumed]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
        assert (tmp_path / f"{WIDE}.part").exists() == (arrays < 99)
    assert (tmp_path / WIDE).exists()
    assert main([*COMMAND, "--json", *resumed]) == 0
    assert capsys.readouterr().out == whole


@pytest.mark.parametrize(
    ("option", "name"), [(["--wide"], WIDE), (["--bursts"], BURSTS), ([], SAVED)]
)
def test_a_damaged_file_is_refused_in_one_line(
    option: list[str], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["verify", "sorted-ring", "--n", "2", *option, "--resume", str(tmp_path)]
    assert main(command) == 0
    said, path = capsys.readouterr().out, tmp_path / name
    whole, rng = path.read_bytes(), Random(1)
    damaged = [whole[:-1], whole[: len(whole) // 2], b"", whole + b"\0"]
    for place in rng.sample(range(len(whole)), 20):
        other = bytearray(whole)
        other[place] ^= 1 << rng.randrange(8)
        damaged.append(bytes(other))
    for data in damaged:
        path.write_bytes(data)
        assert main(command) == 2
        assert capsys.readouterr().err.count("\n") == 1
    path.write_bytes(whole)
    assert main(command) == 0
    assert capsys.readouterr().out == said


@pytest.mark.parametrize(
    "other",
    [
        ["sorted-ring", "--n", "3", "--wide"],
        ["sorted-ring", "--n", "2", "--wide", "--starts", "sides"],
        ["sorted-ring", "--n", "2", "--wide", "--delay", "1"],
        ["sorted-ring", "--n", "2", "--wide", "--fifo"],
        ["sorted-ring", "--n", "2", "--wide", "--sample", "2"],
        ["dht", "--n", "2", "--wide"],
    ],
    ids=lambda it: " ".join(it[3:] or it),
)
def test_another_packed_search_is_not_taken_up(
    other: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    resumed = ["--resume", str(tmp_path)]
    assert main(["verify", "sorted-ring", "--n", "2", "--wide", *resumed]) == 0
    assert main(["verify", *other, *resumed]) == 2
    assert "holds another search: sorted-ring n=2" in capsys.readouterr().err


def of_all(bursts: Bursts) -> None:
    bursts.run(bursts.model.firsts(), ALL)


def test_another_search_by_bursts_is_not_taken_up(tmp_path: Path) -> None:
    of_all(Case("tree", 1, "links", delay=1).bursts(tmp_path))
    with pytest.raises(UsageError, match="holds another search: tree n=1"):
        of_all(Case("tree", 2, "links", delay=1).bursts(tmp_path))
    with pytest.raises(UsageError, match="holds another search"):
        of_all(Case("tree", 1, "links", delay=1).bursts(tmp_path, "sample 2"))


def test_a_packed_search_of_other_code_is_not_taken_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    LEAVING.wide(tmp_path).run([], ALL)
    monkeypatch.setattr("planaria.verify.check.code_version", lambda: "other")
    with pytest.raises(UsageError, match="holds another search"):
        LEAVING.wide(tmp_path).run([], ALL)


def test_a_sample_goes_on_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["verify", "sorted-ring", "--n", "3", "--sample", "20"]
    assert main(command) == 0
    whole = capsys.readouterr().out
    for _ in range(2):
        assert main([*command, "--resume", str(tmp_path)]) == 0
        assert capsys.readouterr().out == whole
    assert main([*command, "--seed", "1", "--resume", str(tmp_path)]) == 2


def test_who_is_killed_while_writing_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "it"
    write(path, lambda file: file.write(b"before"))

    def killed(file: object) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        write(path, killed)
    with read(path) as file:
        assert file.read() == b"before"


def test_a_disk_without_room_for_the_steps_is_one_line(small_disk: Path) -> None:
    wide = Wide(ToyModel(2, "tells"), Schedule(0, 1), SavedWide(small_disk, ""))
    room = wide._room(10, np.int32)
    room[:] = range(10)
    assert room.tolist() == list(range(10))
    assert not [*small_disk.iterdir()]  # it has no name, and goes with the process
    with pytest.raises(UsageError, match=r"disk: no 4,194,304 bytes for the steps of .*: No space"):
        wide._room(1 << 20, np.int32)
