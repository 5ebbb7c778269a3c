"""Takes the pictures of docs/dashboard.md: a live network of all overlays in a real browser.

    python docs/dashboard_pictures.py [NAME ...]      # writes docs/pictures/dashboard-*.png

Needs the extra `web`, Playwright, Pillow and Chromium. For `broken` and `healed` three of twelve
processes are killed; it says how long after the one the other was taken. Elsewhere the nodes are
in this process.
"""

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.async_api import Browser, Page, async_playwright

import planaria
from planaria.network.config import Config
from planaria.network.context import Context
from planaria.network.live import LiveNode
from planaria.web.serving import dashboard

OUT = Path(__file__).parent / "pictures"
NODES = 12
SIZE: Any = {"width": 1180, "height": 860}
PHONE: Any = {"width": 390, "height": 844}
GROUPS = ("#", "weather/#", "weather/europe/#", "weather/europe/uk/#", "sport/#", "sport/chess/#")
CONDITIONS = ("delay > 60", "carrier = 'UA'", "delay > 120 AND carrier = 'AA'", "origin = 'JFK'")

SHOWN = {"ring": "news", "gossip": "all groups", "content": "all brokers", "mobile": "crowd"}


@asynccontextmanager
async def network(home: Path) -> AsyncIterator[list[LiveNode]]:
    """Twelve nodes; in `mobile` each has those as neighbours that are two or fewer before it."""
    nodes: list[LiveNode] = []
    try:
        for number in range(NODES):
            before = [it.listen for it in nodes]
            near = [before[number - step] for step in (1, 3) if step <= number]
            config = Config(
                dir=home / f"n{number + 1}", listen="127.0.0.1:0", insecure=True, interval=0.2,
                supervise=number < 2, name=f"n{number + 1}", join=tuple(before[:1]),
                link=tuple(near or ["127.0.0.1:1"]),
            )  # fmt: skip
            nodes.append(LiveNode(config))
            await nodes[-1].start()
        yield nodes
    finally:
        await asyncio.gather(*(it.stop(leave=False) for it in nodes), return_exceptions=True)


@asynccontextmanager
async def busy(nodes: list[LiveNode]) -> AsyncIterator[None]:
    """Clients of all overlays that read and publish."""
    async with AsyncExitStack() as stack:
        readers: list[Any] = []
        clients = []
        for number, node in enumerate(nodes):
            client = await stack.enter_async_context(planaria.connect(node.listen, insecure=True))
            clients.append(client)
            wanted: list[tuple[str, dict[str, str]]] = [
                ("news", {}),
                (GROUPS[number % len(GROUPS)], {"overlay": "gossip"}),
                ("crowd", {"overlay": "mobile"}),
            ]
            if number % 2:
                where = CONDITIONS[number // 2 % len(CONDITIONS)]
                wanted.append(("flights/#", {"overlay": "content", "where": where}))
            for pattern, how in wanted:
                events = client.subscribe(pattern, **how)
                readers.append(await stack.enter_async_context(events))
        work = [asyncio.ensure_future(_read(it)) for it in readers]
        work.append(asyncio.ensure_future(_publish(clients)))
        try:
            yield
        finally:
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)


async def _read(events: Any) -> None:
    async for _ in events:
        pass


async def _publish(clients: list[Any]) -> None:
    """A few publications a second, in each overlay."""
    number = 0
    while True:
        client = clients[number % 5]
        flight = json.dumps({"delay": number % 150, "carrier": "UA", "origin": "JFK"}).encode()
        await client.publish("news", b"hello")
        await client.publish("weather/europe/uk", b"rain", overlay="gossip")
        await client.publish("flights/ua", flight, overlay="content")
        await client.publish("crowd", b"psst", overlay="mobile")
        number += 1
        await asyncio.sleep(0.5)


