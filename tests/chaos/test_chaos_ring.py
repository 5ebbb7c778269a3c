"""Faults on a network of real processes: every one bites, and every promise holds."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from planaria.chaos.draw import draw, kinds_drawn
from planaria.chaos.local import own_network
from planaria.chaos.run import Run, Verdict

NODES, SUPERVISORS, INTERVAL = 4, 2, 0.1
FAULTS = 4  # of one seed: five seeds draw every kind


async def broken(home: Path, seeds: range) -> list[Verdict]:
    """One network, and for each seed a topic, applications and faults of its own."""
    found = []
    async with own_network(home / "net", NODES, SUPERVISORS, INTERVAL) as target:
        await target.find()
        for seed in seeds:
            run = Run(target, f"chaos/{seed}", seed, home / "copies", print)
            found.append(await run.in_turn(draw(seed, FAULTS)))
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
