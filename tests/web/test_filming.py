"""A live network in a trace: pictures, verdicts, who went and came back: as a simulation."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import cast

import pytest

from live_lab import TOPIC, config, run, running
from planaria.cli import live_trace
from planaria.cli.live_trace import _timed, trace_network
from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.trace import Row
from planaria.network.context import Context
from planaria.network.live import LiveNode
from planaria.network.survey import Seen, Surveyor
from planaria.web.filming import Film
from planaria.web.frames import SILENT, Recording
from planaria.web.pictures.picture import RING
from planaria.web.recorded import recording
from planaria.web.snapshots import START, developed
from planaria.web.watching import Watcher

SECOND = 1000


def replayed(film: Film) -> Recording:
    return recording(
        film.rows(), "a film", per_frame=SECOND, unit="second",
        album=developed(film.album()), names=film.names(),
    )  # fmt: skip


def test_a_film_tells_who_went_what_was_wrong_and_that_it_healed(tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            first = await stack.enter_async_context(running(config(tmp_path / "a", name="a")))
            settings = config(tmp_path / "b", name="b", join=(first.listen,), supervise=False)
            second = LiveNode(settings)
            await second.start()
            for node in (first, second):
                await node.subscribe(TOPIC).ready()
            context = Context((first.listen,), insecure=True)
            surveyor = await stack.enter_async_context(Surveyor(context))
            film = Film(Watcher(surveyor))

            async def seen(holds: Callable[[], object]) -> None:
                while not holds():
                    assert await film.take()

            def verdicts() -> list[str | None]:
                return [it.message_type for it in film.rows() if it.kind == "verdict"]

            await seen(lambda: film.taken and len(film.taken[-1].frame.edges) == 1)
            film.taken = film.taken[-1:]
            await second.stop(leave=False)
            await seen(lambda: verdicts()[-1] != "legitimate")
            again = await stack.enter_async_context(running(settings))
            await again.subscribe(TOPIC).ready()
            await seen(lambda: verdicts()[-1] == "legitimate" and len(film.taken[-1].uptimes) == 2)
            judge(film, first.host.node.id, second.host.node.id)

    run(main)


def judge(film: Film, first: NodeId, second: NodeId) -> None:
    lives = [(it.node, it.kind) for it in film.rows() if it.node == second]
    assert lives == [(second, "start"), (second, "stop"), (second, "restart")]
    assert [it.kind for it in film.rows() if it.node == first] == ["start"]
    for number, one in enumerate(film.taken):  # as if a second had passed between looks
        film.taken[number] = type(one)(film.began + number * SECOND, one.frame, one.uptimes)
    found = replayed(film)
    assert len(found.frames) == len(film.taken)
    assert sorted(node.name for node in found.nodes) == ["a", "b"]
    assert found.frames[0].edges == [(0, 1, RING)]
    at = [node.id for node in found.nodes].index(str(second))
    assert {SILENT} == {it.states[at] for it in found.frames if at in it.states}
    assert any(it.legitimate is False and it.lamps for it in found.frames)
    assert found.frames[-1].legitimate
    assert [words for it in found.frames for words in it.events] == [
        "b stopped", "b started again"
    ]  # fmt: skip
    assert found.frames[0].figures[at]["store"].endswith("bytes")


def test_a_second_without_a_look_shows_the_one_before(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(config(tmp_path, name="a")) as node:
            await node.subscribe(TOPIC).ready()
            async with Surveyor(Context((node.listen,), insecure=True)) as surveyor:
                film = Film(Watcher(surveyor))
                assert await film.take()
        (one,) = film.taken
        film.taken.append(type(one)(one.tick + 3500, one.frame, one.uptimes))
        assert [*developed(film.album())] == [START, 0, 1, 2, 3]

    run(main)


def test_rows_of_a_wrong_clock_are_moved() -> None:
    row = Row(100_000, NodeId(1), "timeout", None, None, None, None, 0, None)
    seen = Seen(None, "", clock=60.0, trip=0.01)  # type: ignore[arg-type]
    assert _timed(row, seen, 0).tick == 40_000
    assert _timed(row, seen, 50_000).tick == 50_000
    seen.clock = 0.05
    assert _timed(row, seen, 0).tick == 100_000, "nobody knows it better"


def test_a_live_trace_has_the_rows_of_all_and_pictures_even_of_who_answers_no_http(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            first = config(tmp_path / "a", name="a", http="127.0.0.1:0")
            node = await stack.enter_async_context(running(first))
            settings = config(tmp_path / "b", name="b", join=(node.listen,), supervise=False)
            other = await stack.enter_async_context(running(settings))
            for it in (node, other):
                await it.subscribe(TOPIC).ready()
            context = Context((node.listen,), insecure=True)
            found = await trace_network(context, 1.5)
            assert (found.nodes, found.drawn) == (1, f"ring {TOPIC}")
            assert [it for it in found.missing if "start it with --http" in it]
            assert {*found.names.values()} == {"a", "b"}
            kinds = {row.kind for row in found.rows}
            assert {"start", "verdict", "timeout", "send", "deliver"} <= kinds
            assert {row.node for row in found.rows} == {-1, *found.names}
            assert START in developed(found.pictures)
            assert found.rows[0].tick == found.began

    run(main)


def test_a_network_that_nobody_answers_for_is_an_error_and_no_endless_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Dark:
        async def take(self) -> bool:
            return False

    monkeypatch.setattr(live_trace, "SLACK_SECONDS", 0.01)
    with pytest.raises(UsageError, match="no node answers any more"):
        run(lambda: live_trace.begin(cast(Film, Dark())))