async def take(page: Page, overlay: str, topic: str) -> None:
    """One picture: when the overlay is drawn and legitimate, with a node chosen."""
    row = page.locator("#topics tr", has_text=topic)
    await row.get_by_role("button").first.click()
    await page.locator("#choose").select_option(label="n4")
    await page.wait_for_timeout(2500)
    await page.locator("#verdict.good").wait_for(timeout=120_000)
    await page.wait_for_timeout(800)
    await page.screenshot(path=OUT / f"dashboard-{overlay}.png", clip={"x": 0, "y": 0, **SIZE})


async def overlays(browser: Browser, wanted: set[str]) -> None:
    """All overlays of one network."""
    with tempfile.TemporaryDirectory() as home:
        async with network(Path(home)) as nodes, busy(nodes):
            context = Context((nodes[0].listen, nodes[5].listen), insecure=True)
            async with dashboard(context, "127.0.0.1:0") as address:
                page = await browser.new_page(viewport=SIZE)
                await page.goto(address)
                for overlay, topic in SHOWN.items():
                    if not wanted or overlay in wanted:
                        await take(page, overlay, topic)
                if not wanted or "phone" in wanted:
                    page = await browser.new_page(viewport=PHONE, color_scheme="dark")
                    await page.goto(address)
                    await page.locator("#topics button").first.wait_for(timeout=120_000)
                    await page.wait_for_timeout(1500)
                    await page.screenshot(path=OUT / "dashboard-phone.png", full_page=True)


async def watched(browser: Browser, ready: dict[str, Any]) -> None:
    """Kill them, and take both pictures."""
    page = await browser.new_page(viewport=SIZE)
    await page.goto(ready["dashboard"])
    await page.locator("#topics button").first.wait_for(timeout=120_000)
    await page.locator("#verdict.good").wait_for(timeout=120_000)
    await page.wait_for_timeout(5000)
    for node in [ready["nodes"][at] for at in (0, 4, 7)]:
        os.kill(node["pid"], signal.SIGKILL)
    await page.locator("#verdict.broken, #verdict.once").wait_for(timeout=120_000)
    since = time.monotonic()
    await page.screenshot(path=OUT / "dashboard-broken.png")
    await page.locator("#verdict.good").wait_for(timeout=120_000)
    sys.stderr.write(f"healed {time.monotonic() - since:.1f} s later\n")
    await page.wait_for_timeout(800)
    await page.screenshot(path=OUT / "dashboard-healed.png")


async def killed(browser: Browser) -> None:
    """A supervisor and two members die at once; then what is left has healed."""
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-m", "planaria", "up", "--nodes", str(NODES), "--port", "0"]
        words = [*command, "--dir", home, "--dashboard", "--json"]
        up = await asyncio.create_subprocess_exec(*words, stdout=PIPE, stderr=DEVNULL)
        try:
            assert up.stdout is not None
            ready = json.loads(await up.stdout.readline())
            async with AsyncExitStack() as stack:
                for node in ready["nodes"]:  # each becomes a member for its client
                    client = planaria.connect(node["listen"], context=ready["context"])
                    reader = (await stack.enter_async_context(client)).subscribe("news")
                    await (await stack.enter_async_context(reader)).ready()
                    await client.publish("news", node["name"])
                await watched(browser, ready)
        finally:
            up.terminate()
            await up.wait()


async def main(wanted: set[str]) -> None:
    """Take all pictures, or those that are named."""
    chromium = shutil.which("chromium") or shutil.which("chrome")
    async with async_playwright() as tools:
        browser = await tools.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        if not wanted or wanted - {"broken"}:
            await overlays(browser, wanted)
        if not wanted or "broken" in wanted:
            await killed(browser)
        await browser.close()
    for file in OUT.glob("dashboard-*.png"):
        Image.open(file).convert("RGB").quantize(96).save(file, optimize=True)


if __name__ == "__main__":
    asyncio.run(main(set(sys.argv[1:])))
