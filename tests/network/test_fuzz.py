"""No bytes that others wrote make a decoder raise anything but its own error.

By day 400 mutants and 200 examples of Hypothesis for each decoder; in the campaign 100,000 and
4,000, and a million runs of atheris where that is installed.
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

ATHERIS_RUNS = 1_000_000  # of all decoders together
DECODERS = decoders()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.binary()
    | st.text(max_size=8) | st.sampled_from(["client.put", "skipring.deposit", "news", "#"]),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=20,
)  # fmt: skip


@pytest.fixture(params=DECODERS)
def decoder(request: pytest.FixtureRequest) -> tuple[str, Decoder]:
    return request.param, DECODERS[request.param]


def test_good_bytes_are_taken(decoder: tuple[str, Decoder]) -> None:
    name, one = decoder
    for seed in one.seeds:
        try:
            one.decode(seed)
        except one.errors as error:
            raise AssertionError(f"{name}: what the table calls good is not: {error}") from None


def test_mutants(decoder: tuple[str, Decoder], seeds: Callable[[int, int], int]) -> None:
    name, one = decoder
    rng = Random(name)
    for _ in range(seeds(400, 100_000)):
        attempt(name, one, mutate(one.seeds, rng))


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    for name, one in DECODERS.items():
        attempt(name, one, data)


@given(VALUES)
def test_well_formed_values_of_the_wrong_kind(value: object) -> None:
    data = msgpack.encode(value)
    for name, one in DECODERS.items():
        attempt(name, one, data)


def test_atheris(seeds: Callable[[int, int], int]) -> None:
    runs = seeds(0, ATHERIS_RUNS)
    if find_spec("atheris") is None:
        pytest.skip("atheris is not installed: pip install atheris")
    program = Path(__file__).parents[1] / "fuzz_atheris.py"
    done = subprocess.run(
        [sys.executable, str(program), f"-atheris_runs={runs}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
