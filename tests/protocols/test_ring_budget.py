"""Many topics at one supervisor process: what it sends is bounded for all of them together."""

from collections.abc import Sequence

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effect, Send
from planaria.protocols.skipring.budget import TOPIC_SHARE
from planaria.protocols.skipring.messages import GetConfiguration, SetData
from planaria.protocols.skipring.supervisor import Supervisor
from planaria.protocols.skipring.topic_supervisor import RATE_MIN
from ring_lab import hear

ID = 1000
NO_SUMS = (None, None)


def sent(effects: Sequence[Effect]) -> list[tuple[NodeId, Message]]:
    return [(effect.target, effect.message) for effect in effects if isinstance(effect, Send)]


def flood(supervisor: Supervisor, topics: dict[str, int]) -> int:
    """Everybody joins at once; returns how many configurations that causes at once."""
    return sum(
        len(hear(supervisor, GetConfiguration(topic, id, None, NO_SUMS, [])))
        for topic, n in topics.items()
        for id in range(n)
    )


def test_output_is_bounded_for_the_process_not_for_each_topic() -> None:
    """60 topics of 20 that all join at once sent 2,456 messages in one interval."""
    supervisor = Supervisor(ID, (ID,))
    topics = {f"topic/{number}": 20 for number in range(60)}
    supervisor.on_timeout()
    bound = max(RATE_MIN, 1200 // 11, TOPIC_SHARE * 60)
    assert flood(supervisor, topics) <= bound
    configurations = dict[str, set[NodeId]]()
    for _ in range(40):
        effects = supervisor.on_timeout()
        assert len(effects) <= bound
        for id, message in sent(effects):
            assert isinstance(message, SetData)
            configurations.setdefault(message.topic, set()).add(id)
    assert all(configurations[topic] == set(range(20)) for topic in topics)


def test_topic_of_many_leaves_the_others_their_share() -> None:
    supervisor = Supervisor(ID, (ID,))
    supervisor.on_timeout()
    flood(supervisor, {"large": 3000})
    small = {f"small/{number}": 3 for number in range(5)}
    flood(supervisor, small)
    served = {topic: set[NodeId]() for topic in (*small, "large")}
    for _ in range(2):
        for id, message in sent(supervisor.on_timeout()):
            assert isinstance(message, SetData)
            served[message.topic].add(id)
    assert all(served[topic] == {0, 1, 2} for topic in small)
    assert len(served["large"]) > 200, "what the small ones leave over is not used"


def test_every_one_of_many_topics_has_its_share() -> None:
    """500 topics of 4 members, all to be configured: n / log n would be 181 for all of them."""
    supervisor = Supervisor(ID, (ID,))
    for number in range(500):
        served = supervisor.serve(f"topic/{number}")
        assert served is not None
        served.database.entries = [1, 2, 3, 4]
        served.outbox = dict.fromkeys((1, 2, 3, 4), False)
    effects = sent(supervisor.on_timeout())
    assert len(effects) == TOPIC_SHARE * 500
    topics = [message.topic for _, message in effects if isinstance(message, SetData)]
    assert {topics.count(topic) for topic in supervisor.topics} == {TOPIC_SHARE}


def test_the_queues_of_many_small_topics_end() -> None:
    """300 topics of 3 members, all of them to be configured.

    Each topic with a queue is doubtful and queues one more in every interval: with 90 in an
    interval for all of them the queues never ended.
    """
    supervisor = Supervisor(ID, (ID,), pace_max=16)
    for number in range(300):
        served = supervisor.serve(f"topic/{number}")
        assert served is not None
        served.database.entries = [1, 2, 3]
        served.outbox = dict.fromkeys((1, 2, 3), False)
    for _ in range(60):
        supervisor.on_timeout()
    assert not [topic for topic, served in supervisor.topics.items() if served.queued]
    assert sum(len(supervisor.on_timeout()) for _ in range(16)) <= 2 * 300  # and they are calm
