"""A live network of all overlays in a real browser: one page and one network for all tests."""

import asyncio
import json
import shutil
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from overlays_lab import at, network, part_of
from planaria.cli.main import main
from planaria.network.client.client import Client
from planaria.network.context import Context
from planaria.network.live import LiveNode

playwright = pytest.importorskip("playwright.sync_api", reason="skipped: no Playwright")
pytest.importorskip("starlette", reason="skipped: no starlette")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
if CHROMIUM is None:
    pytest.skip("skipped: no Chromium (apt install chromium)", allow_module_level=True)

from planaria.web.serving import dashboard  # noqa: E402 - it needs starlette

N = 4
PATIENCE = 60_000  # milliseconds for what must come; how long it takes is not judged
WISHES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("news", {}),
    ("weather/#", {"overlay": "gossip"}),
    ("weather/uk/#", {"overlay": "gossip"}),
    ("flights/#", {"overlay": "content", "where": "delay > 60"}),
    ("crowd", {"overlay": "mobile"}),
)


class Board:
    """Nodes with clients and their dashboard, in a thread; `page` shows it."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop
        self.nodes: list[LiveNode] = []
        self.client: Client
        self.page: Any = None
        self.errors: list[str] = []
        self.address = ""
        self._done = asyncio.Event()

    def do(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """Have something done beside the nodes."""

        async def waited() -> Any:
            return await work()

        return asyncio.run_coroutine_threadsafe(waited(), self.loop).result(60)

    @asynccontextmanager
    async def running(self, home: Path) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            self.nodes = await stack.enter_async_context(network(home, N))
            for number, node in enumerate(self.nodes):
                self.client = await stack.enter_async_context(at(node))
                for pattern, how in WISHES[number % 2 :: 2] if number < 2 else WISHES[:1]:
                    events: Any = self.client.subscribe(pattern, **how)
                    await (await stack.enter_async_context(events)).ready()
            context = Context((self.nodes[0].listen,), insecure=True)
            self.address = await stack.enter_async_context(
                dashboard(context, "127.0.0.1:0", seconds=0.2)
            )
            yield

    def live(self, home: Path, started: threading.Event) -> None:
        async def main() -> None:
            self.loop = asyncio.get_running_loop()
            async with self.running(home):
                started.set()
                await self._done.wait()

        try:
            asyncio.run(main())
        finally:
            started.set()

    def end(self) -> None:
        self.loop.call_soon_threadsafe(self._done.set)

    def choose(self, overlay: str, topic: str) -> None:
        """Click on a topic, and wait until it is drawn and nothing is wrong."""
        rows = self.page.locator("#topics tr", has_text=overlay or topic)
        rows.filter(has_text=topic).get_by_role("button").first.click()
        self.page.locator(f'#topics button[aria-pressed="true"] >> text="{topic}"').wait_for()
        self.page.locator("#verdict.good").wait_for(timeout=PATIENCE)

    def seen(self, place: str, words: str) -> None:
        """Wait for words on the page."""
        self.page.locator(place, has_text=words).first.wait_for(timeout=PATIENCE)


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    board, started = Board(), threading.Event()
    thread = threading.Thread(
        target=board.live, args=(tmp_path_factory.mktemp("board"), started), daemon=True
    )
    thread.start()
    assert started.wait(60)
    assert board.address, "the network did not start"
    with playwright.sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        board.page = browser.new_page()
        board.page.on("pageerror", lambda error: board.errors.append(str(error)))
        board.page.goto(board.address)
        yield board
        board.end()
        thread.join(60)
        browser.close()
    assert not thread.is_alive()
    assert board.errors == []


def test_groups_are_drawn_with_the_topics_they_belong_to(board: Board) -> None:
    board.choose("gossip", "all groups")
    board.seen("#legend", "contact in a topic above")
    assert board.page.locator("#lamps li.group").all_inner_texts() == [
        "gossip",
        "content",
        "mobile",
    ]
    assert board.page.locator('#lamps li[aria-label="gossip connected: holds"]').count() == 1
    board.page.locator("#choose").select_option(label="n0")
    board.seen("#detail", "in weather/uk/#")


def test_brokers_tell_what_is_wanted_behind_their_links(board: Board) -> None:
    board.choose("content", "all brokers")
    board.seen("#legend", "conditions known behind a link")
    assert "tree" in board.page.locator("#legend").inner_text()
    board.page.locator("#choose").select_option(label="n1")
    board.seen("#detail", "delay > 60")


def test_clients_are_listed_with_what_they_do_at_which_node(board: Board) -> None:
    row = board.page.locator("#clients li", has_text="follows flights/# in content")
    row.locator("text=where delay > 60").first.wait_for(timeout=PATIENCE)
    assert "anonymous 127.0.0.1:" in row.inner_text()
    assert "to it" in row.inner_text()
    board.seen("#clients li", "asks: ")  # the dashboard's own
    row.get_by_role("button", name="at n1").focus()
    now = board.page.locator("#clock").inner_text()
    script = "(old) => document.querySelector('#clock').innerText !== old"
    board.page.wait_for_function(script, arg=now, timeout=PATIENCE)
    board.page.keyboard.press("Enter")
    assert board.page.locator("#choose option:checked").inner_text() == "n1"
    board.seen("#detail .client", "follows weather/# in gossip")
    board.page.set_viewport_size({"width": 360, "height": 740})
    fits = "document.documentElement.scrollWidth <= 360"  # once it is drawn for this width
    board.page.wait_for_function(fits, timeout=PATIENCE)
    board.page.set_viewport_size({"width": 1280, "height": 720})


def test_who_came_to_a_client_by_keyboard_stays_there_while_others_come(board: Board) -> None:
    """The list is laid anew then, and what is laid anew loses the focus."""
    row = board.page.locator("#clients li", has_text="follows flights/# in content")
    row.get_by_role("button", name="at n1").focus()
    client = at(board.nodes[0])
    events: Any = client.subscribe("another")
    board.do(events.ready)
    try:
        board.seen("#clients li", "follows another")
        assert row.get_by_role("button", name="at n1").evaluate(
            "it => it === document.activeElement"
        )
    finally:
        board.do(client.close)


def test_who_came_to_a_topic_by_keyboard_stays_there_while_frames_come(board: Board) -> None:
    board.page.locator("#topics button").nth(1).focus()
    script = "(old) => document.querySelector('#clock').innerText !== old"
    for _ in range(2):
        now = board.page.locator("#clock").inner_text()
        board.page.wait_for_function(script, arg=now, timeout=PATIENCE)
    board.page.keyboard.press("Enter")
    pressed = '#topics tr:nth-child(3) button[aria-pressed="true"]'
    board.page.locator(pressed).wait_for(timeout=PATIENCE)


def test_a_charter_is_told_of_the_topic_that_is_drawn(
    board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))  # where the key is that signs it
    words = ["topic", "set", "news", "--keep", "7d", "-s", board.nodes[0].listen, "--insecure"]
    assert board.do(lambda: asyncio.to_thread(main, words)) == 0
    board.choose("", "news")
    board.seen("#charter", "keeps 7d")


def test_moving_nodes_tell_their_heights_and_whose_turn_it_is(board: Board) -> None:
    board.choose("mobile", "crowd")
    board.seen("#legend", "may speak now")
    board.page.keyboard.press("Escape")
    board.page.locator("#canvas").focus()
    board.page.keyboard.press("ArrowRight")
    board.seen("#detail", "height")


def test_a_publication_is_seen_to_spread(board: Board) -> None:
    frames = board.page.evaluate_handle(
        """() => { const got = [];
        const source = new EventSource('events?overlay=content&topic=all+brokers');
        source.addEventListener('frame', (it) => got.push(JSON.parse(it.data)));
        return got; }"""
    )
    flight = json.dumps({"delay": 90}).encode()

    async def publish() -> None:
        await board.client.publish("flights/ua", flight, overlay="content")

    spread = (
        "(got) => got.some((it) => (it.pulses ?? []).length && it.nodes.some((n) => n.arrived))"
    )
    board.page.wait_for_function("(got) => got.length > 1", arg=frames, timeout=PATIENCE)
    board.do(publish)
    board.page.wait_for_function(spread, arg=frames, timeout=PATIENCE)


def test_who_is_out_of_place_is_told_in_its_own_overlay_until_it_heals(board: Board) -> None:
    board.choose("gossip", "all groups")
    before = board.page.locator("#events li").count()

    async def corrupt() -> None:
        part = part_of(board.nodes[2], "gossip")
        part.neighbours.view.clear()
        part.neighbours.view[12345] = 0
        part.subscribed.append("made/up")
        part.groups.clear()

    while not board.page.locator("#events", has_text="wrong: gossip").count():
        board.do(corrupt)  # again if it healed between two looks
        board.page.wait_for_timeout(300)
    board.page.locator("#verdict.good").wait_for(timeout=PATIENCE)
    board.seen("#events", "nothing wrong any more after")
    assert board.page.locator("#events li").count() > before
