"""Running nodes with keys: a member that lies about others is not believed by anybody."""

import asyncio
import time
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from planaria.cli.keys import issued_id, revoke_one
from planaria.core.errors import UsageError
from planaria.core.node import Effect, Subscribe
from planaria.network.charters import seal as seal_charter
from planaria.network.client.batches import Numbering, Stager, commit
from planaria.network.client.client import connect
from planaria.network.context import Context
from planaria.network.live import LiveNode
from planaria.network.revoking import Reach
from planaria.network.tls import Credentials
from planaria.protocols.publications.admission import EVERYTHING
from planaria.protocols.skipring.charter import Charter, with_publishers
from planaria.protocols.skipring.charters import LayDown
from planaria.protocols.skipring.deposits import FORGED, DepositAnswered, Entrust
from planaria.records.evidence import PUBLISHED
from planaria.records.record import Draft, Record, Stream, decode, seal
from secure_lab import Secure, run
from watched import until


def shown(node: LiveNode, topic: str = "news") -> list[Record]:
    membership = node.ring.peer.topics.get(topic)
    if membership is None:
        return []
    store = membership.history.holdings.store
    return store.get(list(store.index.order))


async def members(lab: Secure, count: int, *topics: str) -> list[LiveNode]:
    """Nodes that are all members of these topics."""
    nodes = [await lab.node() for _ in range(count)]
    for node in nodes:
        for topic in topics:
            node.host.command(Subscribe(topic))
    for topic in topics:
        await until(lambda topic=topic: all(it.ring.peer.topics[topic].calm for it in nodes))  # type: ignore[misc]
    return nodes


def payloads(node: LiveNode, topic: str = "news") -> list[bytes]:
    return [row for it in shown(node, topic) for row in it.payloads(it.first, it.end)]


def lying(node: LiveNode, topic: str = "news") -> list[Effect]:
    """Have a member take up and pass on anything; returns what it is told from now on."""
    node.ring.peer.topics[topic].history.inspection._admission = EVERYTHING
    heard: list[Effect] = []
    give = node._give

    def listen(effect: Effect) -> None:
        heard.append(effect)
        give(effect)

    node._give = listen  # type: ignore[method-assign]
    return heard


def test_a_member_that_lies_about_others_is_not_believed(tmp_path: Path) -> None:
    async def test(lab: Secure) -> None:
        nodes = await members(lab, 3, "news", "other")
        alice = Credentials(lab.people["alice"])
        async with (
            lab.client("alice", nodes[0]) as client,
            lab.client("carol", nodes[1]) as carol,
            carol.subscribe("news") as events,
        ):
            await events.ready()
            await client.publish("news", b"true")
            await client.publish("other", b"elsewhere")
            assert (await anext(events)).payload == b"true"
            await until(lambda: payloads(nodes[2]) == [b"true"] and shown(nodes[2], "other"))
            liar, heard = nodes[2], lying(nodes[2])
            false = forged(liar, alice, shown(liar)[0], shown(liar, "other")[0])
            ids = tuple(it.host.node.id for it in nodes)
            for one in false:
                liar.host.command(Entrust("news", one, ids, spread=True))
            await until(lambda: len([*refusals(heard)]) == 2 * len(false))
            assert {*refusals(heard)} == {
                (it.key, member, FORGED) for it in false for member in ids[:2]
            }
            await client.publish("news", b"and true")
            assert (await anext(events)).payload == b"and true", "delivered none of them"
            for node in nodes[:2]:
                assert sorted(payloads(node)) == [b"and true", b"true"]
            assert len(payloads(liar)) >= 2 + len(false)

    run(tmp_path, test)


def refusals(heard: list[Effect]) -> set[tuple[bytes, int, str]]:
    found = [it for it in heard if isinstance(it, DepositAnswered) and it.reason]
    return {(it.key, it.member, it.reason) for it in found}


