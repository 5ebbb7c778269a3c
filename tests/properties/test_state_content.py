"""The state of a broker in three layers is a value, and its judge has no memory."""

from collections.abc import Callable

import pytest

from planaria.core.chance import stream
from planaria.protocols.content.node import ContentBroker
from planaria.simulator.schedule import compose, load_schedule, parse_schedule
from planaria.simulator.trial import Outcome, Spec, Trial
from planaria.simulator.worlds.content import ContentWorld
from state_lab import goes_on_identically, spawn_like, starts_fresh

PUBLISHED = parse_schedule("\n".join(f"at {time} publish count=3" for time in (1, 2.9, 7, 12)))


@pytest.mark.parametrize("start", ["corrupt", "legitimate", "fresh"])
def test_any_broker_goes_on_from_its_bytes_as_without(
    start: str, seeds: Callable[[int, int], int]
) -> None:
    for seed in range(seeds(4, 300)):
        rng = stream(seed, "state", start)
        spec = Spec(rng.randint(1, 8), seed, start, PUBLISHED, closure=6)
        goes_on_identically(ContentWorld(subscriptions=12), spec, at=rng.sample(range(20), 3))


@pytest.mark.parametrize("nemesis", ["churn", "corrupt", "bitflip", "lossy"])
def test_so_it_does_while_faults_happen(nemesis: str) -> None:
    faults = compose(load_schedule(nemesis), PUBLISHED)
    spec = Spec(8, 4, "legitimate", faults, closure=6)
    goes_on_identically(ContentWorld(subscriptions=12), spec, at=[3, 9, 16])


def test_bytes_that_are_no_state_leave_it_fresh() -> None:
    starts_fresh(ContentWorld(subscriptions=12), Spec(5, 3))


def test_a_broker_knows_its_clients_again() -> None:
    """Subscriptions that came as commands are in the bytes too; restoring raised once."""
    trial = Trial(ContentWorld(subscriptions=12), Spec(5, 3, "legitimate"))
    broker = trial.simulator.nodes[2]
    assert isinstance(broker, ContentBroker)
    broker.subscribe(7, next(iter(broker.clients.values())).values())
    again = spawn_like(trial, broker)
    assert isinstance(again, ContentBroker)
    assert list(again.restore(broker.snapshot())) == []
    assert again.clients == broker.clients
    assert sorted(again.host.neighbours) == sorted(broker.links) == sorted(again.links)


class Pestered(Trial):
    """A trial whose judge is asked twice each time."""

    def judged(self) -> list:  # type: ignore[type-arg]
        self.violations()
        self.overlay.metrics(self.simulator.states())
        assert self.violations() == self.violations()
        return super().judged()


def outcome(kind: type[Trial], seed: int, start: str) -> Outcome:
    faults = parse_schedule("at 3 crash count=1") if start == "legitimate" else ()
    return kind(ContentWorld(subscriptions=12), Spec(5, seed, start, faults)).run()


@pytest.mark.parametrize("start", ["corrupt", "legitimate"])
def test_a_trial_ends_the_same_however_often_its_judge_is_asked(start: str) -> None:
    """The judge counted its calls: asked twice an interval it said that bounds were broken."""
    assert outcome(Trial, 1, start) == outcome(Pestered, 1, start)
