"""`doctor` over real sockets, and its judgement of surveys made by hand."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest
from msgspec import json
from msgspec.structs import replace

from planaria.core.ids import NodeId
from planaria.core.node import Publish
from planaria.network import doctor
from planaria.network.client.errors import Unreachable
from planaria.network.context import Context
from planaria.network.doctor import BROKEN, WARNING, Diagnosis, diagnose, findings, lasting
from planaria.network.status import Settled, Status, StoreStatus, TopicStatus
from planaria.network.survey import Seen, Silent, Survey, Surveyor
from planaria.protocols.publications.antientropy import AntiEntropy
from planaria.records.memory import MemoryStore
from watched import Watched, WatchedNetwork, ring_node, until

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def network(n: int, test: Callable[[WatchedNetwork], Awaitable[None]]) -> None:
    async def main() -> None:
        made = WatchedNetwork(n)
        try:
            await made.start()
            await until(made.legitimate)
            await test(made)
        finally:
            await made.stop()

    asyncio.run(main())


async def ask(context: Context, wait: float = 0.0) -> Diagnosis:
    async with Surveyor(context) as surveyor:
        return await diagnose(surveyor, wait)


def test_a_legitimate_network_is_found_so_from_any_one_node() -> None:
    async def look(made: WatchedNetwork) -> None:
        for node in made.nodes:
            verdict = await ask(Context((node.address,), insecure=True), wait=30)
            assert (verdict.legitimate, verdict.nodes, verdict.topics) == (True, 5, 1)
            assert verdict.findings == []

    network(4, look)


def test_what_is_wrong_is_named_with_its_node_and_heals() -> None:
    async def look(made: WatchedNetwork) -> None:
        liar = made.peers[1]

        def lie() -> None:
            liar.ring.peer.topics["news"].subscriber.label = 77

        liar.gate.lie = lie
        verdict = await ask(made.context)
        assert not verdict.legitimate
        assert verdict.looks == 2
        (found,) = [it for it in verdict.findings if it.invariant == "label"]
        assert (found.topic, found.node, found.severity) == ("news", liar.id, BROKEN)
        assert "n1 (127.0.0.1:" in found.where
        assert found.detail.startswith("77, should be ")
        assert "heals by itself" in found.expect
        liar.gate.lie = None
        assert (await ask(made.context, wait=60)).legitimate

    network(3, look)


def test_a_node_that_is_gone_is_unreachable_until_the_network_forgets_it() -> None:
    async def look(made: WatchedNetwork) -> None:
        gone = made.peers[-1]
        gone.gate.mute = True  # alive for the ring, but not for the doctor
        verdict = await ask(made.context)
        (found,) = [it for it in verdict.findings if it.invariant == "unreachable"]
        assert (found.severity, found.node) == (BROKEN, gone.id)
        assert "1 topics count on it" in found.detail
        assert gone.address in found.where
        await gone.stop()
        made.nodes.remove(gone)
        await until(made.legitimate)
        verdict = await ask(made.context, wait=60)
        assert verdict.legitimate
        assert {(it.severity, it.invariant) for it in verdict.findings} <= {
            (WARNING, "unreachable")
        }

    network(3, look)


def test_publications_that_one_member_lacks_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    async def look(made: WatchedNetwork) -> None:
        monkeypatch.setattr("planaria.network.introspection.SETTLED_SECONDS", 1)
        made.peers[0].host.command(Publish("news", b"one"))
        await until(
            lambda: all(
                len(node.ring.peer.topics["news"].history.holdings) == 1 for node in made.peers
            )
        )
        monkeypatch.setattr(AntiEntropy, "on_digest", lambda *_: [])  # nobody brings it back
        poor = made.peers[2]
        store = poor.ring.peer.topics["news"].history.holdings.store
        assert isinstance(store, MemoryStore)
        store._bodies.clear()
        store.mend()
        await asyncio.sleep(3)  # what is young may still be on its way
        verdict = await ask(made.context)
        (found,) = [it for it in verdict.findings if it.invariant == "publications"]
        assert (found.node, found.detail) == (poor.id, "lacks 1 of 1 records")

    network(3, look)


def test_nobody_to_ask_is_one_clear_line() -> None:
    with pytest.raises(Unreachable, match=r"cannot reach 127.0.0.1:1: .*"):
        asyncio.run(ask(Context(("127.0.0.1:1",), insecure=True)))


# Judgement of surveys made by hand


def seen(number: NodeId, **changed: object) -> Seen:
    node = Watched(
        ring_node(number, (0,), supervise=False), (number << 1).to_bytes(8, "big") * 2, f"n{number}"
    )
    node.host.hello = replace(node.host.hello, addresses=(f"127.0.0.1:{7400 + number}",))
    status = replace(node.monitor.status(), handle=number, **changed)
    return Seen(status, f"127.0.0.1:{7400 + number}")


def survey(*nodes: Seen, silent: tuple[Silent, ...] = ()) -> Survey:
    return Survey(0.0, {it.status.handle: it for it in nodes}, [*silent], [])


def said(found: Survey) -> list[tuple[str, str, NodeId | None]]:
    return [(it.severity, it.invariant, it.node) for it in findings(found, now=NOW)]


def test_nothing_wrong_gives_no_finding() -> None:
    assert said(survey(seen(1), seen(2))) == []


def test_a_clock_unlike_the_others_is_named() -> None:
    wrong = seen(3)
    wrong.clock = 30.0
    assert said(survey(seen(1), seen(2), wrong)) == [(WARNING, "clock", 3)]
    wrong.trip = 100.0  # so long a trip says nothing about clocks
    assert said(survey(seen(1), seen(2), wrong)) == []


def test_another_version_is_named() -> None:
    assert said(survey(seen(1), seen(2), seen(3, version="9.9"))) == [(WARNING, "version", 3)]


def test_a_certificate_that_ends_soon_is_named() -> None:
    late, soon = NOW + timedelta(days=15), NOW + timedelta(days=13)
    nodes = [seen(1, certificate_expires=late), seen(2, certificate_expires=soon)]
    assert said(survey(*nodes)) == [(WARNING, "certificate", 2)]


def test_a_store_that_cannot_write_is_broken() -> None:
    stalled = StoreStatus("/s", 1, 0, "disk full", damaged=False)
    damaged = StoreStatus("/s", 1, 0, None, damaged=True)
    found = survey(seen(1, store=stalled), seen(2, store=damaged), seen(3))
    assert said(found) == [(BROKEN, "store", 1), (BROKEN, "store", 2)]


def test_who_does_not_answer_and_is_not_counted_on_is_a_warning() -> None:
    gone = Silent(("127.0.0.1:9",), "cannot reach 127.0.0.1:9: refused", 9)
    assert said(survey(seen(1), silent=(gone,))) == [(WARNING, "unreachable", 9)]


def with_settled(number: NodeId, *parts: Settled) -> Seen:
    return seen(number, topics={"a": TopicStatus(member=True, settled=[*parts])})


def test_publications_are_compared_at_a_cut_that_most_have_in_common() -> None:
    full, other, few = Settled(0, 32, 5, "aa"), Settled(0, 32, 5, "bb"), Settled(0, 32, 3, "cc")
    older = Settled(0, 16, 4, "dd")
    nodes = [with_settled(1, full, older), with_settled(2, older), with_settled(3, full, older)]
    assert [*doctor.publication_findings(survey(*nodes), "a")] == []
    nodes = [with_settled(1, full), with_settled(2, full), with_settled(3, few, older)]
    (found,) = doctor.publication_findings(survey(*nodes), "a")
    assert (found.node, found.detail) == (3, "lacks 2 of 5 records")
    nodes = [with_settled(1, full), with_settled(2, full), with_settled(3, other)]
    (found,) = doctor.publication_findings(survey(*nodes), "a")
    assert (found.node, found.detail) == (3, "holds other records than most, though as many (5)")
    assert [*doctor.publication_findings(survey(seen(1)), "a")] == []


def test_members_that_obey_an_older_charter_are_named() -> None:
    nodes = [seen(at, topics={"a": TopicStatus(charter=at // 2)}) for at in (1, 2, 3)]
    (found,) = doctor.charter_findings(survey(*nodes), "a")
    assert (found.node, found.detail) == (1, "obeys version 0, there is version 1")


def test_windows_that_moved_between_two_answers_are_not_compared() -> None:
    nodes = [with_settled(1, Settled(5, 32, 9, "aa")), with_settled(2, Settled(6, 32, 8, "bb"))]
    assert [*doctor.publication_findings(survey(*nodes), "a")] == []


def test_only_what_two_looks_see_lasts() -> None:
    stalled = StoreStatus("/s", 1, 0, "disk full", damaged=False)
    before = [*findings(survey(seen(1, store=stalled), seen(2)))]
    after = [
        *findings(survey(seen(1, store=stalled), seen(2, store=stalled), seen(3, version="9")))
    ]
    found = lasting(before, after)
    assert [(it.invariant, it.node) for it in found] == [("store", 1), ("version", 3)]


def test_what_comes_and_goes_is_judged_by_the_two_last_looks_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the second look saw anew and the third saw again lasts, though the first saw neither."""
    monkeypatch.setattr(doctor, "AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(doctor, "AGAIN_INTERVALS", 0)
    stalled = StoreStatus("/s", 1, 0, "disk full", damaged=False)
    one, two = survey(seen(1, store=stalled), seen(2)), survey(seen(1), seen(2, store=stalled))
    both = survey(seen(1, store=stalled), seen(2, store=stalled))
    looks = iter([one, both, two])

    class Scripted(Surveyor):
        async def look(self) -> Survey:
            return next(looks)

        async def examine(self, survey: Survey, topics: object = None) -> None:
            """There are none."""

    async def judge() -> Diagnosis:
        ticks = iter(range(100))
        monkeypatch.setattr(doctor, "time", lambda: next(ticks))
        return await diagnose(Scripted(Context(("127.0.0.1:1",), insecure=True)), wait=1.5)

    verdict = asyncio.run(judge())
    assert (verdict.looks, [it.node for it in verdict.findings]) == (3, [2])


def test_a_status_of_another_version_with_more_keys_can_be_read() -> None:
    newer = json.decode(json.encode(seen(1).status))
    newer["later"] = {"what": 1}
    assert json.decode(json.encode(newer), type=Status).handle == 1