def forged(liar: LiveNode, alice: Credentials, true: Record, elsewhere: Record) -> list[Record]:
    """In another's name without and with the own signature; altered; moved; a stream cut short."""
    mine, now = liar.host.credentials, int(time.time())
    assert mine is not None
    stream, drafts = true.stream, [Draft(b"false")]
    plain = seal(stream, 1, drafts, time=now)
    own = seal(stream, 1, drafts, time=now, sign=mine.sealer(PUBLISHED, "news"))
    altered = bytearray(true.data)
    altered[true.offsets().payload_data] ^= 1
    vouched = seal(stream, 9, drafts, time=now, low=9)  # the publisher forgets all before
    return [plain, own, decode(bytes(altered)), vouched, elsewhere]


def rows(drafts: list[Draft], stream: Stream, first: int, time: int) -> Record:
    return seal(stream, first, drafts, time=time)


def test_batches_settle_where_records_are_signed(tmp_path: Path) -> None:
    async def test(lab: Secure) -> None:
        nodes = [await lab.node() for _ in range(3)]
        async with lab.client("alice", nodes[0]) as alice, lab.client("carol", nodes[1]) as carol:
            async with carol.subscribe("news") as events:
                await events.ready()
                staged = []
                for task in range(2):
                    stager = Stager(alice, 2)
                    for at in range(3):
                        draft = Draft(b"%d/%d" % (task, at))
                        await stager.put("news", partial(rows, [draft]))
                    staged += await stager.finish()
                assert await commit(alice, Numbering(), "query", 0, staged, copies=2)
                wanted = sorted(b"%d/%d" % (task, at) for task in range(2) for at in range(3))
                assert sorted([(await anext(events)).payload for _ in wanted]) == wanted
                await until(lambda: sorted(payloads(nodes[1])) == wanted)
            assert all(it.signed for it in shown(nodes[1]))

    run(tmp_path, test)


def test_one_shot_clients_publish_in_the_name_of_their_node(tmp_path: Path) -> None:
    async def test(lab: Secure) -> None:
        nodes = [await lab.node() for _ in range(2)]
        keys = lab.people["alice"]
        async with connect([nodes[0].listen], credentials=keys, oneshot=True) as alice:
            ack = await alice.publish("news", b"once")
        assert ack.publisher == nodes[0].host.node.id
        holder = next(it for it in nodes if "news" in it.ring.peer.topics)
        await until(lambda: payloads(holder) == [b"once"])
        assert shown(holder)[0].signed

    run(tmp_path, test)


def test_what_is_on_disk_is_admitted_again_after_a_restart(tmp_path: Path) -> None:
    async def test(lab: Secure) -> None:
        node = await lab.node()
        await node.publish("news", b"embedded")
        async with lab.client("alice", node) as alice:
            await alice.publish("news", b"by a client")
        await node.stop(leave=False)
        again = LiveNode(replace(node.config, listen=node.listen))
        lab.nodes[0] = again
        await again.start()
        await until(lambda: "news" in again.ring.peer.topics and len(shown(again)) == 2)
        history = again.ring.peer.topics["news"].history
        for _ in range(3):
            history.inspection.on_timeout()
        assert sorted(payloads(again)) == [b"by a client", b"embedded"]

    run(tmp_path, test)


def test_what_was_published_after_a_revocation_is_removed_everywhere(tmp_path: Path) -> None:
    async def test(lab: Secure) -> None:
        nodes = await members(lab, 2, "news")
        async with lab.client("carol", nodes[1]) as carol, carol.subscribe("news") as events:
            await events.ready()
            async with lab.client("alice", nodes[0]) as alice:
                await alice.publish("news", b"before")
                await anext(events)
                start = shown(nodes[1])[0].time
                while int(time.time()) <= start:
                    await asyncio.sleep(0.05)
                await alice.publish("news", b"after")
                await anext(events)
            await carol.publish("news", b"another's")
            await until(lambda: all(len(payloads(it)) == 3 for it in nodes))
            context = Context((nodes[0].listen,), lab.people["boss"])
            await revoke_one(context, issued_id(lab.keys, "alice"), lab.keys, start + 1)
            await until(
                lambda: all(sorted(payloads(it)) == [b"another's", b"before"] for it in nodes)
            )

    run(tmp_path, test)


