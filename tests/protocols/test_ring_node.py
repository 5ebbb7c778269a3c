"""One node is peer, supervisor and directory: what each part gets, and subscriptions by pattern."""

from random import Random

import pytest

from planaria.core.errors import CapacityExceeded, UsageError
from planaria.core.node import (
    Command,
    Joined,
    Leave,
    LinkDown,
    Notice,
    Publish,
    Send,
    Subscribe,
    Supervisors,
    Unsubscribe,
)
from planaria.protocols.skipring import peer as peer_module
from planaria.protocols.skipring.directory import PATTERNS_MAX
from planaria.protocols.skipring.directory_messages import AskTopics, Topics
from planaria.protocols.skipring.legitimacy import topic_violations
from planaria.protocols.skipring.messages import GetConfiguration, SetData
from planaria.protocols.skipring.node import RingNode, RingNodeState
from planaria.protocols.skipring.placement import preference
from planaria.simulator.engine import Simulator
from toys import Log

CHIEF, OTHER = 100, 101
SECRET = b"secret"


class Lab:
    """Two supervisors and some nodes that know of them, and what their applications are told."""

    def __init__(self, n: int = 4, seed: int = 1) -> None:
        self.simulator = Simulator(seed)
        self.log = Log()
        self.simulator.watch(self.log)
        for id in (*range(n), CHIEF, OTHER):
            supervise = id >= CHIEF
            self.simulator.add(
                RingNode(id, (CHIEF, OTHER), self.simulator.rng, supervise=supervise, secret=SECRET)
            )

    def node(self, id: int) -> RingNode:
        node = self.simulator.nodes[id]
        assert isinstance(node, RingNode)
        return node

    def run(self, intervals: int = 12) -> None:
        for _ in range(intervals):
            self.simulator.run_interval()

    def ask(self, id: int, *commands: Command) -> None:
        for command in commands:
            self.simulator.command(id, command)

    def topics(self, id: int) -> list[str]:
        topics = self.node(id).peer.topics
        return sorted(it for it, one in topics.items() if not one.subscriber.leaving)

    def joined(self, id: int) -> list[str]:
        return [it.pattern for at, it in effects(self.log) if at == id and isinstance(it, Joined)]

    def legitimate(self, topic: str) -> bool:
        states, channel = self.simulator.states(), self.simulator.channel()
        return not topic_violations(topic, (CHIEF, OTHER), states, channel, SECRET)


def effects(log: Log) -> list[tuple[int, object]]:
    return [(row[2], row[4]) for row in log.rows if row[4] is not None]


def test_a_pattern_joins_what_there_is_and_what_comes_later_and_says_so_once() -> None:
    lab = Lab()
    lab.ask(0, Subscribe("a/x"), Subscribe("b"))
    lab.run()
    lab.ask(1, Subscribe("a/#"))
    lab.run()
    assert lab.topics(1) == ["a/x"]
    assert lab.joined(1) == ["a/x", "a/#"]
    lab.ask(0, Subscribe("a"), Subscribe("a/y/z"))
    lab.run()
    assert lab.topics(1) == ["a", "a/x", "a/y/z"]
    assert lab.joined(1).count("a/#") == 1
    assert all(map(lab.legitimate, ["a", "a/x", "a/y/z", "b"]))


def test_a_pattern_that_matches_nothing_yet_is_joined() -> None:
    lab = Lab()
    lab.run()
    lab.ask(1, Subscribe("a/#"))
    lab.run()
    assert lab.joined(1) == ["a/#"]


def test_what_matches_is_joined_before_the_pattern_is_said_to_be() -> None:
    lab = Lab(2)
    lab.ask(0, *(Subscribe(f"a/{number}") for number in range(9)))
    lab.run()
    lab.ask(1, Subscribe("+/+"))
    lab.run(30)
    said = lab.joined(1)
    assert sorted(said[:-1]) == [f"a/{number}" for number in range(9)]
    assert said[-1] == "+/+"


