"""The page: as files for a server, or as one file that needs nothing else."""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files

from msgspec import json

from planaria.web.frames import Recording

STYLES = ("vendor/uPlot.min.css", "style.css")
SCRIPTS = (
    *("vendor/uPlot.iife.min.js", "drawing.js", "charts.js", "panels.js", "replay.js", "main.js"),
)
ASSETS = (*STYLES, *SCRIPTS)
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def asset(name: str) -> bytes:
    """A file of the page; raises KeyError for what is none."""
    if name not in ASSETS:
        raise KeyError(name)
    return files("planaria.web").joinpath("static", name).read_bytes()


def served(title: str) -> str:
    """The page as a server gives it: scripts and styles are files of their own."""
    styles = "".join(f'<link rel="stylesheet" href="static/{name}">\n' for name in STYLES)
    scripts = "".join(f'<script src="static/{name}"></script>\n' for name in SCRIPTS)
    return _filled(title, styles, "", scripts)


def whole(recording: Recording) -> str:
    """The page and a recorded run in one file, which may load nothing and run nothing else."""
    styles = "".join(f"<style>\n{_text(name)}\n</style>\n" for name in STYLES)
    codes = [f"\n{_text(name)}\n" for name in SCRIPTS]
    hashes = " ".join(
        f"'sha256-{b64encode(sha256(code.encode()).digest()).decode()}'" for code in codes
    )
    policy = f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:"
    meta = f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
    data = json.encode(recording).decode().replace("<", "\\u003c")
    scripts = f'<script type="application/json" id="recording">{data}</script>\n'
    scripts += "".join(f"<script>{code}</script>\n" for code in codes)
    return _filled(recording.title, meta + styles, "recorded", scripts)


@cache
def _text(name: str) -> str:
    text = asset(name).decode()
    if "</" in text:  # would end the element that it stands in
        raise ValueError(f"{name} cannot stand inside a page")
    return text


def _filled(title: str, head: str, mode: str, scripts: str) -> str:
    page = files("planaria.web").joinpath("static", "page.html").read_text()
    for name, value in (("TITLE", escape(title)), ("HEAD", head), ("MODE", mode)):
        page = page.replace(f"<!--{name}-->", value)
    return page.replace("<!--SCRIPTS-->", scripts)
