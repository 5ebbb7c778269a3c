"""The DHT rule by rule: ownership, lookups, fingers, leaving; and what it does with false input."""

from collections.abc import Iterable
from math import ceil, log2
from random import Random

import pytest

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId, stable_hash
from planaria.core.message import Message
from planaria.core.node import (
    Command,
    Effect,
    Leave,
    LinkDown,
    Publish,
    Send,
    Subscribe,
    Unsubscribe,
)
from planaria.protocols.dht.keys import KeySpace, Members
from planaria.protocols.dht.lookups import GAP_MAX, PENDING_MAX, Lookups, Pending, patience
from planaria.protocols.dht.member import (
    CALL_PERIOD,
    GROUP,
    DhtMember,
    Located,
    Unlocated,
    speaker,
)
from planaria.protocols.dht.messages import (
    HOPS_MAX,
    LEVELS_MAX,
    AskFinger,
    Departed,
    Find,
    Finger,
    Found,
)
from planaria.protocols.dht.node import DhtNode, DhtNodeState, Lookup
from planaria.protocols.dht.overlay import DhtOverlay, give_places, walk_lookups
from planaria.protocols.ring.messages import Check, Introduce, Remove
from planaria.protocols.ring.sorted_ring import SILENCE_MAX
from planaria.simulator.engine import Entry, Simulator

TINY = KeySpace(4, lambda host: host)  # hosts sit at the key that is their id


def network(ids: Iterable[NodeId], space: KeySpace = TINY) -> dict[NodeId, DhtNode]:
    """Hosts with these ids that are legitimate already."""
    nodes = {id: DhtNode(id, space) for id in ids}
    give_places([node.dht for node in nodes.values()], space)
    return nodes


def ask(nodes: dict[NodeId, DhtNode], start: NodeId, key: int) -> Located:
    """Look `key` up, carrying messages one by one."""
    pending: list[tuple[NodeId, Effect]] = [
        (start, it) for it in nodes[start].on_command(Lookup(key))
    ]
    while pending:
        at, effect = pending.pop(0)
        if isinstance(effect, Located):
            assert at == start
            return effect
        assert isinstance(effect, Send)
        target = effect.target
        pending += [(target, it) for it in nodes[target].on_message(effect.message, at)]
    raise AssertionError("the question was lost")