def test_a_pattern_that_ends_leaves_what_only_it_wanted() -> None:
    lab = Lab()
    lab.ask(0, Subscribe("a/x"), Subscribe("a/y"), Subscribe("a/z/1"))
    lab.ask(1, Subscribe("a/y"), Subscribe("a/+"), Subscribe("a/#"))
    lab.run()
    lab.ask(1, Unsubscribe("a/#"))
    lab.run()
    assert lab.topics(1) == ["a/x", "a/y"]
    lab.ask(1, Unsubscribe("a/+"))
    lab.run()
    assert lab.topics(1) == ["a/y"]
    assert all(map(lab.legitimate, ["a/x", "a/y", "a/z/1"]))


def test_a_topic_left_by_name_stays_while_a_pattern_wants_it() -> None:
    lab = Lab()
    lab.ask(1, Subscribe("a/x"), Subscribe("a/#"))
    lab.run()
    lab.ask(1, Unsubscribe("a/x"))
    lab.run()
    assert lab.topics(1) == ["a/x"]
    lab.ask(1, Subscribe("a/x"), Unsubscribe("a/#"))
    lab.run()
    assert lab.topics(1) == ["a/x"]
    lab.ask(1, Unsubscribe("a/x"))
    lab.run()
    assert lab.topics(1) == []


def test_who_leaves_joins_nothing_any_more() -> None:
    lab = Lab()
    lab.ask(0, Subscribe("a/x"))
    lab.ask(1, Subscribe("a/#"), Subscribe("b"))
    lab.run()
    lab.ask(1, Leave())
    lab.run(20)
    assert lab.node(1).peer.topics == {}
    assert lab.legitimate("a/x")


def test_a_node_that_supervises_takes_part_in_rings_as_well() -> None:
    lab = Lab()
    for id in (0, 1, CHIEF, OTHER):
        lab.ask(id, Subscribe("a"))
    lab.run(20)
    assert lab.legitimate("a")
    assert lab.topics(CHIEF) == ["a"]


def test_peer_and_supervisor_of_a_node_have_the_same_longest_pace() -> None:
    node = RingNode(1, (), Random(1), supervise=True, pace_max=4)
    node.on_command(Subscribe("a"))
    assert node.supervisor is not None
    served = node.supervisor.serve("a")
    assert served is not None
    assert node.peer.topics["a"].subscriber.pace.longest == served.pace.longest == 4


def test_topics_go_on_at_the_other_supervisor_and_come_back_to_a_wiped_one() -> None:
    lab = Lab(6)
    names = [f"t/{number}" for number in range(99)]
    first = [preference(name, (CHIEF, OTHER), SECRET)[0] for name in names]
    topics = [names[first.index(CHIEF)], names[first.index(OTHER)]]
    for id in range(6):
        lab.ask(id, *map(Subscribe, topics))
    lab.run(20)
    lab.simulator.remove(CHIEF)
    lab.run(60)
    assert all(map(lab.legitimate, topics))
    rng = lab.simulator.rng
    lab.simulator.add(RingNode(CHIEF, (OTHER,), rng, supervise=True, secret=SECRET))
    lab.run(60)
    assert all(map(lab.legitimate, topics))
    served = [lab.node(id).supervisor.topics for id in (CHIEF, OTHER)]  # type: ignore[union-attr]
    assert [list(its) for its in served] == [[topics[0]], [topics[1]]]


def test_a_stored_node_goes_on_with_its_patterns_in_new_incarnations() -> None:
    lab = Lab()
    lab.ask(0, Subscribe("a/x"))
    lab.ask(1, Subscribe("a/#"), Subscribe("b"))
    lab.run()
    lab.ask(1, Publish("b", b"1"))
    old = lab.node(1)
    publisher = old.peer.topics["b"].history.publisher
    before = publisher.state()
    fresh = RingNode(1, (CHIEF, OTHER), lab.simulator.rng, supervise=False, secret=SECRET)
    assert fresh.restore(old.snapshot()) == ()
    assert sorted(fresh.peer.topics) == ["a/x", "b"]
    assert fresh.peer.topics["b"].history.publisher.state() != before
    lab.simulator.nodes[1] = fresh
    lab.ask(0, Subscribe("a/y"))
    lab.run()
    assert lab.topics(1) == ["a/x", "a/y", "b"]
    lab.ask(1, Unsubscribe("a/#"))
    lab.run()
    assert lab.topics(1) == ["b"]


