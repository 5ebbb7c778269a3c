"""Faults on networks of real processes: every one bites, and every promise holds."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from planaria.chaos.draw import draw, kinds_drawn
from planaria.chaos.local import own_network
from planaria.chaos.run import CALM_PUBLICATIONS, Run, Verdict

NODES, SUPERVISORS, INTERVAL = 4, 2, 0.1
SEED_SECONDS = 120.0  # of which it takes three to ten where nothing else runs


async def broken(home: Path, seeds: range, faults: int, overlay: str = "ring") -> list[Verdict]:
    """One network and its applications; of each seed some faults and a verdict."""
    found = []
    async with own_network(home / "net", NODES, SUPERVISORS, INTERVAL) as target:
        await target.find()
        async with Run(target, "chaos", 0, home / "copies", print, overlay=overlay) as run:
            for seed in seeds:
                run.draw_from(seed)
                verdict = await run.in_turn(draw(seed, faults))
                assert verdict.wrong == [], f"seed {seed}"
                assert len(verdict.injections) >= faults
                assert all(it.affected > 0 for it in verdict.injections)
                found.append(verdict)
    return found


def verdicts(home: Path, seeds: range, faults: int, overlay: str = "ring") -> list[Verdict]:
    working = broken(home, seeds, faults, overlay)
    return asyncio.run(asyncio.wait_for(working, SEED_SECONDS * len(seeds)))


def kinds(found: list[Verdict]) -> set[str]:
    return {it.action.kind for verdict in found for it in verdict.injections}


def test_every_fault_bites_and_every_promise_holds(
    tmp_path: Path, seeds: Callable[[int, int], int]
) -> None:
    """Four faults of a seed: five seeds draw every kind."""
    found = verdicts(tmp_path, range(seeds(5, 250)), 4)
    assert kinds(found) == {*kinds_drawn(), "join"}
    acknowledged = 0
    for verdict in found:
        report = verdict.report
        assert report.healed
        assert report.lost == report.twice == 0
        assert acknowledged < report.acknowledged <= report.published, "more with each seed"
        assert report.delivered >= report.acknowledged
        assert all(it.seconds is not None for it in report.faults)
        acknowledged = report.acknowledged


@pytest.mark.parametrize("overlay", ["gossip", "content", "mobile"])
def test_the_other_overlays_heal_and_deliver_once(
    overlay: str, tmp_path: Path, seeds: Callable[[int, int], int]
) -> None:
    """They keep no history: what is published around a fault nobody is owed, all else is.

    Two faults of a seed; the first five seeds kill, restart, corrupt, forge, cut and more.
    """
    found = verdicts(tmp_path, range(5, 5 + seeds(5, 500)), 2, overlay)
    assert {"corrupt", "crash", "forge", "join", "partition", "restart"} <= kinds(found)
    for verdict in found:
        report = verdict.report
        assert report.healed
        assert report.twice == 0
        assert report.delivered >= CALM_PUBLICATIONS