def test_with_a_stolen_key_nothing_can_be_dated_back_behind_what_nodes_hold(tmp_path: Path) -> None:
    async def test(lab: Secure) -> None:
        nodes = await members(lab, 2, "news")
        async with lab.client("alice", nodes[0]) as alice:
            await alice.publish("news", b"one")
            await alice.publish("news", b"two")
        await until(lambda: all(sorted(payloads(it)) == [b"one", b"two"] for it in nodes))
        # Of one second, records are in the order of their keys.
        last = max(shown(nodes[1]), key=lambda it: it.first)
        context = Context((nodes[0].listen,), lab.people["boss"])
        id, later = issued_id(lab.keys, "alice"), int(time.time()) + 1000
        shows = await revoke_one(context, id, lab.keys, later, (), show=True)
        assert shows == [Reach("news", last.incarnation, 2)]
        assert nodes[0].ring.charters.revocation(id) is None
        short = f"{last.incarnation.hex()}=1"
        assert await revoke_one(context, id, lab.keys, later, (short,)) == shows
        await until(lambda: all(payloads(it) == [b"one"] for it in nodes))
        sign = Credentials(lab.people["alice"]).sealer(PUBLISHED, "news")
        false = [
            seal((last.publisher, stream), first, [Draft(b"false")], time=last.time, sign=sign)
            for stream, first in ((last.incarnation, 1), (bytes(12), 0))
        ]
        ids, heard = tuple(it.host.node.id for it in nodes), lying(nodes[0])
        for one in false:
            nodes[0].host.command(Entrust("news", one, ids, spread=True))
        refused = {(it.key, ids[1], FORGED) for it in false}
        await until(lambda: refusals(heard) == refused)
        joined = await lab.node()
        joined.host.command(Subscribe("news"))
        await until(lambda: payloads(joined) == [b"one"])
        assert payloads(nodes[1]) == [b"one"]

    run(tmp_path, test)


def test_who_has_no_right_to_publish_is_believed_by_no_member(tmp_path: Path) -> None:
    """A charter of a topic above binds nodes too, and what they publish for one-shot clients."""

    async def test(lab: Secure) -> None:
        nodes = await members(lab, 3, "pay/salary")
        now = int(time.time())
        charter = with_publishers(Charter("pay", 1, 0, now - 100), ["alice"])
        nodes[0].host.command(LayDown(seal_charter(charter, lab.admin)))
        await until(lambda: all(it.ring.charters.best("pay") for it in nodes))
        with pytest.raises(UsageError, match="this node may not publish on 'pay/salary'"):
            await nodes[1].publish("pay/salary", b"embedded")
        liar, heard = nodes[2], lying(nodes[2], "pay/salary")
        assert liar.host.credentials is not None
        sign = liar.host.credentials.sealer(PUBLISHED, "pay/salary")
        stream = (liar.host.node.id, bytes(12))
        false = seal(stream, 0, [Draft(b"as myself")], time=now, sign=sign)
        ids = tuple(it.host.node.id for it in nodes)
        liar.host.command(Entrust("pay/salary", false, ids, spread=True))
        refused = {(false.key, member, FORGED) for member in ids[:2]}
        await until(lambda: refusals(heard) == refused)
        keys = lab.people["alice"]
        async with connect([nodes[0].listen], credentials=keys, oneshot=True) as once:
            with pytest.raises(UsageError, match="for a one-shot client is its node"):
                await once.publish("pay/salary", b"once")
        async with lab.client("alice", nodes[0]) as alice:
            await alice.publish("pay/salary", b"right")
        await until(lambda: all(payloads(it, "pay/salary") == [b"right"] for it in nodes[:2]))

    run(tmp_path, test)
