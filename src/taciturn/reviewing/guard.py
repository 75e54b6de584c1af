"""Who may ask: a request to this machine's own address, by a browser that was shown the token. Everybody else is refused.

The token comes once in the address and is then a cookie (HttpOnly, SameSite=Strict). SameSite does not tell ports apart and
a rebound name resolves to this machine, so Host is checked on every request and Origin on those that change something.
"""

from __future__ import annotations

import hmac
import secrets
import sys
import traceback
from collections.abc import MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST = 64 * 1024
"""Bytes of a request's body at most; a change takes a few hundred."""

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

# A link from another page makes the first request a cross-site one, and a Strict cookie would not come along with its
# redirect; the next page is asked for by this one, so it does.
_ENTER = """<!doctype html><html lang="en"><meta charset="utf-8"><title>taciturn review</title>
<meta http-equiv="refresh" content="0;url=/"><p><a href="/">Go to the review</a></p></html>"""


class Guard:
    """An ASGI application behind its own address, token and size limit."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self.app = app
        self.token = secrets.token_urlsafe(32)
        self._session = secrets.token_urlsafe(32)
        self._cookie = f"taciturn-review-{port}"
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self.url = f"http://127.0.0.1:{port}/?token={self.token}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        started = False

        async def headed(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                _head(message)
            await send(message)

        try:
            await self._answer(scope)(scope, receive, headed)
        except Exception as error:  # a traceback would quote what was posted
            where = traceback.extract_tb(error.__traceback__)[-1]
            print(f"taciturn review: {type(error).__name__} in {where.name}, line {where.lineno}", file=sys.stderr)
            if not started:
                await PlainTextResponse("internal error", 500)(scope, receive, headed)

    def _answer(self, scope: Scope) -> ASGIApp:
        headers = Headers(scope=scope)
        if headers.get("host") not in self._hosts:
            return PlainTextResponse("this address is not the review's", 403)
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        if token is not None and scope["method"] == "GET" and scope["path"] == "/":
            return self._enter() if _same(token[0], self.token) else _refused()
        if not _same(self._shown(headers), self._session):
            return _refused()
        if scope["method"] not in ("GET", "HEAD"):
            origin = headers.get("origin")
            if origin is not None and origin.removeprefix("http://") != headers["host"]:
                return PlainTextResponse("this page is not the review's", 403)
            if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
                return PlainTextResponse("expected application/json", 415)
            length = headers.get("content-length", "")
            if not (length.isascii() and length.isdecimal()):  # the server checks that the body is as long as it says
                return PlainTextResponse("expected a content-length", 411)
            if int(length) > MOST:
                return PlainTextResponse(f"more than {MOST} bytes", 413)
        return self.app

    def _enter(self) -> HTMLResponse:
        entered = HTMLResponse(_ENTER)
        entered.set_cookie(self._cookie, self._session, httponly=True, samesite="strict")
        return entered

    def _shown(self, headers: Headers) -> str:
        try:
            morsel = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return ""
        return morsel.value if morsel else ""


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode())


def _refused() -> PlainTextResponse:
    return PlainTextResponse("open the address that taciturn review printed: it carries the key to this page", 403)


def _head(message: MutableMapping[str, Any]) -> None:
    extra = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
    message["headers"] = [*message.get("headers", []), *extra]
