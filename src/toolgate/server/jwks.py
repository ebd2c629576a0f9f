"""An issuer's public keys, fetched and kept, and whether a token was signed with one of them."""

import asyncio
import base64
import binascii
import logging
import warnings
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

import orjson
from joserfc import jws
from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from toolgate import clock
from toolgate.errors import IssuerUnavailable, SourceUnavailable
from toolgate.server.refusals import Reason, Unfit
from toolgate.settings.auth import Auth, is_trusted_address

log = logging.getLogger("toolgate.server")
_MOST_BYTES = 262_144
_MOST_KEYS = 100
_FEWEST_BITS = 2_048
# A key that is not known makes us look no sooner than that; one that was withdrawn goes by then.
_SOONEST_NS = 30_000_000_000
_AWAY_NS = 1_000_000_000
_AGAIN = 600.0
# An access token; a token for logging out, or one that proves a key, is none.
_TYPES = frozenset({"jwt", "at+jwt", "application/jwt", "application/at+jwt"})
_CURVES = {
    "ES256": "P-256",
    "ES384": "P-384",
    "ES512": "P-521",
    "EdDSA": "Ed25519",
    "Ed25519": "Ed25519",
}
_KINDS = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
# Of a key only what is public is read.
_PUBLIC = ("kty", "n", "e", "crv", "x", "y")
PublicKey = RSAKey | ECKey | OKPKey
# The status and the body that an address answers with, of so many bytes at the most.
Fetch = Callable[[str, int], Awaitable[tuple[int, bytes]]]


class _Registry(JWSRegistry):
    """How long the parts may be; the whole has a bound of its own."""

    max_header_length = 4_096
    max_payload_length = 8_192


class Jwks:
    """The keys by their `kid`. They are kept while the issuer is away."""

    def __init__(self, auth: Auth, fetch: Fetch) -> None:
        self._auth = auth
        self._fetch = fetch
        self._registry = _Registry(algorithms=list(auth.algorithms), strict_check_header=False)
        self._keys: tuple[_Known, ...] = ()
        self._has_any = False
        self._looks: int = 0
        self._looked_ns = 0
        self._looking = asyncio.Lock()
        self.on_change: Callable[[], None] = lambda: None

    async def opened(self, token: bytes) -> Mapping[str, Any]:
        """The claims of a token that one of the keys has signed, or `Unauthenticated`."""
        alg, kid = self._header(token)
        key = self._found(alg, kid)
        if key is None:
            await self.look()
            key = self._found(alg, kid)
        if key is None:
            if not self._has_any:
                raise IssuerUnavailable(
                    "The issuer of this token has not told its keys yet; nothing ran. Try again."
                )
            raise Unfit(Reason.SIGNATURE, "no key of the issuer fits it")
        try:
            with warnings.catch_warnings():
                # Of EdDSA the name is old; only one curve goes by it here.
                warnings.simplefilter("ignore", SecurityWarning)
                signed = jws.deserialize_compact(token, key, [alg], registry=self._registry)
            claims = orjson.loads(signed.payload)
        # Whatever a library makes of hostile bytes, it is no valid token.
        except (JoseError, ValueError, TypeError, KeyError):
            raise Unfit(Reason.SIGNATURE, "its signature does not hold") from None
        if not isinstance(claims, dict):
            raise Unfit(Reason.UNREADABLE)
        return cast("dict[str, Any]", claims)

    def _header(self, token: bytes) -> tuple[str, str | None]:
        """How it says it is signed, and by which key. Where to find a key, it does not say."""
        try:
            header = orjson.loads(_decoded(token.split(b".", 1)[0]))
        except ValueError:
            raise Unfit(Reason.UNREADABLE) from None
        if not isinstance(header, dict):
            raise Unfit(Reason.UNREADABLE)
        fields = cast("dict[str, Any]", header)
        alg, kid, kind = fields.get("alg"), fields.get("kid"), fields.get("typ", "JWT")
        if alg not in self._auth.algorithms or "crit" in fields:
            raise Unfit(Reason.SIGNATURE, "its algorithm is not in auth.algorithms")
        if not isinstance(kind, str) or kind.lower() not in _TYPES:
            raise Unfit(Reason.UNREADABLE)
        if kid is not None and not isinstance(kid, str):
            raise Unfit(Reason.UNREADABLE)
        return alg, kid

    def _found(self, alg: str, kid: str | None) -> PublicKey | None:
        """The key of this id that fits; without an id, the only one that fits."""
        fits = [one for one in self._keys if one.fits(alg) and (kid is None or one.kid == kid)]
        return fits[0].key if len(fits) == 1 else None

    async def look(self) -> None:
        """Fetch the keys, unless somebody just has."""
        looks = self._looks
        async with self._looking:
            soonest = _SOONEST_NS if self._has_any else _AWAY_NS
            if self._looks != looks or (looks and clock.monotonic_ns() - self._looked_ns < soonest):
                return
            self._looks += 1
            self._looked_ns = clock.monotonic_ns()
            try:
                keys = _read(await self._fetched())
            except SourceUnavailable as error:
                log.warning("the issuer's keys stay as they were: %s", error)
                return
            if keys != self._keys:
                self._keys = keys
                self.on_change()
            self._has_any = True

    async def keep_looking(self) -> None:
        """A key that the issuer withdraws is found out also while nobody comes with another."""
        while True:
            await self.look()
            await asyncio.sleep(_AGAIN)

    async def _fetched(self) -> Mapping[str, Any]:
        url = self._auth.jwks_url
        if not url:
            url = await self._discovered()
        return await self._json(url)

    async def _discovered(self) -> str:
        issuer = self._auth.issuer
        wrong = SourceUnavailable("The issuer's metadata names no keys: set [auth] jwks_url.")
        for url in places(issuer):
            try:
                found = await self._json(url)
            except SourceUnavailable as error:
                wrong = error
                continue
            keys = found.get("jwks_uri")
            # Another issuer's metadata, or keys that anybody on the way could replace, are none.
            if found.get("issuer") == issuer and isinstance(keys, str) and is_as_safe(keys, issuer):
                return keys
            wrong = SourceUnavailable(
                "The issuer's metadata is not its own, or names its keys at an address without "
                "TLS: set [auth] issuer exactly as it says itself, or jwks_url."
            )
        raise wrong

    async def _json(self, url: str) -> Mapping[str, Any]:
        status, body = await self._fetch(url, _MOST_BYTES)
        try:
            found = orjson.loads(body) if status == 200 else None
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise SourceUnavailable(f"The issuer answers with {status} and no JSON object.")
        return cast("dict[str, Any]", found)


