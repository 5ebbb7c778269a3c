"""Faults on networks of real processes: every one bites, and every promise holds."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from planaria.chaos.draw import draw, kinds_drawn
from planaria.chaos.local import own_network
from planaria.chaos.run import Run, Verdict

NODES, SUPERVISORS, INTERVAL = 4, 2, 0.1
FAULTS = 4  # of one seed: five seeds draw every kind


async def broken(
    home: Path, seeds: range, faults: int = FAULTS, overlay: str = "ring"
) -> list[Verdict]:
    """One network, and for each seed a topic, applications and faults of its own."""
    found = []
    async with own_network(home / "net", NODES, SUPERVISORS, INTERVAL) as target:
        await target.find()
        for seed in seeds:
            run = Run(target, f"chaos/{seed}", seed, home / "copies", print, overlay=overlay)
            found.append(await run.in_turn(draw(seed, faults)))
            assert found[-1].wrong == [], f"seed {seed}"
    return found


def test_every_fault_bites_and_every_promise_holds(
    tmp_path: Path, seeds: Callable[[int, int], int]
) -> None:
    count = seeds(5, 250)
    verdicts = asyncio.run(asyncio.wait_for(broken(tmp_path, range(count)), 60.0 * count))
    done = {it.action.kind for verdict in verdicts for it in verdict.injections}
    assert done == {*kinds_drawn(), "join"}
    for verdict in verdicts:
        report = verdict.report
        assert report.healed
        assert report.lost == report.twice == 0
        assert 0 < report.acknowledged <= report.published
        assert report.delivered >= report.acknowledged
        assert all(it.affected > 0 and it.seconds is not None for it in report.faults)


@pytest.mark.parametrize("overlay", ["gossip", "content", "mobile"])
def test_the_other_overlays_heal_and_deliver_once(
    overlay: str, tmp_path: Path, seeds: Callable[[int, int], int]
) -> None:
    """They keep no history: what is published around a fault nobody is owed, all else is."""
    count = seeds(1, 500)
    working = broken(tmp_path, range(7, 7 + count), 2, overlay)  # the first corrupts memory
    for verdict in asyncio.run(asyncio.wait_for(working, 90.0 * count)):
        report = verdict.report
        assert report.healed
        assert report.twice == 0
        assert report.delivered > 0
        assert all(it.affected > 0 for it in report.faults)
