"""The loss of a supervisor that nobody needs at the moment must not split a topic in two."""

from planaria.protocols.skipring.overlay import TOPIC, RingOverlay
from planaria.protocols.skipring.placement import preference
from planaria.simulator.engine import Simulator


def test_newcomers_and_old_members_meet_at_the_successor_of_a_dead_supervisor() -> None:
    """Nobody is alarmed when it dies: only a newcomer would ask the successor, and be alone there.

    Label 0 asks every other interval; that nobody answers is reason enough to try the next one.
    """
    for seed, told in enumerate((True, False, True, False)):
        overlay = RingOverlay(supervisors=3)
        simulator = Simulator(seed)
        simulator.detects_failed_sends = told
        for node in overlay.legitimate(12, simulator.rng):
            simulator.add(node)
        simulator.run(500)
        dead = preference(TOPIC, overlay.supervisors)[0]
        simulator.remove(dead)
        simulator.add(overlay.spawn(77, simulator.rng))
        assert overlay.violations(simulator.nodes, simulator.channel())
        simulator.run(100 * 120)
        assert overlay.violations(simulator.nodes, simulator.channel()) == []
        simulator.add(overlay.spawn(dead, simulator.rng))
        simulator.run(100 * 80)
        assert overlay.violations(simulator.nodes, simulator.channel()) == []
