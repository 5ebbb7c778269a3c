"""The page in a real browser: what it draws, and what keys, clicks and a narrow screen do."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from planaria.core.trace import Row
from planaria.web.page import whole
from planaria.web.recorded import recording

playwright = pytest.importorskip("playwright.sync_api", reason="skipped: no Playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
NODES, INTERVALS = 12, 6

if CHROMIUM is None:
    pytest.skip("skipped: no Chromium (apt install chromium)", allow_module_level=True)


def rows(nodes: int) -> Iterator[Row]:
    def row(tick: int, node: int, kind: str, word: str | None = None) -> Row:
        return Row(tick, node, kind, None, None, word, None, 0, None)

    yield from (row(0, id, "start") for id in range(nodes))
    for interval in range(INTERVALS):
        began = interval * 100
        for id in range(nodes):
            other = (id + 1) % nodes
            yield Row(began + 5, id, "deliver", other, id, "skipring.check", 1, 0, 10)
            if interval == 3:
                yield Row(began + 6, id, "deliver", 0, id, "publications.flood", 2, 0, 10)
        if interval == 2:
            yield row(began + 50, 4, "stop")
            yield row(began + 50, -1, "fault", "at 2.5 crash count=1")
        if interval == 4:
            yield row(began + 50, 4, "restart")
        verdict = "ring" if interval in (2, 3) else "legitimate"
        yield row(began + 100, -1, "verdict", verdict)


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    with playwright.sync_playwright() as tools:
        found = tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


class Opened:
    """A page with a recorded run, and whatever went wrong in it."""

    def __init__(self, browser: object, folder: Path, nodes: int = NODES, **how: object) -> None:
        file = folder / "run.html"
        made = recording(rows(nodes), "a run <b>", per_frame=100, unit="interval")
        file.write_text(whole(made))
        self.page = browser.new_page(**how)  # type: ignore[attr-defined]
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda it: self._unless(it.type != "error", it.text))
        self.page.on("request", lambda it: self._unless(it.url == file.as_uri(), it.url))
        self.page.goto(file.as_uri())

    def _unless(self, good: bool, words: str) -> None:
        if not good:
            self.errors.append(words)

    def text(self, place: str) -> str:
        return str(self.page.locator(place).inner_text())

    def inked(self, red: int, green: int, blue: int) -> int:
        """How many pixels of the picture have about this colour."""
        script = """([r, g, b]) => {
            const c = document.getElementById('canvas');
            const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
            let n = 0;
            for (let i = 0; i < d.length; i += 4)
                n += d[i+3] > 200 &&
                    Math.abs(d[i]-r) + Math.abs(d[i+1]-g) + Math.abs(d[i+2]-b) < 24;
            return n; }"""
        return int(self.page.evaluate(script, [red, green, blue]))


GREEN, GREY, BLUE = (0x1A, 0x7F, 0x4B), (0x8A, 0x8F, 0x96), (0x2B, 0x6C, 0xB0)


def test_a_run_is_replayed(browser: object, tmp_path: Path) -> None:
    it = Opened(browser, tmp_path)
    assert it.text("#verdict") == "legitimate"
    assert it.text("h1") == "a run <b>"
    assert it.inked(*GREEN) > 0
    assert it.inked(*BLUE) > 0, "the ring"
    grey = it.inked(*GREY)  # the edges of letters
    it.page.locator("#slider").fill("2")
    it.page.wait_for_timeout(800)
    assert it.text("#verdict") == "not legitimate: ring"
    assert it.text("#when") == "interval 3"
    assert it.inked(*GREY) > grey + 100, "the node that stopped"
    assert it.text("#legend").split("\n") == ["ring", "in place", "does not answer"]
    assert "broken" in (it.page.locator("#lamps li").first.get_attribute("class") or "")
    assert "crash count=1" in it.text("#events")
    assert not it.page.locator("#clientsection").is_visible(), "a simulation has no clients"
    assert it.errors == []


def test_keys_choose_nodes_and_play(browser: object, tmp_path: Path) -> None:
    it = Opened(browser, tmp_path)
    it.page.keyboard.press("ArrowRight")
    it.page.keyboard.press("ArrowRight")
    assert it.page.locator("#choose").input_value() == "1"
    assert "0 (ring), 2 (ring)" in it.text("#detail")
    it.page.keyboard.press("ArrowLeft")
    it.page.keyboard.press("ArrowLeft")
    assert it.page.locator("#choose").input_value() == str(NODES - 1)
    it.page.keyboard.press("Escape")
    assert it.page.locator("#choose").input_value() == ""
    it.page.keyboard.press("End")
    assert it.text("#when") == f"interval {INTERVALS}"
    it.page.keyboard.press("Space")
    assert it.text("#when") == "interval 1", "from the beginning again"
    playwright.expect(it.page.locator("#slider")).not_to_have_value("0", timeout=60_000)
    it.page.keyboard.press("Space")
    assert it.page.locator("#play").get_attribute("aria-label") == "Play"
    assert it.errors == []


def test_a_click_chooses_the_node_under_it(browser: object, tmp_path: Path) -> None:
    it = Opened(browser, tmp_path)
    box = it.page.locator("#canvas").bounding_box()
    top = box["y"] + 36  # node 0 is at the top, the margin away from the edge
    it.page.mouse.click(box["x"] + box["width"] / 2, top)
    assert it.page.locator("#choose").input_value() == "0"
    it.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert it.page.locator("#choose").input_value() == ""


def test_light_and_dark(browser: object, tmp_path: Path) -> None:
    it = Opened(browser, tmp_path, color_scheme="dark")
    script = "getComputedStyle(document.body).backgroundColor"
    assert it.page.evaluate(script) == "rgb(20, 23, 26)"
    it.page.keyboard.press("t")
    assert it.page.evaluate(script) == "rgb(251, 251, 248)"
    it.page.locator("#theme").click()
    assert it.page.evaluate(script) == "rgb(20, 23, 26)"


def test_a_phone_shows_everything_without_scrolling_sideways(
    browser: object, tmp_path: Path
) -> None:
    it = Opened(browser, tmp_path, viewport={"width": 360, "height": 740})
    wide = it.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 360
    assert it.page.locator("#lamps").is_visible()


def test_a_thousand_nodes_are_drawn(browser: object, tmp_path: Path) -> None:
    it = Opened(browser, tmp_path, nodes=1000)
    it.page.wait_for_timeout(800)
    assert it.inked(*GREEN) > 1000
    assert it.page.locator("#choose option").count() == 1001
    assert it.errors == []
