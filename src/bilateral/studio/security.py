"""Keep other pages, other users and other machines out.

The studio listens on 127.0.0.1 only. Host must be its own name, against DNS rebinding. Origin, if
there is one, must be the studio's. A random token per start comes with the first address and stays
in a cookie that other sites cannot send.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_FIELD = "token"
_NO_TOKEN = (
    "This page belongs to a studio that somebody else started, or to one that was started again.\n"
    "Open the address that `bilateral studio` printed."
)


class Guard:
    """ASGI middleware: check Host, Origin and token; add the headers of a safe page."""

    def __init__(self, app: ASGIApp, port: int, token: str | None = None) -> None:
        self._app = app
        self.token = token or secrets.token_urlsafe(32)
        self._cookie = f"bilateral-studio-{port}"
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._origins = {f"http://{host}" for host in self._hosts}
        sockets = " ".join(sorted(f"ws://{host}" for host in self._hosts))
        self._headers = {
            "content-security-policy": (
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
                f"connect-src 'self' {sockets}; base-uri 'none'; form-action 'none'; "
                "frame-ancestors 'none'"
            ),
            "cache-control": "no-store",
            "cross-origin-opener-policy": "same-origin",
            "cross-origin-resource-policy": "same-origin",
            "referrer-policy": "no-referrer",
            "x-content-type-options": "nosniff",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, self._with_headers(send))
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 4403})
        else:
            await refusal(scope, receive, self._with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that must not pass, or None."""
        headers = [(name, value.decode("latin-1")) for name, value in scope["headers"]]
        if [value for name, value in headers if name == b"host"] not in [[h] for h in self._hosts]:
            return PlainTextResponse("The studio does not answer for this host.", 421)
        origins = [value for name, value in headers if name == b"origin"]
        needs_origin = scope["type"] == "websocket"
        if (origins and origins[0] not in self._origins) or (needs_origin and len(origins) != 1):
            return PlainTextResponse("Other sites must not use the studio.", 403)
        if self._has_cookie(value for name, value in headers if name == b"cookie"):
            return None
        given = parse_qs(scope["query_string"].decode("latin-1")).get(TOKEN_FIELD, [""])[0]
        if scope["type"] == "http" and scope["path"] == "/" and self._is_token(given):
            response = RedirectResponse("/", 303)
            response.set_cookie(self._cookie, self.token, httponly=True, samesite="strict")
            return response
        return PlainTextResponse(_NO_TOKEN, 403)

    def _has_cookie(self, values: Iterable[str]) -> bool:
        for value in values:
            try:
                morsel = SimpleCookie(value).get(self._cookie)
            except CookieError:
                continue
            if morsel is not None and self._is_token(morsel.value):
                return True
        return False

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())

    def _with_headers(self, send: Send) -> Send:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(k.encode(), v.encode()) for k, v in self._headers.items()]
                message = {**message, "headers": [*message.get("headers", []), *added]}
            await send(message)

        return send_with_headers
