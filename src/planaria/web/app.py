"""The dashboard's server: the page, and what it shows as server-sent events.

It changes nothing, but for networks that were started to be broken.

Whoever has the token may look. It is in the address that is printed; the page keeps it in a cookie
that no script can read and no other site can use.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from hmac import compare_digest

from msgspec import json
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from planaria.core.errors import PlanariaError
from planaria.network.client.overlays import RING
from planaria.web.breaking import BUTTONS, Breaker
from planaria.web.page import POLICY, asset, served
from planaria.web.watching import Watcher

COOKIE = "planaria"
VIEWERS_MAX = 64
KINDS = {".js": "text/javascript", ".css": "text/css"}
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Dashboard:
    """Serves one network to some viewers, looking at it once for all of them."""

    def __init__(
        self, watcher: Watcher, breaker: Breaker, token: str, title: str, seconds: float
    ) -> None:
        self.watcher, self.breaker = watcher, breaker
        self.token, self.title, self.seconds = token, title, seconds
        self.breakable = False
        self.viewers = 0
        self.closing = False
        self.changed = asyncio.Condition()
        self.app = Starlette(
            lifespan=self._looking,
            routes=[
                Route("/", self._guarded(self._page)),
                Route("/static/{name:path}", self._guarded(self._asset)),
                Route("/events", self._guarded(self._events)),
                Route("/frame", self._guarded(self._frame)),
                Route("/chaos", self._guarded(self._chaos), methods=["POST"]),
            ],
        )

    @asynccontextmanager
    async def _looking(self, app: Starlette) -> AsyncIterator[None]:
        self.breakable = await self.breaker.allowed()
        work = asyncio.ensure_future(self.watcher.run(self.seconds, self.changed))
        try:
            yield
        finally:
            work.cancel()
            with suppress(asyncio.CancelledError):
                await work

    async def close(self) -> None:
        """End what is sent to open pages: a server that stops would wait for them."""
        self.closing = True
        async with self.changed:
            self.changed.notify_all()

    def _guarded(
        self, answer: Callable[[Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Only for those who show the token, in the address or in the cookie."""

        async def guarded(request: Request) -> Response:
            named = request.query_params.get("token")
            shown = named or request.cookies.get(COOKIE, "")
            if not compare_digest(shown.encode(), self.token.encode()):
                words = "the address with the token is what `planaria dashboard` printed\n"
                return PlainTextResponse(words, 403, HEADERS)
            response = await answer(request)
            response.headers.update(HEADERS)
            if named is not None:
                response.set_cookie(COOKIE, named, httponly=True, samesite="strict")
            return response

        return guarded

    async def _page(self, request: Request) -> Response:
        return HTMLResponse(served(self.title))

    async def _asset(self, request: Request) -> Response:
        name = request.path_params["name"]
        try:
            body = asset(name)
        except KeyError:
            return PlainTextResponse("no such file\n", 404)
        return Response(body, media_type=KINDS[name[name.rindex(".") :]])

    async def _frame(self, request: Request) -> Response:
        """The last frame, for scripts and tests."""
        frame = self.watcher.frame(*asked(request))
        if frame is None:
            return PlainTextResponse(f"{self.watcher.failure or 'not looked yet'}\n", 503)
        return Response(json.encode(frame), media_type="application/json")

    async def _chaos(self, request: Request) -> Response:
        """Break something. A form of another site cannot set this header."""
        if not self.breakable or request.headers.get("x-planaria") != "chaos":
            return PlainTextResponse("this network may not be broken: up --allow-chaos\n", 403)
        asked = request.query_params
        try:
            done = await self.breaker.carry_out(asked.get("fault", ""), asked.get("topic", ""))
        except PlanariaError as error:
            return PlainTextResponse(f"{error}\n", 409)
        self.watcher.note(done)
        return PlainTextResponse(f"{done}\n")

    async def _events(self, request: Request) -> Response:
        if self.viewers >= VIEWERS_MAX:
            return PlainTextResponse(f"{VIEWERS_MAX} pages are open: close one\n", 503)
        return StreamingResponse(self._stream(*asked(request)), media_type="text/event-stream")

    async def _stream(self, topic: str, overlay: str) -> AsyncIterator[bytes]:
        self.viewers += 1
        try:
            yield event("history", json.encode(list(self.watcher.history)))
            yield event("faults", json.encode(BUTTONS if self.breakable else ()))
            seen = -1
            while True:
                async with self.changed:
                    while self.watcher.looks == seen and not self.closing:
                        await self.changed.wait()
                if self.closing:
                    return
                seen = self.watcher.looks
                frame = self.watcher.frame(topic, overlay)
                if self.watcher.failure is not None or frame is None:
                    yield event("failure", json.encode(self.watcher.failure))
                else:
                    yield event("frame", json.encode(frame))
        finally:
            self.viewers -= 1


def asked(request: Request) -> tuple[str, str]:
    """The topic that a page wants to see, and its overlay."""
    query = request.query_params
    return query.get("topic", ""), query.get("overlay", RING)


def event(kind: str, data: bytes) -> bytes:
    """One server-sent event."""
    return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"
