"""The issuer's keys: found where it says, kept while it is away, and never where a token says."""

import hashlib
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from joserfc.jwk import OctKey, RSAKey

from tests.auth.conftest import Entrance, Opening
from tests.auth.issuer import AUDIENCE, issuing, rsa
from tests.house import open_gate
from toolgate import clock
from toolgate.errors import IssuerUnavailable
from toolgate.outside import fetching
from toolgate.server import jwks, tokens
from toolgate.server.jwks import Jwks, is_as_safe, places
from toolgate.server.tokens import Tokens
from toolgate.settings.auth import Auth
from toolgate.tenancy.keys import Role

pytestmark = pytest.mark.req("V3")


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits between two looks."""
    monkeypatch.setattr(jwks, "_SOONEST_NS", 0)
    monkeypatch.setattr(jwks, "_AWAY_NS", 0)


@pytest.mark.usefixtures("at_once")
async def test_a_new_key_of_the_issuer_is_found_and_an_old_one_goes(entrance: Entrance) -> None:
    issuer, old = entrance.issuer, entrance.issuer.token()
    assert await entrance.let_in(old) is not None
    second = rsa("two")
    issuer.published.append(second)
    fresh = issuer.token(key=second, header={"kid": "two"})
    assert await entrance.let_in(fresh) is not None
    assert await entrance.let_in(old) is not None, "both, while both are published"
    issuer.published = [second]
    assert await entrance.let_in(issuer.token(header={"kid": "three"})) is None
    assert await entrance.let_in(old) is None, "what was verified with it is not known any more"
    assert await entrance.let_in(fresh) is not None


async def test_unknown_keys_make_nobody_look_more_than_once(
    entrance: Entrance, strangers_key: RSAKey
) -> None:
    assert await entrance.let_in(entrance.issuer.token()) is not None
    before = entrance.issuer.asked.count("/keys")
    for number in range(50):
        forged = entrance.issuer.token(key=strangers_key, header={"kid": f"k{number}"})
        assert await entrance.let_in(forged) is None
    assert entrance.issuer.asked.count("/keys") == before


@pytest.mark.usefixtures("at_once")
async def test_keys_are_kept_while_the_issuer_is_away(entrance: Entrance) -> None:
    assert await entrance.let_in(entrance.issuer.token()) is not None
    entrance.issuer.away = True
    assert await entrance.let_in(entrance.issuer.token(header={"kid": "other"})) is None
    assert await entrance.let_in(entrance.issuer.token(sub="bob")) is not None
    entrance.issuer.away = False
    assert await entrance.let_in(entrance.issuer.token(sub="eve")) is not None


@pytest.mark.usefixtures("at_once")
async def test_before_the_issuer_was_ever_there_nobody_can_tell(issuers_key: RSAKey) -> None:
    async with issuing(issuers_key) as issuer:
        issuer.away = True
        auth = Auth(issuer=issuer.url, audience=AUDIENCE)
        async with fetching(issuer.url) as fetch:
            known, token = Jwks(auth, fetch), issuer.token().encode()
            with pytest.raises(IssuerUnavailable):
                await known.opened(token)
            issuer.away = False
            assert (await known.opened(token))["sub"] == "ann"


@pytest.mark.usefixtures("at_once")
async def test_where_to_look_is_not_what_a_token_says(
    entrance: Entrance, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = rsa("attack")
    async with issuing(theirs) as attacker:
        head: dict[str, Any] = {
            "kid": "attack",
            "jku": f"{attacker.url}/keys",
            "x5u": f"{attacker.url}/keys",
            "jwk": theirs.as_dict(private=False),
        }
        token = entrance.issuer.token(key=theirs, header=head)
        assert await entrance.let_in(token) is None
        assert not attacker.asked

        # The guard-off control: looked for where it says, the key is there and fits.
        async def led(_jwks: Jwks) -> Any:
            async with aiohttp.ClientSession() as session:
                return await (await session.get(f"{attacker.url}/keys")).json()

        monkeypatch.setattr(Jwks, "_fetched", led)
        assert await entrance.let_in(token) is not None
        assert attacker.asked == ["/keys"]


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://issuer.example"},
        {"issuer": None},
        {"jwks_uri": "http://keys.example/jwks"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": "http://ann@127.0.0.1/keys"},
        {"jwks_uri": ["x"]},
        {"jwks_uri": ""},
    ],
    ids=str,
)
async def test_metadata_of_somebody_else_is_none(
    issuers_key: RSAKey, metadata: dict[str, Any]
) -> None:
    async with issuing(issuers_key) as issuer:
        issuer.metadata = metadata
        async with fetching(issuer.url) as fetch:
            known = Jwks(Auth(issuer=issuer.url, audience=AUDIENCE), fetch)
            with pytest.raises(IssuerUnavailable):
                await known.opened(issuer.token().encode())
            assert "/keys" not in issuer.asked
            issuer.metadata = {}
            assert await known.opened(issuer.token().encode()), "the positive control"


async def test_keys_that_cannot_be_used_are_left_out(entrance: Entrance) -> None:
    issuer = entrance.issuer
    other = RSAKey.generate_key(2048, {"kid": "enc"})
    meant = RSAKey.import_key(other.as_dict(private=False) | {"use": "enc", "kid": "enc"})
    issuer.published += [OctKey.generate_key(256, {"kid": "secret"}), meant]
    assert await entrance.let_in(issuer.token()) is not None
    assert await entrance.let_in(issuer.token(key=other, header={"kid": "enc"})) is None


@pytest.mark.usefixtures("at_once")
async def test_without_an_id_only_a_single_key_is_meant(entrance: Entrance) -> None:
    token = entrance.issuer.token(header={"kid": None})
    assert await entrance.let_in(token) is not None
    entrance.tokens.forget()
    second = rsa("two")
    entrance.issuer.published.append(second)
    fresh = entrance.issuer.token(key=second, header={"kid": "two"})
    assert await entrance.let_in(fresh) is not None, "the second key is known"
    assert await entrance.let_in(token) is None


def test_metadata_is_looked_for_where_the_standards_put_it() -> None:
    assert places("https://issuer.example") == [
        "https://issuer.example/.well-known/oauth-authorization-server",
        "https://issuer.example/.well-known/openid-configuration",
    ]
    assert places("https://issuer.example/realms/x/") == [
        "https://issuer.example/.well-known/oauth-authorization-server/realms/x",
        "https://issuer.example/realms/x/.well-known/openid-configuration",
        "https://issuer.example/.well-known/openid-configuration/realms/x",
    ]
    assert is_as_safe("https://keys.example/jwks", "https://issuer.example")
    assert not is_as_safe("http://127.0.0.1/jwks", "https://issuer.example"), "TLS stays TLS"


async def test_what_is_kept_of_tokens_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "_MOST_KEPT", 10)
    ends = clock.unix_ns() // 1_000_000_000 + 600

    async def believed(token: bytes) -> dict[str, Any]:
        said = {"iss": "https://i.example", "aud": "x", "exp": ends, "tenant": "acme"}
        return said | {"agent": "billing", "sub": token.decode()}

    async with open_gate(tmp_path):
        known = Tokens(Auth(issuer="https://i.example", audience="x"), believed, "http://gate")
        digests = [hashlib.sha256(f"t{number}".encode()).hexdigest() for number in range(100)]
        for number in range(100):
            await known.verify(f"t{number}".encode())
            assert sum(known.known(digest) is not None for digest in digests) <= 10
        last = known.known(digests[-1])
        assert last is not None
        assert last.user == "t99"


@pytest.mark.parametrize(
    "token", ["..", "a.b.c", "e30.e30.", "." * 9_000, "\xff.\xff.\xff", "W10.W10."]
)
async def test_what_is_no_token_opens_nothing(entrance: Entrance, token: str) -> None:
    assert await entrance.let_in(token) is None


async def test_a_token_that_is_too_long_is_not_looked_at(entrance: Entrance) -> None:
    assert await entrance.let_in(entrance.issuer.token(note="x" * 4_000)) is not None
    assert await entrance.let_in(entrance.issuer.token(note="x" * 9_000)) is None


async def test_a_key_of_ours_opens_beside_tokens(opened: Opening) -> None:
    async with opened() as entrance:
        fresh = await entrance.gate.tenancy.add_key(Role.AGENT, tenant="acme", agent="billing")
        assert entrance.door.known(f"Bearer {fresh.secret}".encode()) == fresh.key
