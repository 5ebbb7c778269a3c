"""A judge has no memory: a trial that is asked again and again ends as one that is not."""

from typing import Any

import pytest
from msgspec import to_builtins

from planaria.protocols.registry import PRODUCTS
from planaria.simulator.delays import INTERVAL
from planaria.simulator.schedule import parse_schedule
from planaria.simulator.trial import Spec, Trial
from planaria.simulator.worlds.registry import find_kind
from toys import ROOT, SORTED

FAULTS = "at 1 publish count=3\nat 2 corrupt share=0.3\nat 2 for 2 partition groups=2\nat 3 join"


def outcome(reference: str, seed: int, *, asked: bool) -> tuple[Any, ...]:
    """How a trial ended, with what its nodes remember; `asked` twice in each interval."""
    spec = Spec(6, seed, "corrupt", parse_schedule(FAULTS))
    trial = Trial(find_kind(reference).make(), spec)
    run = trial.simulator.run

    def asking(ticks: int) -> None:
        for _ in range(ticks):
            run(1)
            if trial.simulator.tick % (INTERVAL // 2) == 0:
                first, second = trial.violations(), trial.violations()
                assert first == second

    if asked:
        trial.simulator.run = asking  # type: ignore[method-assign]
    ended = to_builtins(trial.run(), enc_hook=str, str_keys=True)
    return ended, {id: node.snapshot() for id, node in trial.simulator.nodes.items()}


SEEDS = {str(ROOT / SORTED): 3, "ring": 3, "content": 1}  # of the others two each


@pytest.mark.parametrize("reference", [str(ROOT / SORTED), *sorted(PRODUCTS)])
def test_asking_changes_nothing(reference: str) -> None:
    for seed in range(SEEDS.get(reference, 2)):
        assert outcome(reference, seed, asked=True) == outcome(reference, seed, asked=False)