class Answers:
    """Collects what lookups found in a simulation."""

    kinds = ("effect",)

    def __init__(self) -> None:
        self.located: list[tuple[NodeId, Located]] = []
        self.unlocated: list[int] = []

    def record(self, tick: int, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
        if isinstance(effect, Located):
            self.located.append((node, effect))
        elif isinstance(effect, Unlocated):
            self.unlocated.append(effect.key)


@pytest.mark.parametrize("ids", [[3], [0, 15], [1, 5, 6, 9], [5, 9, 11, 13, 15], list(range(16))])
def test_every_key_has_one_owner_and_everybody_finds_it(ids: list[NodeId]) -> None:
    """Properties 1 to 3 of the tree paper, section 3, on every key from every host."""
    nodes = network(ids)
    for key in range(16):
        owner = min((id for id in ids if id >= key), default=min(ids))
        before = max((id for id in ids if id < owner), default=max(ids))
        for start in ids:
            found = ask(nodes, start, key)
            assert (found.owner, found.predecessor) == (owner, before)
            assert found.hops <= ceil(log2(len(ids))) + 1
    for id in ids:
        mine = nodes[id].dht.keyset
        assert mine is not None
        owned = [key for key in range(16) if TINY.holds(mine, key)]
        assert owned == [key for key in range(16) if ask(nodes, id, key).owner == id]


@pytest.mark.parametrize("n", [2, 16, 100, 1000])
def test_lookup_takes_at_most_log_n_hops_and_one(n: int) -> None:
    overlay = DhtOverlay()
    nodes = overlay.legitimate(n, Random(0))
    states = {node.id: node.state() for node in nodes}
    members = {id: it.dht for id, it in states.items() if isinstance(it, DhtNodeState)}
    assert max(walk_lookups(members, overlay.space)) <= ceil(log2(n)) + 1


def test_members_agree_with_the_network_on_keys_of_160_bits() -> None:
    overlay = DhtOverlay()
    nodes = {node.id: node for node in overlay.legitimate(50, Random(0))}
    members = Members(nodes)
    hosts = {id: node for id, node in nodes.items() if isinstance(node, DhtNode)}
    for number in range(60):
        key = stable_hash("any", number)
        found = ask(hosts, number % 50, key)
        assert found.owner == members.owner(key)
        assert found.predecessor == members.predecessor(found.owner)


def test_topic_moves_only_to_a_newcomer_or_from_a_leaver() -> None:
    topics = [f"topic/{number}" for number in range(2000)]
    before = {topic: Members(range(20)).responsible(topic) for topic in topics}
    after = {topic: Members(range(21)).responsible(topic) for topic in topics}
    moved = [topic for topic in topics if before[topic] != after[topic]]
    assert 0 < len(moved) < 600
    assert {after[topic] for topic in moved} == {20}


def test_nobody_is_responsible_among_no_members() -> None:
    with pytest.raises(UsageError, match="no members"):
        Members([])
    with pytest.raises(UsageError, match="1 to 160"):
        KeySpace(161)


def test_lookups_are_right_while_hosts_join_and_crash() -> None:
    """Every answer comes or is given up; after the churn all are right."""
    overlay, simulator, answers = DhtOverlay(), Simulator(4), Answers()
    for node in overlay.legitimate(30, simulator.rng):
        simulator.add(node)
    simulator.watch(answers)
    for number in range(40):
        if number % 10 == 0:
            simulator.remove(29 - number // 10)
            simulator.add(overlay.spawn(100 + number, simulator.rng))
        simulator.command(number % 20, Lookup(stable_hash("churn", number)))
        simulator.run_interval()
    for _ in range(60):
        simulator.run_interval()
    assert len(answers.located) + len(answers.unlocated) == 40
    assert len(answers.unlocated) <= 4
    before = len(answers.located)
    members = Members(simulator.nodes)
    for number in range(50):
        simulator.command(number % 20, Lookup(stable_hash("calm", number)))
    simulator.run_interval()
    for _ in range(10):
        simulator.run_interval()
    assert len(answers.located) == before + 50
    for _, it in answers.located[before:]:
        assert it.owner == members.owner(it.key)
        assert it.predecessor == members.predecessor(it.owner)


def test_lookup_is_repeated_then_given_up_in_own_timeouts() -> None:
    node = DhtNode(1, TINY)
    node.dht.ring.learn((TINY.label(9), 9))
    node.on_command(Lookup(7))
    asked, ended = [], []
    for time in range(1, 60):
        node.dht.ring.silence = {}  # the neighbour speaks, only the answer does not come
        for effect in node.on_timeout():
            if isinstance(effect, Send) and isinstance(effect.message, Find):
                asked.append(time)
            elif isinstance(effect, Unlocated):
                ended.append(time)
    assert asked == [2, 6, 14]
    assert ended == [30]  # one level of fingers: three hops of eight timeouts


def test_lookups_under_way_are_bounded_and_absurd_ones_end() -> None:
    lookups = Lookups(1 << 20)
    for key in range(2 * PENDING_MAX):
        lookups.begin(key)
    assert len(lookups.pending) == PENDING_MAX
    lookups.pending = {1: Pending(-7), 2: Pending(3, age=10**9), 3: Pending(3, -(10**9), 10**9)}
    for _ in range(30):
        lookups.age(4)
    assert lookups.pending == {}


@pytest.mark.parametrize("levels", [0, 1, 3, 10, LEVELS_MAX])
def test_a_question_outlives_the_slowest_way_that_the_ring_allows(levels: int) -> None:
    """Each of `levels` + 1 hops and the answer may take half of the silence that is allowed."""
    lookups = Lookups(16)
    lookups.begin(3)
    ended = 0
    while lookups.pending:
        lookups.age(patience(levels))
        ended += 1
    slowest = (levels + 2) * SILENCE_MAX // 2
    assert slowest <= ended <= slowest + GAP_MAX


def test_answer_that_cannot_be_true_is_no_answer() -> None:
    node = network([1, 9])[1]
    node.on_command(Lookup(7))
    nonce = node.dht.lookups.pending[7].nonce
    label = TINY.label(7)
    assert node.on_message(Found(label, nonce, 5, 1, 1)) == []  # 5 does not own 7
    assert node.on_message(Found(label, nonce + 1, 9, 1, 1)) == []  # an older question
    assert node.on_message(Found(label, nonce, 9, 1, 1)) == [Located(7, 9, 1, 1)]
    assert node.on_message(Found(label, nonce, 9, 1, 1)) == []


def test_question_that_wandered_too_far_or_has_no_key_is_dropped() -> None:
    node = network([1, 9])[1]
    assert node.on_message(Find(9, TINY.label(7), 0, HOPS_MAX)) == []
    assert node.on_message(Find(9, b"\xff\xff", 0, 0)) == []


def test_host_that_does_not_know_its_predecessor_owns_nothing() -> None:
    node = DhtNode(1, TINY)
    assert node.dht.keyset == (1, 1)
    node.dht.ring.learn((TINY.label(9), 9))
    assert node.dht.keyset is None


def test_labels_are_computed_and_never_believed() -> None:
    node = DhtNode(8, TINY)
    node.on_message(Check(GROUP, (TINY.label(15), 3), TINY.label(0), False), 3)
    node.on_message(Introduce(GROUP, (TINY.label(1), 12), False, 0), 12)
    assert node.dht.ring.neighbours() == [(TINY.label(3), 3), (TINY.label(12), 12)]
    node.dht.ring.left = (TINY.label(14), 3)
    node.on_message(Introduce(GROUP, (TINY.label(8), 8), False, 0), 8)
    assert node.dht.ring.left == (TINY.label(3), 3)


def test_fingers_come_from_the_level_below_and_end_before_coming_round() -> None:
    nodes = network(range(8), KeySpace(3, lambda host: host))
    member = nodes[0].dht
    assert member.fingers.known == {0: 1, 1: 2, 2: 4}
    member.fingers.known = {0: 1, 1: 5, 2: 7, 40: 3}
    assert member.on_message(Finger(1, 0, 2), 1) == [Send(2, AskFinger(0, 1))]
    assert member.on_message(Finger(2, 1, 4), 2) == [Send(4, AskFinger(0, 2))]
    member.on_message(Finger(4, 2, 0), 4)
    assert member.fingers.known == {0: 1, 1: 2, 2: 4}
    assert member.on_message(Finger(3, 1, 6), 3) == []  # not whom I asked
    assert member.fingers.known == {0: 1, 1: 2, 2: 4}


def test_absurd_levels_of_fingers_are_dropped_on_any_input() -> None:
    member = network([1, 9])[1].dht
    member.fingers.known = {-3: 9, LEVELS_MAX: 9, 5: 1, 2: 9}
    member.on_message(AskFinger(9, 0), 9)
    assert member.fingers.known == {0: 9}


def test_leaver_makes_its_neighbours_neighbours_and_says_so_to_whoever_asks() -> None:
    nodes = network([1, 5, 9])
    messages = {
        it.target: it.message for it in nodes[5].on_command(Leave()) if isinstance(it, Send)
    }
    assert sorted(messages) == [1, 9]
    for id, message in messages.items():
        nodes[id].on_message(message, 5)
    assert (nodes[1].dht.successor, nodes[9].dht.predecessor) == (9, 1)
    assert nodes[5].on_timeout() == []
    refused = nodes[5].on_message(Check(GROUP, (TINY.label(1), 1), TINY.label(5), False), 1)
    assert refused == [Send(1, Departed(5, (1, 9)))]
    for _ in range(20):
        nodes[5].on_timeout()
    assert nodes[5].on_message(AskFinger(1, 0), 1) == [Send(1, Departed(5, ()))]


def test_lost_connection_is_bridged_by_fingers_at_once() -> None:
    nodes = network(range(8), KeySpace(3, lambda host: host))
    nodes[0].on_command(LinkDown(1))
    assert nodes[0].dht.successor == 2
    assert 1 not in nodes[0].dht.fingers.ids()
    assert 1 in nodes[0].dht.ring.lost


def test_lonely_host_calls_a_contact_each_time_and_others_now_and_then() -> None:
    node = DhtNode(7, TINY, (7, 0, 1))
    assert [it.target for _ in range(4) for it in node.on_timeout() if isinstance(it, Send)] == [
        1,
        0,
        1,
        0,
    ]
    member = DhtMember(7, TINY, (0, 1))
    member.load(network([1, 7])[7].dht.state())
    called = []
    for time in range(1, 4 * CALL_PERIOD + 1):
        called += [
            time
            for it in member.on_timeout()
            if isinstance(it, Send) and isinstance(it.message, Introduce) and it.target in (0, 1)
        ]
        member.ring.silence = {}
    assert called[:2] == [CALL_PERIOD, 2 * CALL_PERIOD]


def test_state_survives_a_restart() -> None:
    node = network([1, 5, 9])[5]
    node.on_command(Lookup(12))
    other = DhtNode(5, TINY)
    other.restore(node.snapshot())
    assert other.snapshot() == node.snapshot()
    assert other.on_timeout() == node.on_timeout()


@pytest.mark.parametrize(
    "message",
    [
        Check(GROUP, (TINY.label(7), 7), TINY.label(1), False),
        Introduce(GROUP, (TINY.label(7), 7), False, 0),
        Remove(GROUP, 9),
        AskFinger(9, 0),
        Finger(9, 0, 5),
        Departed(9, (5,)),
    ],
)
@pytest.mark.parametrize("sender", [None, 3])
def test_nobody_speaks_for_another_host(message: Message, sender: NodeId | None) -> None:
    """What a link vouches for counts, not what a message says of itself."""
    node = network([1, 9, 12])[1]
    node.dht.repair()
    before = node.snapshot()
    assert list(node.on_message(message, sender)) == []
    assert node.snapshot() == before
    assert node.on_message(message, speaker(message)) or node.snapshot() != before


@pytest.mark.parametrize("command", [Subscribe("a"), Unsubscribe("a"), Publish("a", b"x")])
def test_dht_refuses_publications_in_one_line(command: Command) -> None:
    with pytest.raises(UsageError, match=r"^dht has lookups, no publications; use ring, .*$"):
        DhtNode(1, TINY).on_command(command)
