"""Who is owed what among nodes that move, and whose clock says when."""

from planaria.core.node import Deliver, Leave, Publish, Published, Subscribe
from planaria.simulator.schedule import parse_schedule
from planaria.simulator.trial import Spec, Trial
from planaria.simulator.worlds.mobile import MovingOverlay
from planaria.simulator.worlds.mobile_book import ReachBook

T = "t"


class Kept:
    """A book of three nodes, and the links between them."""

    def __init__(self) -> None:
        self.links: dict[int, list[int]] = {0: [1], 1: [0], 2: []}
        self.book = ReachBook(lambda _: self.links)
        for id in self.links:
            self.book.start(0, id)
            self.book.command(0, id, Subscribe(T))

    def publish(self, time: float, node: int, id: bytes) -> None:
        self.book.command(time, node, Publish(T, id))
        self.book.effect(time, node, Published(T, id))
        self.book.effect(time, node, Deliver.one(T, id, id))

    def missed(self) -> list[tuple[bytes, int]]:
        return [(it.publication.id, it.client[0]) for it in self.book.missed(9)]


def test_owed_is_what_somebody_has_whom_one_can_reach() -> None:
    kept = Kept()
    kept.publish(1, 0, b"m")
    assert kept.missed() == [(b"m", 1)]
    kept.book.effect(2, 1, Deliver.one(T, b"m", b"m"))
    assert kept.missed() == []
    kept.links = {0: [], 1: [2], 2: [1]}  # the publisher is gone, a relay meets the third
    assert kept.missed() == [(b"m", 2)]
    kept.book.effect(3.2, 2, Deliver.one(T, b"m", b"m"))
    assert (kept.missed(), kept.book.rounds(), kept.book.given()) == ([], 3, 3)


def test_nobody_is_owed_what_was_before_it_came_or_after_it_left() -> None:
    kept = Kept()
    kept.links = {0: [1, 2], 1: [0], 2: [0]}
    kept.publish(1, 0, b"before")
    kept.book.stop(2, 1)
    kept.book.forget(2, 1)
    kept.book.start(2, 1)
    kept.book.command(2, 1, Subscribe(T))
    kept.book.command(2, 2, Leave())
    assert kept.missed() == []
    kept.publish(3, 0, b"after")
    assert kept.missed() == [(b"after", 1)]


def test_book_is_judged_however_broken_the_network_was_when_something_was_published() -> None:
    kept = Kept()
    kept.publish(1, 0, b"m")
    kept.book.illegitimate(5)
    assert kept.missed() == [(b"m", 1)]
    assert [it.invariant for it in kept.book.violations(9)] == ["missed"]


def test_publication_that_a_fault_hides_from_somebody_is_missed_in_a_trial() -> None:
    """The one that forgets what it was handed lacks it for ever: nobody sends it again."""
    overlay = MovingOverlay("path:3")
    spec = Spec(3, 1, "legitimate", parse_schedule("at 1 publish count=1"), intervals=30)
    trial = Trial(overlay, spec)
    trial.suffer()
    ((id, publication),) = overlay.world.book.published.items()
    others = [node for node in range(3) if node != publication.node]
    for node in others:
        overlay.world.hosts[node].carried.layers["layer/0"].news.seen[id] = 0
    outcome = trial.run()
    assert outcome.failure is not None
    assert outcome.failure[0] == "convergence"
    assert outcome.metrics["missed"] == len(others)


def test_time_is_the_drivers_however_wrong_the_clocks_are() -> None:
    """All clocks are skewed by a million seconds: nodes move on as if they were not."""
    faults = "at 0 for 30 skew share=1 seconds=1000000\nat 3 publish count=1"
    found = []
    for schedule in (faults, "at 3 publish count=1"):
        overlay = MovingOverlay("waypoint:8:6", moving=12)
        spec = Spec(8, 4, "fresh", parse_schedule(schedule))
        trial = Trial(overlay, spec)
        for _ in range(40):
            trial.simulator.run_interval()
            while (due := trial.nemesis.next_tick) is not None and due <= trial.simulator.tick:
                trial.nemesis.advance()
        assert overlay.world.now == 39
        found.append([it.places for it in overlay.world.measures.pictures])
    assert found[0] == found[1]
