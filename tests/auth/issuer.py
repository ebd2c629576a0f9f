"""An OAuth issuer on loopback: its metadata and its keys over HTTP, and tokens that it signs."""

import base64
import time
import warnings
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from joserfc import jws
from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry
from orjson import dumps

AUDIENCE = "https://gate.example"
SignKey = RSAKey | ECKey | OKPKey | OctKey


def rsa(kid: str) -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig"})


def signed(key: SignKey, header: dict[str, Any], claims: dict[str, Any]) -> str:
    registry = JWSRegistry(algorithms=[header["alg"]], strict_check_header=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)
        return jws.serialize_compact(header, dumps(claims), key, registry=registry)


def part(value: Any) -> str:
    return base64.urlsafe_b64encode(dumps(value)).rstrip(b"=").decode()


def by_hand(key: RSAKey, header: dict[str, Any], claims: dict[str, Any]) -> str:
    """RS256, also where a library would refuse to."""
    said = f"{part(header)}.{part(claims)}"
    private = key.private_key
    assert private is not None
    raw = private.sign(said.encode(), PKCS1v15(), SHA256())
    return f"{said}.{base64.urlsafe_b64encode(raw).rstrip(b'=').decode()}"


class Issuer:
    """What it publishes can be changed, and it can be away."""

    def __init__(self, key: RSAKey) -> None:
        self.key = key
        self.published: list[SignKey] = [key]
        self.asked: list[str] = []
        self.away = False
        self.metadata: dict[str, Any] = {}
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        if self.away:
            return web.Response(status=503)
        if request.path == "/.well-known/oauth-authorization-server":
            mine = {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
            return web.json_response(mine | self.metadata)
        if request.path == "/keys":
            shown = [key.as_dict(private=False) for key in self.published]
            return web.json_response({"keys": shown})
        return web.Response(status=404)

    def claims(self, **more: Any) -> dict[str, Any]:
        now = int(time.time())
        usual = {"iss": self.url, "aud": AUDIENCE, "sub": "ann", "iat": now, "exp": now + 600}
        return usual | {"tenant": "acme", "agent": "billing"} | more

    def token(
        self, *, key: SignKey | None = None, header: dict[str, Any] | None = None, **more: Any
    ) -> str:
        """A token as it makes them; a claim of `None` is left out."""
        claims = {name: value for name, value in self.claims(**more).items() if value is not None}
        head = {"alg": "RS256", "kid": self.key.kid, "typ": "at+jwt"} | (header or {})
        named = {name: value for name, value in head.items() if value is not None}
        return signed(key or self.key, named, claims)


@asynccontextmanager
async def issuing(key: RSAKey, path: str = "") -> AsyncGenerator[Issuer]:
    """It listens until the end."""
    issuer = Issuer(key)
    app = web.Application()
    app.router.add_get("/{path:.*}", issuer.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    issuer.url = f"http://127.0.0.1:{runner.addresses[0][1]}{path}"
    try:
        yield issuer
    finally:
        await runner.cleanup()
