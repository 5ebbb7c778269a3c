"""At most once stands on two periods: how long ids are remembered, how long copies are replayed."""

from random import Random

import pytest

from planaria.core.errors import CapacityExceeded
from planaria.core.node import Deliver, Send, Subscribe
from planaria.protocols.routing import recent
from planaria.protocols.routing.messages import Notify
from planaria.protocols.routing.node import Broker
from planaria.protocols.routing.notifications import Notification
from planaria.protocols.routing.recent import Memory, Recent
from planaria.protocols.routing.timing import timing

PERIOD = 10
TIMING = timing(3, (0, 1.5), 2)


def notify(age: int = 0, number: int = 1) -> Notify:
    return Notify(1, number.to_bytes(16, "big"), {"a": 1}, b"p", age)


def kept(age: int = 0) -> Notification:
    return Notification(notify().id, {"a": 1}, b"p", age)


@pytest.mark.parametrize("moment", range(PERIOD))
def test_an_id_is_remembered_for_three_periods_whenever_it_came(moment: int) -> None:
    """Two for which it may be replayed, and less than one on its way (the sum of both)."""
    memory = Memory(PERIOD)
    memory.age = moment
    memory.remember(kept(), [])
    for _ in range(3 * PERIOD):
        memory.tick()
        assert memory.knows(notify().id)
    for _ in range(PERIOD):
        memory.tick()
    assert not memory.knows(notify().id)


def test_a_notification_is_accepted_and_replayed_for_two_periods_of_its_life() -> None:
    memory = Memory(PERIOD)
    ages = [age for age in range(-3, 5 * PERIOD) if not memory.too_old(kept(age))]
    assert ages == list(range(2 * PERIOD))
    memory.remember(kept(PERIOD), [])
    replayed = 0
    while [*memory.replayed(2)]:
        memory.tick()
        replayed += 1
    assert replayed == PERIOD


def served() -> Broker:
    broker = Broker(0, TIMING, Random(1))
    broker.set_links([1, 2], 1)
    broker.on_command(Subscribe(where="a = 1"))
    return broker


@pytest.mark.parametrize("age", [-1, -(1 << 62), 2 * TIMING.memory])
def test_a_notification_of_an_age_that_cannot_be_is_delivered_to_nobody(age: int) -> None:
    """With a negative age it was replayed, and delivered, about twenty times."""
    broker = served()
    assert broker.on_message(notify(age)) == []
    broker.memory.recent[0] = {notify().id: Recent(kept(age), [])}
    assert [it for it in broker.link_up(3) if _is_notify(it)] == []


@pytest.mark.parametrize("arrived", [-(1 << 70), -1, 0, TIMING.memory - 1, TIMING.memory, 1 << 70])
@pytest.mark.parametrize("generation", [0, 1])
def test_a_forged_memory_is_replayed_for_two_periods_at_most(arrived: int, generation: int) -> None:
    """The bound for what nobody published: max(delta, 2 memory), then the way to the last."""
    broker = served()
    broker.memory.recent[generation] = {notify().id: Recent(kept(), [], arrived)}
    broker.memory.age = 3
    if not 0 <= arrived < TIMING.memory:  # then as old as it can be
        assert [it.age for it in broker.memory.replayed(9)] == [3 + generation * TIMING.memory]
    lived = 0
    while [*broker.memory.replayed(9)]:
        broker.on_timeout()
        lived += 1
    assert lived <= 2 * TIMING.memory


@pytest.mark.parametrize("sizes", [(0, 0), (1, 1), (9, 5)])
def test_generations_that_a_fault_added_or_took_are_repaired(sizes: tuple[int, int]) -> None:
    broker = served()
    broker.memory.seen = [{} for _ in range(sizes[0])]
    broker.memory.recent = [{} for _ in range(sizes[1])]
    assert any(isinstance(it, Deliver) for it in broker.on_message(notify()))
    assert (len(broker.memory.seen), len(broker.memory.recent)) == (4, 2)


def test_more_than_can_be_remembered_is_refused_and_never_delivered_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A burst above the table's size used to push ids out: what was replayed came again."""
    monkeypatch.setattr(recent, "SEEN_MAX", 5)
    broker, given = served(), []
    for number in [*range(20), *range(20)]:
        effects = broker.on_message(notify(0, number))
        given += [it.publications[0].id for it in effects if isinstance(it, Deliver)]
    assert len(given) == len(set(given)) == 5
    with pytest.raises(CapacityExceeded, match="more slowly"):
        broker.publish({"a": 1}, b"")
    for _ in range(TIMING.memory):
        broker.on_timeout()
    assert broker.publish({"a": 1}, b"")


def _is_notify(effect: object) -> bool:
    return isinstance(effect, Send) and isinstance(effect.message, Notify)
