"""An application that embeds a node, in the overlays beside `ring`; and what `/metrics` counts."""

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from live_lab import config, run, until
from planaria.core.errors import CapacityExceeded, UsageError
from planaria.network import application
from planaria.network.client.client import connect
from planaria.network.client.events import Ack
from planaria.network.embedded import Subscription
from planaria.network.live import LiveNode
from planaria.network.metrics import METRICS, exposition
from planaria.protocols.mobile import dissemination

WISHES = {
    "gossip": ("weather/#", None),
    "content": ("weather/#", "unit = 'C'"),
    "mobile": ("weather", None),
}


def value(text: str, name: str, overlay: str) -> int:
    """One sample of `/metrics`."""
    assert f"planaria_overlay_{name}" in METRICS
    found = re.search(
        rf'^planaria_overlay_{name}{{overlay="{overlay}"}} (\d+)$', text, re.MULTILINE
    )
    assert found is not None, name
    return int(found[1])


def test_an_application_publishes_and_reads_in_every_overlay(tmp_path: Path) -> None:
    async def main() -> None:
        here = LiveNode(config(tmp_path / "a", name="a"))
        reading = {
            overlay: here.subscribe(pattern, overlay=overlay, where=where)
            for overlay, (pattern, where) in WISHES.items()
        }
        async with here:
            settings = config(tmp_path / "b", name="b", join=(here.listen,), supervise=False)
            async with LiveNode(settings) as there:
                for events in reading.values():
                    await events.ready()
                for overlay, events in reading.items():
                    await one(there, overlay, events)
                await counted(here, there)
        for events in reading.values():
            async for _ in events:
                pass  # it ends with the node
        with pytest.raises(UsageError, match="has stopped"):
            await here.publish("weather", b"too late", overlay="gossip")

    run(main)


async def one(there: LiveNode, overlay: str, events: object) -> None:
    """Publish until it comes: nobody may have met the reader yet, and nothing is kept for it."""
    headers = {"unit": "C"} if overlay == "content" else None

    async def publish() -> None:
        while True:
            await there.publish("weather", b"mild", headers=headers, overlay=overlay)
            await asyncio.sleep(0.3)

    work = asyncio.ensure_future(publish())
    try:
        (first, *_) = await anext(events)  # type: ignore[call-overload]
    finally:
        work.cancel()
    assert (first.topic, first.payload) == ("weather", b"mild")
    assert (first.publisher is None) == (overlay == "mobile"), "mobile names nobody"


async def counted(here: LiveNode, there: LiveNode) -> None:
    """Both ends have counted what went from one to the other."""
    for overlay in WISHES:
        mine, its = exposition(here.monitor), exposition(there.monitor)
        assert value(its, "published_total", overlay) > 0
        assert value(its, "forwarded_total", overlay) > 0
        assert value(mine, "received_total", overlay) > 0
        assert value(mine, "deliveries_total", overlay) > 0
        assert value(mine, "clients", overlay) == 1
        assert value(mine, "links", overlay) == 1
        assert value(mine, "topics", overlay) > 0
        assert value(mine, "lost_total", overlay) == 0
    await until(lambda: all(value(exposition(here.monitor), "legitimate", it) for it in WISHES))


def test_what_an_overlay_cannot_do_is_refused_in_a_line(tmp_path: Path) -> None:
    async def main() -> None:
        node = LiveNode(config(tmp_path / "a", overlay=("ring", "gossip")))
        with pytest.raises(UsageError, match="unknown overlay"):
            node.subscribe("weather", overlay="carrier pigeons")
        with pytest.raises(UsageError, match="unknown overlay 5"):
            node.subscribe("weather", overlay=cast(str, 5))
        with pytest.raises(UsageError, match="no conditions within a node"):
            node.subscribe("weather", where="unit = 'C'")
        async with node:
            with pytest.raises(UsageError, match="takes no part in mobile"):
                await node.publish("weather", b"", overlay="mobile")
            with pytest.raises(UsageError, match="takes no part in mobile"):
                node.subscribe("weather", overlay="mobile")
            with pytest.raises(UsageError, match="gossip subscribes to a topic and all below"):
                node.subscribe("+/weather", overlay="gossip")
            ack = await node.publish_many("weather", [b"a", b"b"], overlay="gossip")
            assert ack is not None
            assert ack.count == 2
            with pytest.raises(UsageError, match="wildcard"):
                await node.publish("weather/#", b"", overlay="gossip")
            for overlay in ("ring", "gossip"):
                with pytest.raises(UsageError, match="payloads of type int: give a list"):
                    await node.publish_many("weather", cast(list[bytes], 5), overlay=overlay)

    run(main)


@pytest.mark.parametrize("overlay", WISHES)
def test_many_large_ones_are_published_in_as_many_messages_as_they_need(
    overlay: str, tmp_path: Path
) -> None:
    """600 of 3,000 bytes are more than a message holds, and so are six of 200,000."""
    sent = [*(b"%03d" % number + bytes(3_000) for number in range(600)), *[bytes(200_000)] * 6]

    async def main() -> None:
        async with LiveNode(config(tmp_path / "a")) as node:
            ack = await node.publish_many("weather", sent, overlay=overlay)
            assert ack is not None
            assert ack.count == len(sent)

    run(main)


GOOD: list[dict[str, Any]] = [
    {"payload": "text"},
    {"payload": bytearray(b"text")},
    {"payload": memoryview(b"textures").cast("I")},
    {"payload": b"x", "key": "k", "headers": {"a": b"b", "c": "d"}, "timestamp": 5},
]
BAD: list[dict[str, Any]] = [
    {"payload": None},
    {"payload": 5},
    {"payload": "\ud800"},
    {"payload": b"x", "key": 5},
    {"payload": b"x", "timestamp": 1.5},
    {"payload": b"x", "timestamp": 1 << 62},
    {"payload": b"x", "headers": {"a": 3}},
    {"payload": b"x", "headers": {3: "a"}},
    {"payload": b"x", "headers": {"\ud800": "a"}},
    {"payload": b"x", "headers": [("a", "b")]},
    {"payload": b"x", "headers": {"$token": "mine"}},
    {"payload": bytes((1 << 20) + 1)},
]


