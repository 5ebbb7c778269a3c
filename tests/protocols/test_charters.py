"""Charters: all nodes settle on the highest that somebody entitled signed, from any state."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Clock, Deliver, Persist, Send, Subscribe
from planaria.core.state import decode_state, encode_state
from planaria.protocols.publications.retention import Retention
from planaria.protocols.skipring.charter import (
    NO_RANK,
    SEALED_BYTES_MAX,
    STEP_MAX,
    VERSION_MAX,
    VOID,
    Charter,
    Judged,
    Sealed,
    decode_sealed,
    encode_charter,
    next_charter,
    rank_of,
    voided_since,
    voiding,
)
from planaria.protocols.skipring.charter_messages import AskCharters, CharterHints, CharterNews
from planaria.protocols.skipring.charters import KEPT_MAX, Charters, ChartersState
from planaria.protocols.skipring.peer import Peer
from planaria.records.record import Draft, seal

ADMIN, OTHER = b"\x01" * 16, b"\x02" * 16


def charter(version: int, topic: str = "news", time: int = 100, count: int = 7) -> Charter:
    return Charter(topic, version, version - 1, time, retention=Retention(count=count))


def sealed(one: Charter, admin: bytes = ADMIN) -> bytes:
    """As an admin would seal it, for a judge that knows admins by their first byte."""
    return msgpack.encode(Sealed(encode_charter(one), admin, b"good"))


def judge(data: bytes) -> Judged | None:
    found = decode_sealed(data)
    if found is None or found[0].signature != b"good":
        return None
    return Judged(found[1], found[0].signer)


def make(id: NodeId, wanted: Sequence[str] = (), *, everything: bool = False) -> Charters:
    peer = Peer(id, (0, 1), random.Random(id))
    for topic in wanted:
        peer.on_command(Subscribe(topic))
    return Charters(id, peer, random.Random(id), judge, everything=everything)


def answers(node: Charters, message: Message) -> list[Send]:
    return [it for it in node.on_message(message, 5) if isinstance(it, Send)]


def put(node: Charters, data: bytes) -> list[Send]:
    return [it for it in node.lay_down(data) if isinstance(it, Send)]


class Net:
    """Supervisors 0 and 1 and members of `news`, with messages delivered at once."""

    def __init__(self, members: int = 3) -> None:
        self.supervisors = (0, 1)
        self.nodes = [make(id, everything=True) for id in self.supervisors]
        self.nodes += [make(2 + at, ["news"]) for at in range(members)]
        self.sent = 0

    def deliver(self, effects: Sequence[object], sender: NodeId) -> None:
        waiting = [(sender, it) for it in effects if isinstance(it, Send)]
        while waiting:
            sender, effect = waiting.pop(0)
            self.sent += 1
            target = effect.target
            answers = self.nodes[target].on_message(effect.message, sender)
            waiting += [(target, it) for it in answers if isinstance(it, Send)]

    def round(self) -> None:
        for node in self.nodes:
            self.deliver(node.on_timeout(), node.id)

    def settle(self, rounds: int = 40) -> None:
        for _ in range(rounds):
            self.round()


def test_versions_are_bounded_steps_and_settings_stay() -> None:
    first = next_charter("news", None, 5)
    assert (first.version, first.previous, first.retention) == (1, 0, Retention())
    second = next_charter("news", charter(9), 5)
    assert (second.version, second.retention) == (10, Retention(count=7))
    with pytest.raises(UsageError, match="from 10 to 1009"):
        next_charter("news", charter(9), 5, version=9 + STEP_MAX + 1)
    with pytest.raises(UsageError, match="wildcard"):
        next_charter("news/#", None, 5)


@pytest.mark.parametrize(
    "wrong",
    [
        Charter("news", 2 + STEP_MAX, 1, 0),
        Charter("news", 1, 1, 0),
        Charter("a/#", 1, 0, 0),
        Charter("$SYS/x", 1, 0, 0),
        Charter(f"{VOID}zz", VERSION_MAX - 5, VERSION_MAX - 6, 5),
        Charter(f"{VOID}01", VERSION_MAX - 5, VERSION_MAX - 6, 6),
    ],
)
def test_what_cannot_be_a_charter_is_none(wrong: Charter) -> None:
    assert decode_sealed(sealed(wrong)) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_a_charter_or_none(data: bytes) -> None:
    decode_sealed(data)
    node = make(0, everything=True)
    with pytest.raises(UsageError, match="not signed by an admin"):
        node.lay_down(data)
    assert not node.kept


def test_too_many_bytes_are_none() -> None:
    assert decode_sealed(msgpack.encode(Sealed(bytes(SEALED_BYTES_MAX), b"", b"good"))) is None


def test_the_higher_version_counts_and_of_two_the_higher_hash_in_any_order() -> None:
    two = [charter(5, count=1), charter(5, count=2)]
    best = max(two, key=rank_of)
    for order in (two, two[::-1]):
        node = make(0, everything=True)
        for one in order:
            put(node, sealed(one))
        assert node.best("news") == best
        put(node, sealed(charter(4)))
        assert node.best("news") == best
        put(node, sealed(charter(6)))
        assert node.best("news") == charter(6)


def test_the_last_three_versions_are_kept() -> None:
    node = make(0, everything=True)
    for version in (1, 2, 3, 4, 5):
        put(node, sealed(charter(version)))
    assert [it.version for it in node.versions("news")] == [5, 4, 3]
    assert len(node._judged) == KEPT_MAX


def test_all_settle_on_a_charter_that_one_node_was_given() -> None:
    net = Net()
    effects = put(net.nodes[3], sealed(charter(1)))
    assert {it.target for it in effects} == {0, 1}
    net.deliver(effects, 3)
    net.settle(5)
    assert [node.best("news") for node in net.nodes] == [charter(1)] * 5


def test_two_admins_of_one_version_are_settled_everywhere_alike() -> None:
    net = Net()
    ours, theirs = charter(7, count=1), charter(7, count=2)
    put(net.nodes[2], sealed(ours))
    put(net.nodes[4], sealed(theirs, OTHER))
    net.settle()
    best = max(ours, theirs, key=rank_of)
    assert [node.best("news") for node in net.nodes] == [best] * 5


def test_members_keep_only_what_they_want_and_supervisors_all() -> None:
    net = Net()
    effects = put(net.nodes[2], sealed(charter(1, "weather")))
    net.deliver(effects, 2)
    net.settle()
    assert [bool(node.best("weather")) for node in net.nodes] == [True, True, False, False, False]
    assert net.nodes[0].names() == ["weather"]


def test_a_wiped_supervisor_learns_all_again_from_the_other() -> None:
    net = Net()
    put(net.nodes[0], sealed(charter(3, "weather")))
    put(net.nodes[0], sealed(charter(4)))
    net.settle()
    net.nodes[0] = make(0, everything=True)
    net.settle()
    assert net.nodes[0].names() == ["news", "weather"]


def test_what_an_authority_voids_is_void_everywhere_from_its_second_on() -> None:
    net = Net()
    for one in (charter(1, time=50), charter(2, time=100), charter(3, time=150)):
        net.deliver(put(net.nodes[2], sealed(one)), 2)
    net.settle()
    assert {node.best("news") for node in net.nodes} == {charter(3, time=150)}
    put(net.nodes[0], sealed(voiding(ADMIN, 100), OTHER))
    net.settle()
    assert [node.best("news") for node in net.nodes] == [charter(1, time=50)] * 5
    put(net.nodes[1], sealed(charter(2, time=200, count=1), OTHER))
    net.settle()
    assert {node.best("news") for node in net.nodes} == {charter(2, time=200, count=1)}


def test_of_two_voidings_the_earlier_counts() -> None:
    early, late = voiding(ADMIN, 10), voiding(ADMIN, 20)
    assert rank_of(early) > rank_of(late)
    assert (voided_since(early), voided_since(charter(1))) == (10, None)


def test_nobody_speaks_in_anothers_name() -> None:
    node = make(0, everything=True)
    assert node.on_message(CharterNews(7, [sealed(charter(1))]), 8) == []
    assert node.best("news") is None


def test_a_charter_that_a_fault_put_under_another_name_is_not_told() -> None:
    node = make(0, everything=True)
    node.kept["x"] = [sealed(charter(3, "news")), sealed(charter(1, "x"))]
    assert node.sealed("x") == sealed(charter(1, "x"))
    node.kept["x"] = [sealed(charter(3, "news"))]
    assert node.sealed("x") is None


@given(st.integers(0, 10_000))
def test_from_any_state_all_settle_on_the_highest_that_is_signed(seed: int) -> None:
    """Start states: kept lists of true, forged, voided, misplaced and random bytes, any turn."""
    rng = random.Random(seed)
    net = Net()
    pool = [
        sealed(charter(v, t, count=c)) for v in (1, 2, 3) for t in ("news", "x") for c in (1, 2)
    ]
    forged = msgpack.encode(Sealed(encode_charter(charter(99)), ADMIN, b"bad"))
    for node in net.nodes:
        kept = {
            name: [rng.choice([*pool, forged, rng.randbytes(9)]) for _ in range(rng.randrange(6))]
            for name in rng.sample(["news", "x", "#", "$void/01", ""], rng.randrange(5))
        }
        state = ChartersState(kept, *(rng.randrange(-(1 << 70), 1 << 70) for _ in range(2)))
        node.load(decode_state(ChartersState, encode_state(state)))
    held = [
        found.charter
        for node in net.nodes
        for name, datas in node.kept.items()
        for data in datas
        if (found := judge(data)) and found.charter.topic == name == "news"
    ]
    net.settle()
    best = max(held, key=rank_of, default=None)
    assert [node.best("news") for node in net.nodes] == [best] * 5
    for node in net.nodes:
        assert all(judge(data) for datas in node.kept.values() for data in datas)
        assert set(node.kept) <= {"news", "x"}


def test_calm_nodes_say_one_message_each_interval() -> None:
    net = Net()
    net.deliver(put(net.nodes[0], sealed(charter(1))), 0)
    net.settle()
    net.sent = 0
    net.round()
    assert net.sent == len(net.nodes)


def test_nothing_is_sent_to_what_memory_alone_takes_for_a_supervisor() -> None:
    node = make(3, ["news"])
    node._peer.supervisors = (-9, 1, 1 << 64)
    sends = [it for _ in range(20) for it in node.on_timeout() if isinstance(it, Send)]
    sends += [it for it in node.seek(["news"]) if isinstance(it, Send)]
    sends += put(node, sealed(charter(1)))
    assert len(sends) == 22
    assert {send.target for send in sends} == {1}


def test_hints_and_questions_are_answered_with_what_is_higher() -> None:
    node = make(0, everything=True)
    put(node, sealed(charter(2)))
    (send,) = answers(node, CharterHints(5, [("news", *NO_RANK)]))
    assert send.message == CharterNews(0, [sealed(charter(2))])
    (send,) = answers(node, CharterHints(5, [("news", 3, b"")]))
    assert send.message == AskCharters(0, ["news"])
    (send,) = answers(node, AskCharters(5, ["news", "nothing"]))
    assert send.message == CharterNews(0, [sealed(charter(2))])


def test_every_charter_of_many_is_told_and_verified_again() -> None:
    net = Net()
    for number in range(200):
        put(net.nodes[0], sealed(charter(1, f"t/{number}")))
        net.nodes[0].kept[f"f/{number}"] = [b"forged"]
    net.settle(120)
    assert net.nodes[1].names() == net.nodes[0].names()
    assert len(net.nodes[1].names()) == len(net.nodes[0].kept) == 200


def test_the_audit_drops_what_was_believed_before() -> None:
    node = make(0, everything=True)
    put(node, sealed(charter(1)))
    forged = msgpack.encode(Sealed(encode_charter(charter(9)), ADMIN, b"bad"))
    node.kept["news"].insert(0, forged)
    node._judged[forged] = Judged(charter(9), ADMIN)  # a fault in the cache
    assert node.best("news") == charter(9)
    node.on_timeout()
    assert node.best("news") == charter(1)


def test_what_is_not_kept_is_verified_once_and_not_remembered() -> None:
    """A voided admin, or a member's supervisor, may go on telling for ever."""
    node, verified = make(0, ["news"]), list[bytes]()

    def counting(data: bytes) -> Judged | None:
        verified.append(data)
        return judge(data)

    node._judge = counting
    void = sealed(voiding(ADMIN, 100), OTHER)
    news = [void, *(sealed(charter(n, time=100 + n)) for n in range(1, 6))]
    news += [sealed(charter(n, topic="elsewhere", time=50)) for n in range(1, 6)]
    news += [sealed(charter(n, time=50)) for n in range(10, 0, -1)]
    node.on_message(CharterNews(5, news), 5)
    assert sorted(verified) == sorted(news)
    assert [*node._judged] == [*node.everything_kept()] == [void, *news[11 : 11 + KEPT_MAX]]
    assert node.resume(news[-1])
    assert not node.resume(news[1])
    with pytest.raises(UsageError):
        node.lay_down(news[2])
    assert len(node._judged) == 1 + KEPT_MAX


def retention(node: Charters) -> Retention:
    return node._peer.topics["news"].history.horizon.retention


def test_members_obey_the_charter_that_counts_and_go_back_when_it_is_void() -> None:
    net = Net()
    net.nodes[2]._peer.retention["news"] = Retention(age=60)
    put(net.nodes[0], sealed(charter(1, count=5, time=100)))
    net.settle()
    assert [retention(node) for node in net.nodes[2:]] == [Retention(count=5)] * 3
    put(net.nodes[1], sealed(voiding(ADMIN, 100), OTHER))
    net.settle()
    expected = [Retention(age=60), Retention(), Retention()]
    assert [retention(node) for node in net.nodes[2:]] == expected


def test_another_retention_in_memory_is_put_right() -> None:
    net = Net()
    put(net.nodes[0], sealed(charter(1, count=5)))
    net.settle()
    net.nodes[3]._peer.topics["news"].history.retain(Retention(count=1))
    net.settle(2)
    assert retention(net.nodes[3]) == Retention(count=5)


def test_who_joins_later_obeys_too() -> None:
    net = Net()
    put(net.nodes[0], sealed(charter(1, "weather", count=5)))
    net.nodes[2]._peer.on_command(Subscribe("weather"))
    net.settle()
    assert net.nodes[2]._peer.topics["weather"].history.horizon.retention == Retention(count=5)


def test_what_waits_behind_a_gap_is_delivered_before_a_charter_hides_it() -> None:
    node = make(9)
    node._peer.on_command(Subscribe("news", ordered=True))
    history = node._peer.topics["news"].history
    stream = (1, b"incarnation!")
    for number in (0, 2):  # number 1 is missing
        history._take([seal(stream, number, [Draft(b"%d" % number)], time=1000)])
    assert history.reader.holes
    node._peer.on_command(Clock(9_000_000))
    effects = node.lay_down(sealed(Charter("news", 1, 0, 5, retention=Retention(age=100))))
    deliveries = [it for it in effects if isinstance(it, Deliver)]
    assert [it.payload for effect in deliveries for it in effect.publications] == [b"2"]
    assert isinstance(effects[-1], Persist)
