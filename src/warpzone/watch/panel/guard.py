"""Access to the panel: from the same machine, or with the token."""

from __future__ import annotations

import hmac
import ipaddress
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "warpzone_access"
_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "content-security-policy": (
        "default-src 'self'; img-src 'self' blob: data:; connect-src 'self' ws: wss:; frame-ancestors 'none'; "
        "base-uri 'none'; form-action 'none'"
    ),
}


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
        answer = self._instead(HTTPConnection(scope))
        if answer is None:
            await self._app(scope, receive, _with_headers(send))
        elif scope["type"] == "websocket":
            # Closing before accepting answers the handshake with 403.
            await receive()
            await send({"type": "websocket.close", "code": 4000 + answer.status_code})
        else:
            await answer(scope, receive, _with_headers(send))

    def _instead(self, request: HTTPConnection) -> Response | None:
        """The answer to a request that does not reach the panel."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if not self._token and not is_loopback(_host_name(host)):
            return PlainTextResponse("This panel answers only on this machine.", 403)
        if origin is not None and _netloc(origin) != host:
            return PlainTextResponse("Another site can't use this panel.", 403)
        if not self._token:
            return None
        is_page = request.scope["type"] == "http" and request.url.path == "/"
        if is_page and self._is_token(request.query_params.get("token", "")):
            welcome = RedirectResponse("/", 303)
            welcome.set_cookie(COOKIE, self._token, httponly=True, samesite="strict")
            return welcome
        is_known = self._is_token(_given(request))
        return None if is_known else PlainTextResponse("Open the panel with /?token=... once.", 401)

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(self._token.encode(), given.encode("utf-8", "replace"))


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _host_name(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.rpartition(":")[0] if ":" in host else host


def _given(request: HTTPConnection) -> str:
    kind, _, bearer = request.headers.get("authorization", "").partition(" ")
    return bearer.strip() if kind.lower() == "bearer" else request.cookies.get(COOKIE, "")


def _with_headers(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(_HEADERS)
        await send(message)

    return guarded