@pytest.mark.parametrize("overlay", ["ring", *WISHES])
def test_whatever_is_published_is_acknowledged_or_refused_and_costs_nobody_else_anything(
    overlay: str, tmp_path: Path
) -> None:
    async def main() -> None:
        async with LiveNode(config(tmp_path / "a")) as node:
            for given in (*GOOD, *BAD):
                one, other, after = await asyncio.wait_for(
                    asyncio.gather(
                        node.publish("weather", **given, overlay=overlay),
                        node.publish("other", b"good", overlay=overlay),
                        node.publish("weather", b"good", overlay=overlay),
                        return_exceptions=True,
                    ),
                    10,
                )
                unnamed = overlay == "mobile" and "key" in given  # it has neither keys nor headers
                assert isinstance(one, UsageError if given in BAD or unnamed else Ack), given
                assert isinstance(other, Ack), given
                assert isinstance(after, Ack), given

    run(main)


@pytest.mark.parametrize("overlay", ["ring", *WISHES])
@pytest.mark.parametrize("kind", [bytearray, memoryview, lambda it: it.decode()])
def test_many_are_bounded_by_their_bytes_whatever_holds_them(
    kind: Callable[[bytes], Any], overlay: str, tmp_path: Path
) -> None:
    async def main() -> None:
        async with LiveNode(config(tmp_path / "a")) as node:
            ack = await node.publish_many("weather", [kind(bytes(3_000))] * 600, overlay=overlay)
            assert ack is not None
            assert ack.count == 600

    run(main)


@pytest.mark.parametrize("overlay", ["ring", "gossip"])
def test_what_a_source_gave_before_it_failed_is_published(overlay: str, tmp_path: Path) -> None:
    def failing() -> Iterator[bytes]:
        yield from (b"%d" % number for number in range(700))
        raise KeyError("unplugged")

    async def main() -> None:
        node = LiveNode(config(tmp_path / "a"))
        reading = node.subscribe("weather", overlay=overlay)
        async with node:
            await reading.ready()
            for payloads, error in ((failing(), KeyError), ([b"a", b"b", None], UsageError)):
                with pytest.raises(error):
                    await node.publish_many("weather", payloads, overlay=overlay)  # type: ignore[arg-type]
            got = list[bytes]()
            while len(got) < 702:
                got += [one.payload for one in await anext(reading)]
            assert got == [*(b"%d" % number for number in range(700)), b"a", b"b"]
        with pytest.raises(UsageError, match="has stopped"):
            node.subscribe("weather", overlay=overlay)

    run(main)


@pytest.mark.parametrize("who", ["application", "client"])
@pytest.mark.parametrize("overlay", WISHES)
def test_what_is_published_faster_than_links_take_it_waits_and_is_not_dropped(
    overlay: str, who: str, tmp_path: Path
) -> None:
    """A link that takes 128 KiB at a time, and twenty times as much."""
    sent = [b"%03d" % number + bytes(30_000) for number in range(80)]

    async def main() -> None:
        here = LiveNode(config(tmp_path / "a", name="a"))
        reading = here.subscribe("weather", overlay=overlay)
        async with here:
            settings = config(tmp_path / "b", name="b", join=(here.listen,), supervise=False)
            async with LiveNode(settings) as there, connect(there.listen, insecure=True) as client:
                await reading.ready()
                await met(there, overlay, reading)
                for link in there.host.links.values():
                    link.link.bulk.bytes_max = 1 << 17
                publisher = there if who == "application" else client
                await publisher.publish_many("weather", sent, overlay=overlay)
                got = set[bytes]()
                while len(got) < len(sent):
                    some = await asyncio.wait_for(anext(reading), 30)
                    got |= {one.payload for one in some} - {b"met"}
                assert not there.host.dropped or overlay != "gossip", "which sends nothing again"

    run(main)


async def met(there: LiveNode, overlay: str, reading: Subscription) -> None:
    """Publish until something comes."""
    came = asyncio.ensure_future(anext(reading))
    while not came.done():
        await there.publish("weather", b"met", overlay=overlay)
        await asyncio.wait([came], timeout=0.3)


def test_a_part_that_takes_no_more_is_given_time_and_what_is_published_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of mobile 1,024 wait for a turn, so three times as many do not go at once."""

    async def main() -> None:
        here = LiveNode(config(tmp_path / "a", name="a"))
        reading = here.subscribe("weather", overlay="mobile")
        async with here:
            settings = config(tmp_path / "b", name="b", join=(here.listen,), supervise=False)
            async with LiveNode(settings) as there:
                await reading.ready()
                sent = [b"%d" % number for number in range(3 * dissemination.LOCAL_MAX)]
                ack = await there.publish_many("weather", sent, overlay="mobile")
                assert ack is not None
                assert ack.count == len(sent)
                got = list[bytes]()
                while len(got) < len(sent):
                    some = await asyncio.wait_for(anext(reading), 30)
                    got += [one.payload for one in some]
                assert sorted(got) == sorted(sent), "each once, however often it was tried"
                monkeypatch.setattr(application, "FULL_TRIES", 1)
                monkeypatch.setattr(dissemination, "LOCAL_MAX", 0)
                with pytest.raises(CapacityExceeded, match="try again later; 0 are published"):
                    await there.publish_many("weather", sent, overlay="mobile")

    run(main)
