"""Where records are judged, members keep and pass on those alone that their publishers signed."""

from hashlib import blake2b
from random import Random

import pytest

from planaria.core.chance import combination
from planaria.core.ids import NodeId
from planaria.core.node import Deliver, Node, Notice, Publish, Send, Subscribe
from planaria.protocols.publications.admission import Admission, Times
from planaria.protocols.publications.antientropy_messages import Push
from planaria.protocols.publications.inspection import INSPECTED
from planaria.protocols.skipring.arbitrary_holdings import any_record, invent
from planaria.protocols.skipring.broadcast_messages import Arc, Flood
from planaria.protocols.skipring.deposit_messages import Deposit, NotHeld
from planaria.protocols.skipring.deposits import FORGED
from planaria.protocols.skipring.history import History
from planaria.protocols.skipring.overlay import TOPIC, RingOverlay
from planaria.protocols.skipring.peer import Peer
from planaria.records.evidence import PUBLISHED, SIGNATURE_BYTES, Sign, evidence_of, sealer
from planaria.records.record import TIME_MAX, Draft, Record, seal
from planaria.simulator.engine import Simulator
from ring_lab import RingLab

CLIENT = 12345


class Toy(Admission):
    """Keyed hashes in the place of signatures; `revoked` is what one node has heard."""

    judges = True

    def __init__(self, id: NodeId) -> None:
        self.sealer = sealer(certificate(id), signer(id), PUBLISHED, TOPIC)
        self.revoked: dict[NodeId, int] = {}
        self.reach: dict[bytes, int] | None = None  # of the streams of who is revoked

    @property
    def edition(self) -> object:
        return (*self.revoked.items(), str(self.reach))

    def admits(self, record: Record) -> bool:
        ends = self.ends(record)
        if ends is not None and record.end > ends.get(record.incarnation, 0):
            return False
        return any(since <= record.time < before for since, before in self.times(record))

    def ends(self, record: Record) -> dict[bytes, int] | None:
        return self.reach if record.publisher in self.revoked else None

    def admits_staged(self, record: Record) -> bool:
        return self.admits(record)

    def times(self, record: Record) -> Times:
        if not record.signed:
            return []
        found = evidence_of(record.data)
        right = signer(record.publisher)(found.message(PUBLISHED, TOPIC))
        if (found.certificate, found.signature) != (certificate(record.publisher), right):
            return []
        return [(0, self.revoked.get(record.publisher, TIME_MAX + 1))]


def certificate(id: NodeId) -> bytes:
    return b"certificate of %d" % id


def signer(id: NodeId) -> Sign:
    key = b"%d" % id
    return lambda data: blake2b(data, digest_size=SIGNATURE_BYTES, key=key).digest()


class JudgedOverlay(RingOverlay):
    """A ring of peers that judge."""

    def spawn(self, id: NodeId, rng: Random) -> Node:
        if id in self.supervisors:
            return super().spawn(id, rng)
        peer = Peer(id, self.supervisors, rng, admission=lambda _: Toy(id))
        peer.on_command(Subscribe(self.topic))
        return peer


def lab(n: int, seed: int = 1) -> RingLab:
    overlay, simulator = JudgedOverlay(), Simulator(seed)
    return RingLab(overlay, overlay.legitimate(n, simulator.rng), simulator)


def peer(ring: RingLab, id: NodeId) -> Peer:
    node = ring.simulator.nodes[id]
    assert isinstance(node, Peer)
    return node


def history(ring: RingLab, id: NodeId) -> History:
    return peer(ring, id).topics[TOPIC].history


def toy(ring: RingLab, id: NodeId) -> Toy:
    found = history(ring, id).inspection._admission
    assert isinstance(found, Toy)
    return found


def shown(ring: RingLab) -> list[set[int]]:
    return [{*history(ring, id).holdings.store.index.shown} for id in ring.peers]


def signed(first: int = 0, *, by: NodeId = CLIENT, of: NodeId = CLIENT, time: int = 0) -> Record:
    """A record of one publisher, signed with the key of another."""
    how = sealer(certificate(of), signer(by), PUBLISHED, TOPIC)
    return seal((of, bytes(12)), first, [Draft(b"%d" % first)], time=time, sign=how)


FALSE = [
    signed(by=3),
    seal((CLIENT, bytes(12)), 0, [Draft(b"unsigned")], time=0),
    any_record([0, 1, CLIENT], Random(3)),
]


@pytest.mark.parametrize("false", FALSE)
def test_what_nobody_signed_is_not_stored_not_delivered_and_not_passed_on(false: Record) -> None:
    one = peer(lab(4), 0)
    messages = [
        Arc(TOPIC, 3, false.data, 0, 0, 0, 0, 0),
        Flood(TOPIC, 3, false.data, 0),
        Push(TOPIC, 3, 1, [false.data], []),
    ]
    for message in messages:
        effects = one.on_message(message, 3)
        assert not any(isinstance(it, Deliver) for it in effects)
        assert not any(isinstance(it, Send) and hasattr(it.message, "record") for it in effects)
    refused = Send(3, NotHeld(TOPIC, 0, false.key, FORGED))
    assert [*one.on_message(Deposit(TOPIC, 3, false.data, True), 3)] == [refused]
    stage = Deposit(TOPIC, 3, false.data, True, stage=True)
    assert [*one.on_message(stage, 3)] == [refused]
    assert len(one.topics[TOPIC].history.holdings) == 0
    notices = [it for it in one.on_timeout() if isinstance(it, Notice)]
    assert notices == [Notice(TOPIC, "forged", {"records": 5})]
    assert not any(isinstance(it, Notice) for it in one.on_timeout()), "told once"


