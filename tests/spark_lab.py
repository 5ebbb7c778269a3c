"""Small experiments for the tests of sweeps, where workers can import them."""

import io
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow
from pyarrow import parquet

from planaria.protocols.skipring.overlay import RingOverlay
from planaria.simulator.trace import Recorder
from planaria.simulator.trial import Spec, Trial
from planaria.spark.grid import Cell
from planaria.spark.hunt import Hunt, Target, named_schedules
from planaria.spark.sweep import Result, Sweep, Work
from planaria.spark.verify import Share
from planaria.verify import check
from planaria.verify.check import Search
from planaria.verify.mutants import MUTANTS
from planaria.verify.mutation import mutated

Run = Callable[[Cell], Result]
MEETING_SECONDS = 30.0  # for the one that comes first


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def replay(cell: Cell) -> str:
    return f"planaria sim {cell.parameters['x']} --seed {cell.seed}"


def times(cell: Cell) -> Result:
    """x times the seed, and a table of as many rows as x."""
    x = int(cell.parameters["x"])
    table = pyarrow.table({"row": pyarrow.array(range(x), "int64")})
    return Result({"value": float(x * cell.seed)}, {"rows": table}, failed=x == 2)


def fragile(cell: Cell) -> Result:
    if cell.parameters["x"] == 3:
        raise KeyError("three")
    return times(cell)


def sleepy(cell: Cell) -> Result:
    time.sleep(0.4)
    return times(cell)


def meeting(cell: Cell) -> Result:
    """1 if the cell of the same place whose x is the other was running at the same time."""
    place, x = Path(str(cell.parameters["place"])), int(cell.parameters["x"])
    (place / f"here-{x}").touch()
    end = time.monotonic() + MEETING_SECONDS
    while not (met := (place / f"here-{1 - x}").exists()) and time.monotonic() < end:
        time.sleep(0.05)
    return Result({"value": float(met)})


def mortal(cell: Cell) -> Result:
    """Kills its worker the first time."""
    marker = Path(str(cell.parameters["marker"]))
    if not marker.exists():
        marker.touch()
        os._exit(9)
    return Result({"value": 1.0})


def deadly(cell: Cell) -> Result:
    """3 and 5 kill their worker, whenever they are tried."""
    if cell.parameters["x"] in (3, 5):
        os._exit(9)
    return times(cell)


class Stubborn(Target, frozen=True):
    """Shrinking raises for seed 0 and kills its worker for any other."""

    def shrink_cell(self, cell: Cell) -> Result:
        if cell.seed == 0:
            raise KeyError("stubborn")
        os._exit(9)


class WithoutRule(Share, frozen=True):
    """Searches with one rule left out, as `mutated` does in this process."""

    rule: str = ""

    def search_cell(self, cell: Cell) -> Result:
        with mutated(next(it for it in MUTANTS if it.name == self.rule)):
            return super().search_cell(cell)


class Raising(Share, frozen=True):
    """Cannot search the part that begins with the first start."""

    def searched(self, part: tuple[int, int]) -> tuple[Search, check.Result]:
        if part[0] == 0:
            raise KeyError("first")
        return super().searched(part)


def traced(cell: Cell) -> Result:
    """A trial of the ring with everything that happened in it."""
    spec = Spec(int(cell.parameters["x"]), cell.seed, intervals=100)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "trace")
        with Recorder(path, "everything", {"seed": str(cell.seed)}) as recorder:
            outcome = Trial(RingOverlay(), spec, [recorder]).run()
        table = parquet.read_table(path)
    return Result({"value": float(outcome.intervals)}, {"trace": table})


def small_hunt(out: str) -> Hunt:
    """Twelve starts of corrupt rings."""
    target = Target("ring", ("ring",), {}, named_schedules(["crash", "partition"]))
    grid: dict[str, list[int] | list[str]] = {"overlay": ["ring"], "start": ["corrupt"]}
    grid |= {"n": [3, 5], "scheduler": ["fifo"], "nemesis": ["crash", "partition"]}
    grid |= {"intervals": [200], "closure": [5], "messages": [10**6]}
    return Hunt(target, grid, range(12), out)


def work(run: Run = times) -> Work:
    return Work(str(getattr(run, "__name__", run)), {"value": "float64"}, run, replay)


def sweep(run: Run, cells: Sequence[Cell], out: Path, share: int = 1) -> Sweep:
    return Sweep(work(run), cells, str(out), share=share)


def contents(directory: Path) -> dict[str, bytes]:
    """All files below `directory`."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }
