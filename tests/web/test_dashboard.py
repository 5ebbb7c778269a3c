"""The dashboard of a live network: what its frames say, and who may see them."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from live_lab import TOPIC, config, run, running
from planaria.core.errors import UsageError
from planaria.network.context import Context
from planaria.network.doctor import BROKEN as SERIOUS
from planaria.network.doctor import Finding
from planaria.network.live import LiveNode
from planaria.network.survey import Survey, Surveyor
from planaria.web.frames import BROKEN, DOUBTS, GOOD, OK, ONCE, SILENT
from planaria.web.serving import dashboard
from planaria.web.watching import INVARIANTS, Watcher, lamps


def finding(invariant: str, node: int | None = None) -> Finding:
    return Finding(SERIOUS, invariant, TOPIC, node, "n1", "is wrong", "heals")


def test_a_lamp_is_broken_only_when_two_looks_saw_it() -> None:
    once, twice = finding("ring", 1), finding("label", 2)
    states = {lamp.name: lamp.state for lamp in lamps([once, twice], [twice])}
    assert states["ring"] == ONCE
    assert states["label"] == BROKEN
    assert all(states[name] == GOOD for name in INVARIANTS if name not in ("ring", "label"))


def test_a_network_is_called_broken_only_when_two_looks_saw_the_same() -> None:
    class Looks(Surveyor):
        def __init__(self) -> None:
            pass

    watcher, survey = Watcher(Looks()), Survey(1.0, {}, [], [])
    for found, legitimate in (
        ([finding("ring", 1)], True),
        ([finding("ring", 2)], True),
        ([finding("ring", 2)], False),
        ([], True),
    ):
        assert watcher._judged(survey, found).legitimate is legitimate
    assert len(watcher.healed) == 1


def test_what_is_new_to_the_list_has_a_lamp_too() -> None:
    found = {lamp.name: lamp for lamp in lamps([finding("novelty")] * 3, [])}
    assert found["novelty"].detail.endswith("(and 2 more)")


def test_frames_of_a_network_that_loses_a_node_and_heals(tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            first = await stack.enter_async_context(running(config(tmp_path / "a", name="a")))
            settings = config(tmp_path / "b", name="b", join=(first.listen,), supervise=False)
            second = await stack.enter_async_context(running(settings))
            for node in (first, second):
                await node.subscribe(TOPIC).ready()
            context = Context((first.listen,), insecure=True)
            surveyor = await stack.enter_async_context(Surveyor(context))
            await watch(Watcher(surveyor), first, second)

    run(main)


async def watch(watcher: Watcher, first: LiveNode, second: LiveNode) -> None:
    async def seen(holds: object) -> None:
        while not holds():  # type: ignore[operator]
            assert await watcher.look()

    await seen(lambda: (it := watcher.frame()) and it.legitimate and len(it.edges) == 1)
    frame = watcher.frame()
    assert frame is not None
    assert [node.name for node in sorted(frame.nodes, key=lambda it: it.name)] == ["a", "b"]
    assert {node.state for node in frame.nodes} == {OK}
    assert {node.role for node in frame.nodes} == {"supervisor", "member"}
    assert sorted((node.x, node.y) for node in frame.nodes) == [(0, -1), (0, 1)]
    assert frame.topic == TOPIC
    what_one_look_sees_is_not_red(watcher, next(n.id for n in frame.nodes if n.name == "a"))
    await first.publish(TOPIC, b"hello")
    await seen(lambda: (it := watcher.frame()) and all(n.arrived for n in it.nodes))
    await second.stop(leave=False)
    await seen(lambda: (it := watcher.frame()) and any(n.state == SILENT for n in it.nodes))
    gone = watcher.frame()
    assert gone is not None
    assert [node.name for node in gone.nodes if node.state == SILENT] == ["b"]
    assert any(lamp.name == "unreachable" and lamp.state != GOOD for lamp in gone.lamps)
    assert any("b does not answer" in words for words in gone.events)
    await seen(lambda: (it := watcher.frame()) and it.legitimate and it.healed)


def what_one_look_sees_is_not_red(watcher: Watcher, id: str) -> None:
    assert watcher._survey is not None
    for expected in (ONCE, DOUBTS):
        watcher._frame = watcher._judged(watcher._survey, [finding("ring", int(id))])
        frame = watcher.frame()
        assert frame is not None
        assert {node.name: node.state for node in frame.nodes} == {"a": expected, "b": OK}
        assert [it.legitimate for it in frame.topics if it.name == TOPIC] == [expected == ONCE]


def test_only_who_has_the_token_may_look(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(config(tmp_path / "a", name="a")) as node:
            context = Context((node.listen,), insecure=True)
            async with dashboard(context, "127.0.0.1:0", seconds=0.1) as address:
                await ask(address)

    run(main)


async def ask(address: str) -> None:
    base = address.split("?")[0]
    async with httpx.AsyncClient(base_url=base) as stranger:
        for path in ("/", "/static/main.js", "/events", "/frame", "/?token=guess"):
            assert (await stranger.get(path)).status_code == 403
    async with httpx.AsyncClient(base_url=base) as viewer:
        page = await viewer.get(address)
        assert page.status_code == 200
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert "HttpOnly" in page.headers["set-cookie"]
        assert (await viewer.get("/static/main.js")).status_code == 200
        assert (await viewer.get("/static/../app.py")).status_code == 404
        assert (await viewer.post("/frame")).status_code == 405
        while (frame := await viewer.get("/frame")).status_code == 503:
            await asyncio.sleep(0.05)
        assert frame.json()["nodes"][0]["name"] == "a"
        refused = await viewer.post("/chaos?fault=corrupt", headers={"X-Planaria": "chaos"})
        assert refused.status_code == 403, "it was not started to be broken"
        async with viewer.stream("GET", "/events") as events:
            lines = events.aiter_lines()
            assert await anext(lines) == "event: history"
            async for line in lines:
                if line == "event: frame":
                    break


def test_other_machines_may_not_look_unless_told() -> None:
    async def main() -> None:
        with pytest.raises(UsageError, match="--open-to-others"):
            async with dashboard(Context(), "0.0.0.0:0"):
                pass
        async with dashboard(Context(("127.0.0.1:1",), insecure=True), "127.0.0.1:0") as address:
            taken = address.split("/")[2]
            with pytest.raises(UsageError, match="cannot listen"):
                async with dashboard(Context(insecure=True), taken):
                    pass
            async with httpx.AsyncClient() as viewer:
                found = await viewer.get(address.replace("/?", "/frame?"))
                assert found.status_code == 503, "nobody is there, and it says so"

    run(main)


def test_buttons_break_only_what_may_be_broken(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(config(tmp_path / "a", name="a", allow_chaos=True)) as node:
            await node.subscribe(TOPIC).ready()
            context = Context((node.listen,), insecure=True)
            async with dashboard(context, "127.0.0.1:0", seconds=0.1) as address:
                await push(address)

    run(main)


async def push(address: str) -> None:
    base, header = address.split("?")[0], {"X-Planaria": "chaos"}
    async with httpx.AsyncClient(base_url=base, timeout=30) as viewer:
        await viewer.get(address)
        asked = f"/chaos?fault=corrupt&topic={TOPIC}"
        assert (await viewer.post(asked)).status_code == 403, "a form of another site"
        wrong = await viewer.post("/chaos?fault=bribe", headers=header)
        assert (wrong.status_code, "'bribe'" in wrong.text) == (409, True)
        idle = await viewer.post("/chaos?fault=corrupt&topic=unheard", headers=header)
        assert (idle.status_code, idle.text) == (409, "corrupt: affected nothing at a\n")
        async with viewer.stream("GET", "/events") as events:
            lines = events.aiter_lines()
            await anext(line async for line in lines if line == "event: frame")
            done = await viewer.post(asked, headers=header)
            assert (done.status_code, done.text) == (200, "corrupt: affected 1 at a\n")
            await anext(line async for line in lines if done.text.strip() in line)


def test_a_look_that_raises_is_told_and_the_next_one_comes() -> None:
    class Looks(Watcher):
        def __init__(self) -> None:
            super().__init__(Surveyor(Context(("127.0.0.1:1",), insecure=True)))

        async def look(self) -> bool:
            if self.looks == 0:
                raise ValueError("a mistake")
            self.failure, self.looks = None, self.looks + 1
            return True

    async def main() -> None:
        watcher, changed, failures = Looks(), asyncio.Condition(), list[str | None]()
        work = asyncio.ensure_future(watcher.run(0.0, changed))
        while watcher.looks < 2:
            async with changed:
                await changed.wait()
                failures.append(watcher.failure)
        work.cancel()
        assert failures[0] == "cannot look: ValueError: a mistake"
        assert failures[-1] is None

    run(main)