def test_what_its_publisher_signed_reaches_all() -> None:
    ring = lab(5)
    ring.simulator.command(2, Publish(TOPIC, b"own"))
    ring.send(0, Deposit(TOPIC, 3, signed().data, True))
    ring.run(12)
    own = {*history(ring, 2).holdings.store.index.shown}
    assert len(own) == 2
    assert shown(ring) == [own] * 5


def test_a_member_verifies_a_record_once_however_often_it_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, record, verified = peer(lab(4), 0), signed(), list[bytes]()
    whole = Toy.admits

    def counted(self: Toy, record: Record) -> bool:
        verified.append(record.key)
        return whole(self, record)

    monkeypatch.setattr(Toy, "admits", counted)
    said = [
        Deposit(TOPIC, 3, record.data, True),
        Arc(TOPIC, 3, record.data, 0, 0, 0, 0, 0),
        Flood(TOPIC, 3, record.data, 0),
        Push(TOPIC, 3, 1, [record.data], []),
    ]
    for message in [*said, *reversed(said)]:
        one.on_message(message, 3)
    assert verified == [record.key]


def test_what_a_fault_invents_is_dropped_and_what_it_lost_comes_back() -> None:
    """Any start: each member holds some of what was signed, and forged records beside it."""
    for seed in range(6):
        case, rng = combination(seed, (3, 4, 6), (1, 5)), Random(seed)
        n, true = case[0], [signed(number) for number in range(case[1] * 4)]
        ring = lab(n, seed)
        for id in ring.peers:
            holdings = history(ring, id).holdings
            holdings.append([it for it in true if rng.random() < 0.6 or id == seed % n])
            invent(holdings, [*ring.peers, CLIENT], rng)
            holdings.append(FALSE)
        ring.run(80)
        assert shown(ring) == [{it.place for it in true}] * n


def test_members_that_hear_of_a_revocation_at_different_times_end_up_with_the_same() -> None:
    ring = lab(4)
    records = [signed(at, time=10 * at) for at in range(6)]
    for id in ring.peers:
        history(ring, id).holdings.append(records)
    ring.run(4)
    for id in ring.peers:
        toy(ring, id).revoked[CLIENT] = 30
        ring.run(6)
        kept = [len(them) for them in shown(ring)]
        assert kept == [3] * (id + 1) + [6] * (3 - id), "nobody who has heard is talked out of it"
    ring.run(20)
    assert shown(ring) == [{it.place for it in records[:3]}] * 4
    traffic = ring.count(10)
    assert not {"estimate", "sketch", "difference", "push", "root", "compare"} & {*traffic.by_tag}
    assert traffic.by_tag, "and nobody goes on exchanging"


def test_all_is_judged_anew_as_soon_as_a_revocation_is_heard_of() -> None:
    ring = lab(2)
    records = [signed(at, time=at) for at in range(60)]
    holdings = history(ring, 0).holdings
    holdings.append(records)
    holdings.append([signed(0, by=1, of=1, time=50)])
    toy(ring, 0).revoked[CLIENT] = 30
    assert history(ring, 0).inspection.on_timeout() == [Notice(TOPIC, "forged", {"records": 30})]
    kept = {it.place for it in records[:30]} | {signed(0, by=1, of=1, time=50).place}
    assert {*holdings.store.index.shown} == kept


def test_what_is_beyond_the_positions_of_a_revocation_is_dropped_whatever_its_time() -> None:
    """At once, by what the index says; also at who hears of it late."""
    ring = lab(3)
    records = [signed(at, time=at) for at in range(60)]
    other = signed(0, by=1, of=1, time=50)
    for id in ring.peers:
        history(ring, id).holdings.append([*records, other])
    kept = {it.place for it in records[:30]} | {other.place}
    for id in ring.peers:
        toy(ring, id).reach = {records[0].incarnation: records[29].end}
        toy(ring, id).revoked[CLIENT] = TIME_MAX
        dropped = Notice(TOPIC, "forged", {"records": 30})
        assert history(ring, id).inspection.on_timeout() == [dropped]
        ring.run(4)
    assert shown(ring) == [kept] * 3


def test_a_doubt_has_all_that_is_held_judged_within_a_few_timeouts() -> None:
    ring = lab(2)
    one = history(ring, 0)
    sound = [signed(at, time=at) for at in range(200)]
    invented = [signed(at, by=1, of=2, time=300 + at) for at in range(100)]
    one.holdings.append([*sound, *invented])
    one.on_timeout([])
    assert len(one.holdings.store.index.shown) == 300 - INSPECTED, "without a doubt a few at a time"
    one.holdings.doubt()
    for _ in range(4):
        one.on_timeout([])
    assert {*one.holdings.store.index.shown} == {it.place for it in sound}


def test_a_revoked_publisher_is_believed_for_the_time_before() -> None:
    ring = lab(4)
    for id in ring.peers:
        toy(ring, id).revoked[CLIENT] = 30
    for at, one in enumerate([signed(0, time=29), signed(1, time=30)]):
        ring.send(0, Deposit(TOPIC, 3, one.data, True), delay=at + 1)
    ring.run(12)
    assert shown(ring) == [{signed(0, time=29).place}] * 4
