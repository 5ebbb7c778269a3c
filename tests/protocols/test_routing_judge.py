"""What trials of routing remember is never what a broker held, or a client said, a moment ago."""

from collections.abc import Sequence

import pytest

from planaria.core.node import Publish
from planaria.core.overlay import Violation
from planaria.protocols.content.overlay import ContentOverlay
from planaria.protocols.routing import legitimacy
from planaria.protocols.routing.node import Broker
from planaria.protocols.routing.overlay import RoutingOverlay
from planaria.simulator.delays import INTERVAL
from planaria.simulator.trial import Spec, Trial


def verdicts(trial: Trial, overlay: RoutingOverlay) -> tuple[Sequence[Violation], ...]:
    """What the judge of the run says, and what one says that never saw anything."""
    judged, fresh = trial.violations(), RoutingOverlay()
    fresh.n, fresh.degree = overlay.n, overlay.degree
    simulator = trial.simulator
    return judged, fresh.violations(simulator.states(), simulator.channel())


@pytest.mark.parametrize("remembered", [1, 3, legitimacy.REMEMBERED])
def test_a_judge_with_a_past_says_what_a_new_one_says(
    monkeypatch: pytest.MonkeyPatch, remembered: int
) -> None:
    monkeypatch.setattr(legitimacy, "REMEMBERED", remembered)
    overlay = RoutingOverlay()
    trial = Trial(overlay, Spec(n=7, seed=5, start="corrupt"))
    seen = []
    for _ in range(2 * overlay.timing.pi + 8):
        trial.applications.run(INTERVAL)
        judged, new = verdicts(trial, overlay)
        assert judged == new
        seen.append(bool(judged))
    assert True in seen  # it was broken,
    assert seen[-1] is False  # and healed


def test_what_is_remembered_is_no_excuse_for_what_changed_since() -> None:
    overlay = RoutingOverlay()
    trial = Trial(overlay, Spec(n=4, seed=1, start="legitimate"))
    assert trial.violations() == []
    broker = trial.simulator.nodes[0]
    assert isinstance(broker, Broker)
    leases = next(it for to, it in broker.table.entries.items() if to > 0)
    kept = dict(leases)
    leases.clear()
    assert {it.invariant for it in trial.violations()} >= {"missing"}
    leases.update(kept)
    assert trial.violations() == []


def test_whoever_changes_a_publication_changes_no_other() -> None:
    overlay = ContentOverlay()
    first, second = overlay.publication(0, 3), overlay.publication(1, 3)
    assert isinstance(first, Publish)
    assert first == second
    first.attributes["level"] = 99
    assert overlay.publication(0, 3) == second != first
