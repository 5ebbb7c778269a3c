"""Neighbours of `mobile` found by multicast DNS, on the loopback interface."""

from pathlib import Path

import pytest

from live_lab import config, run
from overlays_lab import at, part_of, payloads, until
from planaria.core.errors import UsageError
from planaria.network.live import LiveNode
from planaria.network.overlays.discovery import Discovery


def test_nodes_that_know_no_address_find_each_other_and_lose_who_says_goodbye(
    tmp_path: Path,
) -> None:
    pytest.importorskip("zeroconf", reason="pip install 'planaria[discovery]'")

    async def main() -> None:
        one = LiveNode(config(tmp_path / "one", discover=True))
        other = LiveNode(config(tmp_path / "other", discover=True))
        stranger = LiveNode(config(tmp_path / "stranger", discover=True, cluster="elsewhere"))
        async with one, stranger, at(one) as publisher:
            async with (
                other,
                at(other) as reader,
                reader.subscribe("news", overlay="mobile") as events,
            ):
                await events.ready()
                await publisher.publish("news", b"found", overlay="mobile")
                assert await payloads(events, 1) == [b"found"]
            await until(lambda: not part_of(one, "mobile").reach)
            assert not part_of(stranger, "mobile").reach
            assert not stranger.host.links

    run(main)


def test_without_the_library_or_a_numeric_address_one_line_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="numeric address"):
        Discovery(None, "planaria", "localhost:7400")  # type: ignore[arg-type]
    monkeypatch.setitem(__import__("sys").modules, "zeroconf.asyncio", None)
    with pytest.raises(UsageError, match=r"planaria\[discovery\]"):
        Discovery(None, "planaria", "127.0.0.1:7400")  # type: ignore[arg-type]