def test_each_part_gets_its_messages_and_nobody_speaks_in_anothers_name() -> None:
    chief = RingNode(CHIEF, (), Random(1), supervise=True)
    request = GetConfiguration("a", 5, None, (None, None), [])
    assert chief.on_message(request, 6) == ()
    (answer,) = chief.on_message(request, 5)
    assert isinstance(answer, Send)
    assert isinstance(answer.message, SetData)
    question = AskTopics(5, "#", "", 1)
    assert chief.on_message(question, None) == chief.on_message(question, 6) == ()
    assert chief.on_message(question, 5) == [Send(5, Topics(CHIEF, 1, ["a"], None))]
    plain = RingNode(6, (CHIEF,), Random(1), supervise=False)
    assert plain.on_message(request, 5) == ()
    assert list(plain.on_message(question, 5)) == []


def test_who_supervises_is_among_the_supervisors_whatever_it_is_told() -> None:
    chief = RingNode(CHIEF, (), Random(1), supervise=True)
    assert chief.supervisors == (CHIEF,)
    chief.on_command(Supervisors((OTHER, -1, 1 << 70, OTHER)))
    assert chief.supervisors == chief.supervisor.supervisors == (OTHER, CHIEF)  # type: ignore[union-attr]
    assert chief.directory.supervisors == (OTHER, CHIEF)
    plain = RingNode(6, (), Random(1), supervise=False)
    plain.on_command(Supervisors((OTHER,)))
    assert plain.supervisors == (OTHER,)


def test_a_lost_supervisor_is_a_hint_to_all_parts() -> None:
    chief = RingNode(CHIEF, (OTHER,), Random(1), supervise=True)
    chief.on_message(GetConfiguration("a", 5, None, (None, None), []), 5)
    chief.directory.want("#")
    chief.on_timeout()
    chief.on_command(LinkDown(OTHER))
    assert chief.directory.walks[OTHER].silent == 1
    chief.on_command(LinkDown(5))
    assert 5 in chief.supervisor.topics["a"].suspects  # type: ignore[union-attr]


def test_what_a_ring_cannot_do_is_refused() -> None:
    node = RingNode(1, (CHIEF,), Random(1), supervise=False)
    for command in (Subscribe("a/#", where="x > 1"), Subscribe("a/#", client=1)):
        with pytest.raises(UsageError, match="neither conditions"):
            node.on_command(command)
    with pytest.raises(UsageError, match="conditions"):
        node.on_command(Subscribe("a", where="x > 1"))
    with pytest.raises(UsageError, match="whole level"):
        node.on_command(Subscribe("a/b#"))
    for number in range(PATTERNS_MAX):
        node.on_command(Subscribe(f"{number}/#"))
    with pytest.raises(CapacityExceeded, match="leave one first"):
        node.on_command(Subscribe("more/#"))


def test_more_topics_than_a_node_takes_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_module, "TOPICS_MAX", 3)
    lab = Lab()
    lab.ask(0, *(Subscribe(f"a/{number}") for number in range(3)))
    lab.ask(2, Subscribe("a/3"))
    lab.ask(1, Subscribe("a/#"))
    lab.run(12)
    notices = [it for at, it in effects(lab.log) if at == 1 and isinstance(it, Notice)]
    assert len(lab.topics(1)) == 3
    assert [notice.kind for notice in notices] == ["full"]


def test_a_judge_takes_a_node_apart() -> None:
    lab = Lab()
    lab.ask(0, Subscribe("a"))
    lab.run()
    states = lab.simulator.states()
    assert all(isinstance(state, RingNodeState) for state in states.values())
    assert lab.legitimate("a")
    state = states[0]
    assert isinstance(state, RingNodeState)
    state.peer.topics["a"].subscriber.label = 7
    assert topic_violations("a", (CHIEF, OTHER), states, [], SECRET)
