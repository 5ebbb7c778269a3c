"""When a supervisor knows how many members a topic has: when all of them had the time to ask it."""

import pytest

from planaria.core.ids import NodeId
from planaria.core.node import Restarted
from planaria.protocols.skipring.messages import GetConfiguration, ProbeReply
from planaria.protocols.skipring.placement import preference
from planaria.protocols.skipring.supervisor import Supervisor
from planaria.protocols.skipring.topic_supervisor import SETTLE_TIMEOUTS, TopicSupervisor
from ring_lab import hear

NO_SUMS = (None, None)
CLOSE, FAR = preference("news", (1000, 1001))


def ask(id: NodeId, label: int | None = None, topic: str = "news") -> GetConfiguration:
    return GetConfiguration(topic, id, label, NO_SUMS, [])


def pass_time(supervisor: Supervisor, timeouts: int) -> None:
    for _ in range(timeouts):
        supervisor.on_timeout()


def test_new_topic_is_settled_at_once_and_one_of_former_members_when_all_had_time() -> None:
    close = Supervisor(CLOSE, (CLOSE, FAR))
    assert close.settled("news")
    hear(close, ask(1))
    assert close.settled("news"), "who joins has no label"
    hear(close, ask(2, label=1))
    assert not close.settled("news")
    pass_time(close, SETTLE_TIMEOUTS - 1)
    assert not close.settled("news")
    hear(close, ask(3, label=2))
    pass_time(close, SETTLE_TIMEOUTS - 1)
    assert not close.settled("news"), "the time runs from the last of them"
    pass_time(close, 1)
    assert close.settled("news")
    hear(close, ask(3, label=7))
    assert close.settled("news"), "it was recorded"


def test_who_serves_instead_of_another_is_settled_when_that_one_was_silent_for_long() -> None:
    far = Supervisor(FAR, (CLOSE, FAR))
    assert not far.settled("news")
    hear(far, ask(1))
    pass_time(far, SETTLE_TIMEOUTS - 1)
    assert not far.settled("news")
    pass_time(far, 1)
    assert far.settled("news")
    names = (f"new/{number}" for number in range(99))
    new = next(it for it in names if preference(it, (CLOSE, FAR))[0] == CLOSE)
    assert far.settled(new), "nobody can have been told of it by one that is long gone"
    hear(far, ProbeReply("news", CLOSE))
    assert not far.settled("news"), "the other one serves it"
    assert not far.settled(new)


def test_after_a_restart_no_topic_is_settled_for_a_while() -> None:
    close = Supervisor(CLOSE, (CLOSE, FAR))
    hear(close, ask(1))
    close.on_command(Restarted())
    assert not close.settled("news")
    assert not close.settled("other")
    pass_time(close, SETTLE_TIMEOUTS - 1)
    hear(close, ask(5, topic="other"))
    assert not close.settled("other")
    pass_time(close, 1)
    assert close.settled("news")
    assert close.settled("other")


def test_repaired_database_is_not_settled() -> None:
    served = TopicSupervisor("news", CLOSE)
    served.database._entries = [1, None, 2, 2]
    served.on_timeout()
    assert served.unsettled == SETTLE_TIMEOUTS


@pytest.mark.parametrize("value", [-1, -(10**18), 10**18])
def test_whatever_memory_holds_a_topic_is_settled_in_the_end(value: int) -> None:
    far = Supervisor(FAR, (CLOSE, FAR))
    hear(far, ask(1))
    far.unsettled = far.topics["news"].unsettled = value
    far.absent = {CLOSE: value, 10**18: value}
    pass_time(far, SETTLE_TIMEOUTS + 1)
    assert far.settled("news")
    assert far.absent.keys() == {CLOSE}
