"""Records the README's five minutes with real processes, as an SVG that plays in any browser.

    python docs/recording.py          # writes docs/pictures/five-minutes.svg

Each line appears when it appeared; waits longer than `PAUSE_MAX` are cut, and said to be.
"""

import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from html import escape
from pathlib import Path
from typing import NamedTuple

OUT = Path(__file__).parent / "pictures" / "five-minutes.svg"
COLUMNS, SIZE, LEAD = 80, 13, 18
PAUSE_MAX = 1.5  # seconds without a new line that are worth watching
READ_SECONDS = 2.0  # for people to read a result before the next command
HOLD_SECONDS = 6.0  # at the end, before it starts again


class Line(NamedTuple):
    """A line, when it appeared, and whether somebody typed it."""

    time: float
    text: str
    typed: bool = False


class Terminal:
    """Runs commands as a person in one terminal would, some of them in the background."""

    def __init__(self, home: Path) -> None:
        self.lines: list[Line] = []
        self._new: queue.Queue[str | None] = queue.Queue()
        self._running: list[subprocess.Popen[str]] = []
        self._environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("PLANARIA_")},
            "XDG_CONFIG_HOME": str(home), "XDG_STATE_HOME": str(home), "COLUMNS": str(COLUMNS),
        }  # fmt: skip
        self._environment.pop("XDG_RUNTIME_DIR", None)

    def type(self, command: str, *, until: str | None = None) -> None:
        """Run it to its end; what ends in `&` stays in the background, `until` it said so much."""
        self.lines.append(Line(time.monotonic(), f"$ {command}", typed=True))
        words = [sys.executable, "-m", "planaria", *command.removesuffix(" &").split()[1:]]
        process = subprocess.Popen(  # noqa: S603 - its own commands
            words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=self._environment, start_new_session=True,
        )  # fmt: skip
        self._running.append(process)
        threading.Thread(target=self._read, args=(process,), daemon=True).start()
        if until is not None or not command.endswith("&"):
            while (line := self._new.get(timeout=120)) is not None:
                self.lines.append(Line(time.monotonic(), line.rstrip()[:COLUMNS]))
                if until is not None and until in line:
                    break
        self._pause()

    def end(self) -> None:
        """End what still runs."""
        for process in reversed(self._running):
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait(60)

    def _read(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._new.put(line)
        if process is self._running[-1]:
            self._new.put(None)

    def _pause(self) -> None:
        end = time.monotonic() + READ_SECONDS
        while time.monotonic() < end:
            try:
                line = self._new.get(timeout=0.1)
            except queue.Empty:
                continue
            if line is not None:
                self.lines.append(Line(time.monotonic(), line.rstrip()[:COLUMNS]))


def drawn(lines: list[Line]) -> str:
    """The SVG: every line fades in at its time, and all of it again and again."""
    shown, at, before = [], 0.5, lines[0].time
    for line in lines:
        at += min(PAUSE_MAX, line.time - before)
        before = line.time
        shown.append((at, line))
    total = at + HOLD_SECONDS
    width, height = COLUMNS * SIZE * 0.61 + 24, LEAD * len(lines) + 24
    rows, keys = [], []
    for number, (when, line) in enumerate(shown):
        share = 100 * when / total
        hidden, seen = f"0%,{share:.2f}%{{opacity:0}}", f"{share + 0.3:.2f}%,100%{{opacity:1}}"
        keys.append(f"@keyframes l{number}{{{hidden}{seen}}}")
        style = f"animation:l{number} {total:.1f}s infinite"
        kind = ' class="t"' if line.typed else ""
        where = f'x="12" y="{24 + LEAD * number}"'
        rows.append(f'<text {where} style="{style}"{kind}>{escape(line.text)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        f'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="{SIZE}">\n'
        "<title>A network starts, delivers, is corrupted, and heals</title>\n"
        "<style>text{fill:#d8dee9;white-space:pre}.t{fill:#8fd18f;font-weight:bold}\n"
        f"{''.join(keys)}\n"
        "@media (prefers-reduced-motion:reduce){text{animation:none!important}}</style>\n"
        '<rect width="100%" height="100%" rx="8" fill="#14171a"/>\n'
        + "\n".join(rows)
        + "\n</svg>\n"
    )


def main() -> None:
    """Record, and write the picture."""
    with tempfile.TemporaryDirectory() as named:
        terminal = Terminal(Path(named))
        try:
            terminal.type("planaria up --nodes 5 --port 0 --allow-chaos &", until="Ctrl-C")
            terminal.type("planaria sub news &")
            terminal.type("planaria pub news hello")
            terminal.type("planaria chaos corrupt")
            terminal.type("planaria doctor")
        finally:
            terminal.end()
    OUT.write_text(drawn(terminal.lines))


if __name__ == "__main__":
    main()
