"""The book of `planaria sim content` keeps clients' deliveries to Definition 1."""

import pytest

from planaria.core.book import MISSED, Book
from planaria.core.node import Deliver, Publish
from planaria.filters.matching import MatchingIndex
from planaria.protocols.routing.messages import Notify
from planaria.protocols.routing.node import Broker
from planaria.protocols.routing.notifications import Notification
from planaria.protocols.routing.recent import Recent
from planaria.protocols.routing.workload import TOPIC, UNIVERSE
from planaria.simulator.delays import INTERVAL
from planaria.simulator.trial import Spec, Trial, must_heal
from planaria.simulator.worlds.content import ContentWorld


def running() -> tuple[Book, Trial]:
    trial = Trial(ContentWorld(subscriptions=12), Spec(3, 1, start="legitimate"))
    for _ in range(12):
        trial.applications.run(INTERVAL)
        assert trial.judged() == []
    assert trial.book is not None
    return trial.book, trial


def test_clients_publish_all_the_time_and_the_figures_of_a_run_say_so() -> None:
    outcome = Trial(ContentWorld(subscriptions=12), Spec(4, 1, start="legitimate")).run()
    figures = outcome.metrics
    assert figures["published"] > 20
    assert figures["due"] == figures["once"] > 10
    assert figures["late"] == figures["missed"] == figures["twice"] == figures["unwanted"] == 0


@pytest.mark.parametrize("kind", ["twice", "unwanted", "never published"])
def test_a_wrong_delivery_in_a_legitimate_network_is_a_violation_once(kind: str) -> None:
    book, trial = running()
    trial.applications.run(INTERVAL)
    due = next(it for it in book.due(trial.time) if book.when(it) is not None)
    node, client, _ = due.client
    id = bytes(16) if kind == "never published" else due.publication.id
    if kind == "unwanted":
        client = 99
    book.effect(trial.time, node, Deliver.one("t", id, b"", client=client))
    (found,) = trial.violations()
    assert (found.invariant, found.node, kind in found.detail) == ("delivery", node, True)
    assert trial.violations() == [found]
    assert trial.judged() == [found]
    assert trial.judged() == []


def test_what_was_wrong_while_the_network_was_is_forgiven() -> None:
    book, trial = running()
    book.effect(trial.time, 1, Deliver.one("t", bytes(16), b"", client=0))
    trial.simulator.nodes[1].table.entries.clear()  # type: ignore[attr-defined]
    assert trial.judged() != []
    for _ in range(40):
        trial.applications.run(INTERVAL)
        last = trial.judged()
    assert last == []


def publish_in_vain(trial: Trial) -> None:
    """For a moment a broker's index is empty: what its own client wants does not find it."""
    broker = trial.simulator.nodes[1]
    assert isinstance(broker, Broker)
    attributes = next(it for it in UNIVERSE if min(broker.table.destinations(it), default=0) < 0)
    broker.table._index = MatchingIndex()
    trial.judged()
    trial.applications.run(INTERVAL // 2)
    trial.simulator.command(1, Publish(TOPIC, b"", dict(attributes)))
    broker.table.reindex()
    trial.applications.run(INTERVAL // 2)


def test_what_was_published_before_the_network_was_seen_to_be_legitimate_is_not_owed() -> None:
    _, trial = running()
    publish_in_vain(trial)
    assert [it.invariant for it in trial.found] == ["index"]
    for _ in range(40):
        assert trial.judged() == []
        trial.applications.run(INTERVAL)


def test_what_is_published_from_then_on_is_owed(monkeypatch: pytest.MonkeyPatch) -> None:
    _, trial = running()
    monkeypatch.setattr(trial, "judged", list)  # nobody sees it while the index is empty
    publish_in_vain(trial)
    monkeypatch.undo()
    last: list[str] = []
    for _ in range(40):
        trial.applications.run(INTERVAL)
        last = [it.invariant for it in trial.judged()]
    assert set(last) == {MISSED}


def test_seed_of_a_hunt_in_which_something_was_published_just_before_it_healed() -> None:
    must_heal(ContentWorld(), Spec(1, 12004, scheduler="constant"))


def test_what_nobody_published_is_legitimate_neither_in_memory_nor_in_flight() -> None:
    _, trial = running()
    forged = Notification(bytes(16), {"kind": "fire", "level": 3, "urgent": True})
    memory = trial.simulator.nodes[1].memory  # type: ignore[attr-defined]
    memory.recent[0][forged.id] = Recent(forged, [])
    assert [(it.invariant, it.node) for it in trial.violations()] == [("memory", 1)]
    del memory.recent[0][forged.id]
    trial.simulator.inject(2, Notify(1, forged.id, forged.attributes))
    assert [(it.invariant, it.node) for it in trial.violations()] == [("channel", 2)]
