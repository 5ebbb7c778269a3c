"""`planaria sim gossip`: the paper's experiment from the command line."""

import json

import pytest
from click.testing import CliRunner

from planaria.cli.sim import sim
from planaria.core.errors import UsageError
from planaria.simulator.gossip import MeasuredGossip

KEYS = (
    "members alive sent received intergroup_sent intergroup_received of_all of_alive p_all "
    "parasites table_max"
).split()


def test_chain_heals_from_garbage_and_then_is_measured() -> None:
    words = "gossip --groups 3,8,20 --failed 0.2 --events 10 --seed 3 --json".split()
    result = CliRunner().invoke(sim, words, standalone_mode=False)
    found = json.loads(result.output)
    assert found["legitimate"]
    assert found["start"] == "corrupt"
    assert found["processes"] == 31
    assert [row["members"] for row in found["groups"]] == [3, 8, 20]
    for row in found["groups"]:
        assert set(KEYS) <= set(row)
        assert row["parasites"] == 0
        assert 0 <= row["of_all"] <= row["of_alive"] <= 1
    bottom = found["groups"][-1]
    assert bottom["sent"] > bottom["received"] > 0
    assert bottom["intergroup_sent"] >= bottom["intergroup_received"]


def test_event_on_the_top_stays_there() -> None:
    words = "gossip --groups 3,8 --level 0 --events 5 --start legitimate --json".split()
    found = json.loads(CliRunner().invoke(sim, words, standalone_mode=False).output)
    top, below = found["groups"]
    assert found["published_on"] == "t0/#"
    assert top["of_alive"] > 0
    assert below["sent"] == below["received"] == below["of_alive"] == below["parasites"] == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"groups": "x"},
        {"groups": "0,1"},
        {"failed": 1.5},
        {"loss": -0.1},
        {"groups": "1,2", "level": 2},
        {"a": 9},
        {"events": -1},
    ],
)
def test_impossible_options_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        MeasuredGossip(**wrong)  # type: ignore[arg-type]
