"""Access to the panel: from the same machine, or with the token."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "warpzone_access"
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (
        b"content-security-policy",
        b"default-src 'self'; img-src 'self' blob: data:; connect-src 'self' ws: wss:; frame-ancestors 'none'; "
        b"base-uri 'none'; form-action 'none'",
    ),
]


def is_loopback(host: str) -> bool:
    """Whether an address can only be reached from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Guard:
    """Rejects unauthorised requests before anything is read.

    Without an access token only names of this machine are answered, so that another site can't reach the panel through
    a host name that resolves here (DNS rebinding); with one, every request must carry it. Requests that a browser sends
    on behalf of another site are rejected in either case.
    """

    def __init__(self, app: ASGIApp, access_token: str = "") -> None:
        self._app = app
        self._token = access_token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = _headers(scope)
        host = headers.get("host", "")
        if not self._token and not is_loopback(_host_name(host)):
            await _refuse(scope, receive, send, 403, "This panel answers only on this machine.")
            return
        origin = headers.get("origin")
        if origin is not None and _netloc(origin) != host:
            await _refuse(scope, receive, send, 403, "Another site can't use this panel.")
            return
        if self._token:
            query = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]
            if scope["type"] == "http" and scope["path"] == "/" and query and self._is_token(query):
                await _welcome(send, self._token)
                return
            if not self._is_token(_given(headers)):
                await _refuse(scope, receive, send, 401, "Open the panel with /?token=... once.")
                return
        await self._app(scope, receive, _with_headers(send))

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(self._token.encode(), given.encode("utf-8", "replace"))


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _host_name(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.rpartition(":")[0] if ":" in host else host


def _given(headers: Mapping[str, str]) -> str:
    kind, _, bearer = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return bearer.strip()
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return cookie.value if cookie is not None else ""


async def _refuse(scope: Scope, receive: Receive, send: Send, status: int, text: str) -> None:
    if scope["type"] == "websocket":
        # Closing before accepting answers the handshake with 403.
        await receive()
        await send({"type": "websocket.close", "code": 4000 + status, "reason": text})
        return
    body = text.encode()
    start: Message = {
        "type": "http.response.start",
        "status": status,
        "headers": [*_HEADERS, (b"content-type", b"text/plain; charset=utf-8")],
    }
    await send(start)
    await send({"type": "http.response.body", "body": body})


async def _welcome(send: Send, token: str) -> None:
    cookie = f"{COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/".encode("latin-1")
    headers = [*_HEADERS, (b"location", b"/"), (b"set-cookie", cookie)]
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def _with_headers(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *_HEADERS]}
        await send(message)

    return guarded
