"""The loss of a supervisor that nobody needs at the moment must not split a topic in two."""

from random import Random

from planaria.protocols.skipring.inquiry import PATIENCE, RETRY, Inquiry
from planaria.protocols.skipring.overlay import TOPIC, RingOverlay
from planaria.protocols.skipring.placement import preference
from planaria.simulator.engine import Simulator


def test_newcomers_and_old_members_meet_at_the_successor_of_a_dead_supervisor() -> None:
    """Nobody is alarmed when it dies: only a newcomer would ask the successor, and be alone there.

    Label 0 asks every other interval; that nobody answers is reason enough to try the next one.
    """
    for seed, detects in enumerate((True, False, True, False)):
        overlay = RingOverlay(supervisors=3)
        simulator = Simulator(seed)
        simulator.detects_failed_sends = detects
        for node in overlay.legitimate(12, simulator.rng):
            simulator.add(node)
        simulator.run(500)
        dead = preference(TOPIC, overlay.supervisors)[0]
        simulator.remove(dead)
        simulator.add(overlay.spawn(77, simulator.rng))
        assert overlay.violations(simulator.states(), simulator.channel())
        simulator.run(100 * 120)
        assert overlay.violations(simulator.states(), simulator.channel()) == []
        simulator.add(overlay.spawn(dead, simulator.rng))
        simulator.run(100 * 80)
        assert overlay.violations(simulator.states(), simulator.channel()) == []


def test_lost_routine_request_is_asked_again_before_another_supervisor_is_tried() -> None:
    inquiry = Inquiry([1, 2], Random(0))
    inquiry.calm()
    assert inquiry.on_timeout(1.0, 3)
    asked = [inquiry.on_timeout(0.0, 3) for _ in range(PATIENCE - 4)]
    assert asked[: RETRY - 2] == [False] * (RETRY - 2)
    assert sum(asked) >= 2
    assert inquiry.supervisor == 1
