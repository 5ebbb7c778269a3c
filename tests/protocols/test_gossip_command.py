"""`planaria sim gossip`: the paper's experiment from the command line."""

import json
from random import Random

import pytest
from click.testing import CliRunner

from planaria.cli.sim import sim
from planaria.core.errors import UsageError
from planaria.protocols.gossip.memory import SEEN_MAX
from planaria.protocols.gossip.node import GossipNode
from planaria.simulator.schedule import parse_schedule
from planaria.simulator.trial import Spec, Trial
from planaria.simulator.worlds.gossip import MeasuredGossip, disseminate_once, still_copies

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


def test_groups_without_members_are_reached_whole() -> None:
    """One process is in one group of seven; the others divided by zero."""
    words = "gossip --n 1 --events 2 --json".split()
    found = json.loads(CliRunner().invoke(sim, words, standalone_mode=False).output)
    assert sorted(row["members"] for row in found["groups"]) == [0] * 6 + [1]
    assert all(row["of_all"] == 1 for row in found["groups"] if not row["members"])


def fill(node: GossipNode) -> None:
    for number in range(SEEN_MAX):
        node.memory.put(number.to_bytes(16, "big"), None)


def test_more_events_than_a_process_remembers_can_be_measured() -> None:
    """Each event is an experiment of its own: none is refused for want of memory."""
    nodes = still_copies(
        {it.id: it for it in MeasuredGossip("3").legitimate(0, Random(1))}, Random(1)
    )
    for node in nodes:
        node.memory.generations[0] = {
            number.to_bytes(16, "big"): None for number in range(SEEN_MAX)
        }
    rows = disseminate_once(nodes, ["t0"], "t0", failed=0, loss=0, failures="stillborn", seed=1)
    assert rows["t0"].reached == 3


def test_publications_that_full_processes_refuse_are_counted_as_without_effect() -> None:
    spec = Spec(2, 1, "legitimate", faults=parse_schedule("at 1 publish count=3"))
    trial = Trial(MeasuredGossip("2"), spec)
    for node in trial.simulator.nodes.values():
        assert isinstance(node, GossipNode)
        node.memory.generations[0] = {
            number.to_bytes(16, "big"): None for number in range(SEEN_MAX)
        }
    [injection] = trial.run().faults
    assert (injection.injected, injection.affected) == (3, 0)


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
        {"events": 1, "level": 0},
        {"b": 1.0},
    ],
)
def test_impossible_options_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        MeasuredGossip(**wrong)  # type: ignore[arg-type]
