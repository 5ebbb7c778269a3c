"""Stable hashes and random streams: the same in every process, each on its own."""

import os
import subprocess
import sys
from collections import Counter
from itertools import combinations, product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planaria.core.chance import any_integer, combination, derive, stream
from planaria.core.ids import (
    HASH_BITS,
    MODULUS,
    NODE_ID_MAX,
    ODD,
    is_node_id,
    mixed,
    stable_hash,
)

parts = st.lists(st.integers() | st.text() | st.binary(), max_size=4)

PROBE = """
from planaria.core.chance import derive, stream
from planaria.core.ids import stable_hash
print(stable_hash("a", 1, b"x"), derive(7, "loss"), [stream(7, "delay", 3).random() for _ in "ab"])
"""


def probe(hash_seed: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", PROBE],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_hashes_and_streams_are_the_same_in_every_process_under_every_hash_seed() -> None:
    assert probe("0") == probe("1") == probe("4294967295")


def test_hashes_never_change_from_version_to_version() -> None:
    """Peers of two versions must agree on keys, and an old seed must still repeat its run."""
    assert stable_hash("a", 1, b"x", bits=64) == 0xDCD4BCE512C81CED
    assert derive(7, "loss") == 0xC1D13D953CB90B12
    assert stream(7, "loss").getrandbits(64) == 0xF19B3F958EDED0EE


@given(parts, parts)
def test_different_parts_have_different_hashes(
    one: list[int | str | bytes], other: list[int | str | bytes]
) -> None:
    assert (stable_hash(*one) == stable_hash(*other)) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"), [(("ab", "c"), ("a", "bc")), ((1,), ("1",)), (("a",), (b"a",)), ((), ("",))]
)
def test_the_type_and_the_borders_of_parts_count(
    one: tuple[int | str | bytes, ...], other: tuple[int | str | bytes, ...]
) -> None:
    assert stable_hash(*one) != stable_hash(*other)


@pytest.mark.parametrize("bits", [1, 7, 8, 9, 63, 64, HASH_BITS, 512])
def test_a_hash_has_as_many_bits_as_asked_and_uses_them_all(bits: int) -> None:
    seen = 0
    for number in range(64):
        value = stable_hash(number, bits=bits)
        assert 0 <= value < 1 << bits
        seen |= value
    assert seen == (1 << bits) - 1


def test_drawing_from_one_stream_shifts_no_other() -> None:
    alone = [stream(7, "loss").random() for _ in range(1)]
    delay = stream(7, "delay")
    loss = stream(7, "loss")
    for _ in range(100):
        delay.random()
    assert [loss.random()] == alone


def test_streams_of_other_names_and_seeds_are_unlike() -> None:
    """Neither equal nor correlated: of 64 bits about half agree, for every pair of streams."""
    names: list[tuple[int | str, ...]] = [("loss",), ("delay",), ("loss", 0), ("loss", 1), (1,)]
    streams = [stream(seed, *name) for seed in (0, 1, 2**63) for name in names]
    drawn = [rng.getrandbits(4096) for rng in streams]
    for one, other in combinations(drawn, 2):
        assert 0.45 < (one ^ other).bit_count() / 4096 < 0.55


def test_any_integer_draws_the_values_that_matter_and_those_that_no_counter_should_hold() -> None:
    drawn = {any_integer(stream(seed, "value"), 8, 48) for seed in range(2_000)}
    assert {7, 8, 9, 47, 48, 49, -1, 0, 1} <= drawn
    assert min(drawn) < -(1 << 62)
    assert max(drawn) > 1 << 64


@pytest.mark.parametrize("sizes", [(12, 2, 6, 3), (2, 2, 2, 2), (7,), (1, 5, 1), ()])
def test_every_combination_comes_round_equally_often(sizes: tuple[int, ...]) -> None:
    """Where seeds are taken modulo 12, 2, 6 and 3, only 12 of 432 combinations ever occur."""
    axes = [range(size) for size in sizes]
    period = prod(sizes)
    drawn = [combination(number, *axes) for number in range(5, 5 + 3 * period)]
    assert Counter(drawn) == Counter(dict.fromkeys(product(*axes), 3))


def test_few_numbers_see_every_value_of_every_axis() -> None:
    drawn = [combination(number, range(12), range(2), range(6), "abc") for number in range(60)]
    assert [len({*axis}) for axis in zip(*drawn, strict=True)] == [12, 2, 6, 3]


def test_only_numbers_that_the_wire_takes_can_name_a_node() -> None:
    assert [id for id in (0, 7, NODE_ID_MAX) if not is_node_id(id)] == []
    assert [id for id in (-1, NODE_ID_MAX + 1, -(1 << 100), 1 << 100) if is_node_id(id)] == []


@given(st.lists(st.integers(-(1 << 130), 1 << 130), max_size=10))
def test_few_numbers_are_mixed_as_many_are_so_that_checks_in_snapshots_stay_true(
    numbers: list[int],
) -> None:
    found = 1
    for number in numbers:
        found = found * ODD + number
    assert mixed(*numbers) == found % MODULUS
