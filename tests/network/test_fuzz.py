"""No bytes that others wrote make a decoder raise anything but its own error.

By day 400 mutants and 200 examples of Hypothesis for each decoder; in the campaign 100,000 and
4,000, and 100,000 inputs of atheris where that is installed.
"""

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack

from fuzz_lab import Decoder, attempt, decoders, mutate

ATHERIS_RUNS = 100_000  # of each decoder
SECONDS_MAX = 1800  # for one of them, on whatever machine
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.binary()
    | st.text(max_size=8) | st.sampled_from(["client.put", "skipring.deposit", "news", "#"]),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=20,
)  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Decoder]:
    return decoders(tmp_path_factory.mktemp("fuzz"))


def test_good_bytes_are_taken_and_cut_ones_are_not_all(table: dict[str, Decoder]) -> None:
    for name, one in table.items():
        for seed in one.seeds:
            assert one.decode(seed), f"{name}: what the table calls good is not"
        assert not all(taken(one, one.seeds[0][:size]) for size in range(len(one.seeds[0]))), name


def taken(one: Decoder, data: bytes) -> bool:
    try:
        return bool(one.decode(data))
    except one.errors:
        return False


def test_mutants(table: dict[str, Decoder], seeds: Callable[[int, int], int]) -> None:
    for name, one in table.items():
        rng = Random(name)
        for _ in range(seeds(400, 100_000)):
            attempt(name, one, mutate(one.seeds, rng))


@given(st.binary(max_size=200))
def test_any_bytes(table: dict[str, Decoder], data: bytes) -> None:
    for name, one in table.items():
        attempt(name, one, data)


@given(VALUES)
def test_well_formed_values_of_the_wrong_kind(table: dict[str, Decoder], value: object) -> None:
    data = msgpack.encode(value)
    for name, one in table.items():
        attempt(name, one, data)


def test_atheris(table: dict[str, Decoder], seeds: Callable[[int, int], int]) -> None:
    runs = seeds(0, ATHERIS_RUNS)
    if find_spec("atheris") is None:
        pytest.skip("atheris is not installed: pip install atheris")
    if not runs:
        pytest.skip("atheris fuzzes in the campaign: make campaign")
    program = Path(__file__).parents[1] / "fuzz_atheris.py"
    for name in table:
        words = [sys.executable, str(program), name, f"-atheris_runs={runs}"]
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=SECONDS_MAX
        )
        assert done.returncode == 0, f"{name}: {done.stderr[-4000:]}"
        assert f"Done {runs} " in done.stderr, name
