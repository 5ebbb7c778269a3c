"""A small HTTP server for monitoring: metrics, health, status, traces. GET alone.

One request for each connection. Requests are bounded in size and time and connections in number,
and what is beyond a bound is answered with the status that HTTP has for it, never with silence.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import parse_qsl

from msgspec import json

from planaria.core.errors import CapacityExceeded, UsageError
from planaria.network.contacts import format_address, parse_address
from planaria.network.metrics import CONTENT_TYPE, exposition
from planaria.network.monitor import Monitor
from planaria.network.tracing import SECONDS_MAX, lines, trace
from planaria.network.unreached import why

REQUEST_BYTES_MAX = 8192  # of the request line and all headers
REQUEST_SECONDS = 5.0  # to send them, and again to take the answer
CONNECTIONS_MAX = 64
JSON, JSON_LINES = "application/json", "application/jsonl"
METHODS = ("GET", "HEAD")
LINGER_READS_MAX = 64  # of what somebody sends beyond its request, half a mebibyte

log = logging.getLogger("planaria.network")


class Answer(NamedTuple):
    """What a page says."""

    status: HTTPStatus
    kind: str
    body: bytes


Query = Mapping[str, str]
Page = Callable[[Query], Answer | Awaitable[Answer]]


class HttpServer:
    """Answers GET for some pages."""

    def __init__(self, pages: Mapping[str, Page]) -> None:
        self.pages = pages
        self.refused = 0  # connections beyond the bound
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def start(self, address: str) -> str:
        """Listen; returns the address that was bound."""
        host, port = parse_address(address)
        try:
            self._server = await asyncio.start_server(
                self._serve, host, port, limit=REQUEST_BYTES_MAX
            )
        except OSError as error:
            raise UsageError(
                f"cannot answer HTTP on {address}: {why(error)}; name another --http"
            ) from None
        return format_address(*self._server.sockets[0].getsockname()[:2])

    async def stop(self) -> None:
        """Answer nobody any more; returns when nothing of it is left."""
        if self._server is not None:
            self._server.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            if len(self._open) > CONNECTIONS_MAX:
                self.refused += 1
                answer, body = _refusal(HTTPStatus.SERVICE_UNAVAILABLE), True
            else:
                answer, body = await self._answer(reader)
            writer.write(_encoded(answer, body))
            async with asyncio.timeout(REQUEST_SECONDS):
                await _hang_up(reader, writer)
        except (TimeoutError, OSError, asyncio.CancelledError):
            writer.transport.abort()  # it does not take its answer, or the server stops
        finally:
            self._open.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> tuple[Answer, bool]:
        """The answer to one request, and whether its body is wanted."""
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
        except TimeoutError:
            return _refusal(HTTPStatus.REQUEST_TIMEOUT), True
        except asyncio.LimitOverrunError:
            return _refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE), True
        except asyncio.IncompleteReadError:
            return _refusal(HTTPStatus.BAD_REQUEST), True
        words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1.") or not words[1].startswith("/"):
            return _refusal(HTTPStatus.BAD_REQUEST), True
        method, target, _ = words
        if method not in METHODS:
            return _refusal(HTTPStatus.METHOD_NOT_ALLOWED), True
        path, _, query = target.partition("?")
        page = self.pages.get(path)
        if page is None:
            return _refusal(HTTPStatus.NOT_FOUND, self.pages), True
        try:
            found = page(dict(parse_qsl(query)))
            return (found if isinstance(found, Answer) else await found), method == "GET"
        except Exception:  # whoever asks must hear that this page is broken
            log.exception("page %s", target)
            return _refusal(HTTPStatus.INTERNAL_SERVER_ERROR), True


def monitoring(monitor: Monitor) -> dict[str, Page]:
    """The pages of a node."""

    def metrics(_: Query) -> Answer:
        return Answer(HTTPStatus.OK, CONTENT_TYPE, exposition(monitor).encode())

    def healthz(_: Query) -> Answer:
        said = {"alive": monitor.alive, "seconds_since_timeout": round(monitor.silence, 3)}
        return Answer(_good(monitor.alive), JSON, json.encode(said))

    def stablez(_: Query) -> Answer:
        found = monitor.stability()
        return Answer(_good(found.legitimate), JSON, json.encode(found))

    def status(_: Query) -> Answer:
        return Answer(HTTPStatus.OK, JSON, json.encode(monitor.status()))

    async def traced(query: Query) -> Answer:
        try:
            seconds = float(query.get("seconds", "1"))
        except ValueError:
            seconds = 0.0
        if not 0 < seconds <= SECONDS_MAX:
            return _said(HTTPStatus.BAD_REQUEST, f"seconds: above 0, at most {SECONDS_MAX:g}")
        try:
            found = await trace(monitor.node.host, seconds)
        except CapacityExceeded as error:
            return _said(HTTPStatus.CONFLICT, str(error))
        return Answer(HTTPStatus.OK, JSON_LINES, b"".join(lines(found)))

    return {
        "/metrics": metrics,
        "/healthz": healthz,
        "/stablez": stablez,
        "/status": status,
        "/trace": traced,
    }


def _good(good: bool) -> HTTPStatus:
    return HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE


def _refusal(status: HTTPStatus, pages: Mapping[str, Page] | None = None) -> Answer:
    said = {"error": status.phrase, **({"pages": sorted(pages)} if pages else {})}
    return Answer(status, JSON, json.encode(said))


def _said(status: HTTPStatus, words: str) -> Answer:
    return Answer(status, JSON, json.encode({"error": words}))


def _encoded(answer: Answer, body: bool) -> bytes:
    status, kind, data = answer
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(data)}",
        "Cache-Control: no-store",
        "Connection: close",
    ]
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        lines.append(f"Allow: {', '.join(METHODS)}")
    return "\r\n".join([*lines, "", ""]).encode() + (data if body else b"")


async def _hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Close when the other end has: with bytes of it unread, the answer might be thrown away."""
    await writer.drain()
    writer.write_eof()
    for _ in range(LINGER_READS_MAX):
        if not await reader.read(REQUEST_BYTES_MAX):
            return