class _Known:
    """One key, and what it is for."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        kid, self._alg = given.get("kid"), given.get("alg")
        self.kid = kid if isinstance(kid, str) else None
        self.public = {name: given[name] for name in _PUBLIC if name in given}
        self._kind, self._curve = given.get("kty"), given.get("crv")
        kinds = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey}
        self.key: PublicKey = kinds[str(self._kind)].import_key(self.public)
        if isinstance(self.key, RSAKey) and self.key.raw_value.key_size < _FEWEST_BITS:
            raise ValueError("too short")

    def fits(self, alg: str) -> bool:
        """Whether tokens signed like this can be checked with it."""
        if self._alg not in {None, alg} or _KINDS[alg[:2]] != self._kind:
            return False
        return alg not in _CURVES or _CURVES[alg] == self._curve

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and (self.kid, self._alg, self.public) == (
            other.kid,
            other._alg,
            other.public,
        )

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # compared, never looked up


def _read(found: Mapping[str, Any]) -> tuple[_Known, ...]:
    """The keys that can be used; one that cannot is left out."""
    given: Any = found.get("keys")
    if not isinstance(given, list):
        raise SourceUnavailable("The issuer's keys are no key set.")
    known: list[_Known] = []
    for one in cast("list[Any]", given)[:_MOST_KEYS]:
        fields = cast("dict[str, Any]", one) if isinstance(one, dict) else {}
        if fields.get("use", "sig") != "sig" or fields.get("kty") not in _KINDS.values():
            continue
        try:
            known.append(_Known(fields))
        except (JoseError, ValueError, TypeError, KeyError):
            continue
    return tuple(known)


def places(issuer: str) -> list[str]:
    """Where an issuer's metadata can be: RFC 8414, then OpenID, which puts its path in front."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    return list(
        dict.fromkeys(
            (
                f"{origin}/.well-known/oauth-authorization-server{path}",
                f"{origin}{path}/.well-known/openid-configuration",
                f"{origin}/.well-known/openid-configuration{path}",
            )
        )
    )


def is_as_safe(url: str, issuer: str) -> bool:
    """Whether keys from there are as much the issuer's as its metadata is."""
    if not is_trusted_address(url):
        return False
    return url.startswith("https:") or issuer.startswith("http:")


def _decoded(part: bytes) -> bytes:
    try:
        return base64.b64decode(part + b"=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        raise ValueError("not base64url") from None
