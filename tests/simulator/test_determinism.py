"""A seed is a bug report: same seed, same run, byte for byte, in any process."""

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from planaria.simulator.delays import INTERVAL
from planaria.simulator.engine import Simulator
from planaria.simulator.schedule import compose, load_schedule
from planaria.simulator.trace import Recorder, Trace
from planaria.simulator.trial import Spec, Trial
from toys import ROOT, SORTED, Log, sorted_list

FAULTS = ("lossy", "partition", "crash", "restart", "corrupt", "replay", "slow", "pause")


def traced(overlay: str, file: Path, hash_seed: str, level: str = "everything") -> bytes:
    """The bytes of the trace that another process writes."""
    words = [overlay, "--n", "9", "--seed", "11", "--drift", "0.1", "--no-shrink"]
    words += ["--intervals", "30", "--trace", str(file), "--trace-level", level]
    for name in FAULTS:
        words += ["--nemesis", name]
    subprocess.run(
        [sys.executable, "-m", "planaria", "sim", *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        check=False,
        timeout=60,
    )
    return file.read_bytes()


def test_same_seed_gives_the_same_bytes_in_every_process_under_every_hash_seed(
    tmp_path: Path,
) -> None:
    files = [traced(SORTED, tmp_path / f"{seed}.parquet", seed) for seed in ("0", "4711")]
    assert len(files[0]) > 4_000
    assert files[0] == files[1]


def test_node_that_follows_the_order_of_a_set_is_caught_by_comparing_traces(
    tmp_path: Path,
) -> None:
    overlay = "tests/broken.py:HashOrder"
    files = [traced(overlay, tmp_path / f"{seed}.parquet", seed) for seed in ("0", "4711")]
    assert files[0] != files[1]


def spec(**changes: object) -> Spec:
    faults = compose(*(load_schedule(name) for name in FAULTS))
    return Spec(**{"n": 9, "seed": 11, "faults": faults, "drift": 0.1, **changes})  # type: ignore[arg-type]


def test_levels_change_what_is_written_and_not_what_happens(tmp_path: Path) -> None:
    about = {"seed": "11"}
    outcomes, rows, counters = [], {}, []
    outcomes.append(Trial(sorted_list(), spec()).run())
    for level in ("counters", "messages", "everything"):
        file = tmp_path / f"{level}.parquet"
        with Recorder(file, level, about) as recorder:
            outcomes.append(Trial(sorted_list(), spec(), [recorder]).run())
        rows[level] = list(Trace(file).rows())
        counters.append(recorder.counters.totals())
    assert all(outcome == outcomes[0] for outcome in outcomes)
    assert counters[0] == counters[1] == counters[2] != {}
    assert rows["counters"] == []
    messages = [row for row in rows["everything"] if row.message_id is not None]
    assert rows["messages"] == messages
    assert len(rows["everything"]) > len(messages) > 500


def logged(**changes: object) -> list[tuple[object, ...]]:
    log = Log()
    Trial(sorted_list(), spec(**changes), [log]).run()
    return log.plain()


def test_another_seed_gives_another_run() -> None:
    assert logged() == logged()
    assert logged() != logged(seed=12)


def test_scheduler_and_faults_do_not_shift_the_first_state() -> None:
    def first(**changes: object) -> list[tuple[int, bytes]]:
        nodes = Trial(sorted_list(), spec(**changes)).simulator.nodes
        return [(id, node.snapshot()) for id, node in nodes.items()]

    assert first() == first(faults=(), scheduler="starve", drift=0.3, delay="heavy:5")
    assert first() != first(seed=12)


@pytest.mark.parametrize("stream", ["protocol", "drift"])
def test_draws_of_one_concern_do_not_shift_another(stream: str) -> None:
    """Phases and delays stay, however much the protocol or the drifting periods draw."""

    def phases(thirsty: bool) -> list[int]:
        simulator, log = Simulator(3, drift=0.2 if thirsty and stream == "drift" else 0.0), Log()
        simulator.watch(log)
        for id in range(20):
            if thirsty and stream == "protocol":
                simulator.rng.random()
            simulator.add(sorted_list().spawn(id, Random(1)))
        simulator.run(INTERVAL)
        return [log.ticks("timeout", id)[0] for id in range(20)]

    assert phases(thirsty=True) == phases(thirsty=False)
