"""One scenario file runs in the simulator and on processes: the same verdicts, the same book."""

import asyncio
from pathlib import Path

from parity_lab import LiveRun, simulate
from planaria.core.scenario import parse_schedule
from process_lab import Processes, UpNetwork

SCENARIO = Path(__file__).parent.parent / "scenarios" / "parity.txt"
MEMBERS = 4


def test_a_scenario_has_the_same_book_in_the_simulator_and_on_processes(
    processes: Processes,
) -> None:
    schedule = parse_schedule(SCENARIO.read_text(), SCENARIO.name)
    wrong, simulated = simulate(schedule, MEMBERS)
    assert wrong == []
    assert simulated.published == 10
    assert simulated.due == 2 * 10  # to one that stays, and to the new application of another
    # And what came before to one that unsubscribes, to an application that ends, to one that dies.
    assert simulated.delivered == 2 * 10 + 9 + 8 + 4
    network = UpNetwork(processes, MEMBERS + 1, 1)
    live = asyncio.run(asyncio.wait_for(LiveRun(network, MEMBERS).run(schedule), 200))
    assert live == simulated
    network.heal(gone=1)
