"""Tokens of an issuer: what opens, and what only looks as if it did."""

import base64
import hmac
import time
from typing import Any

import orjson
import pytest
from joserfc.jwk import ECKey, OKPKey, RSAKey

from tests.auth.conftest import Entrance, Opening
from tests.auth.issuer import AUDIENCE, by_hand, part
from toolgate import clock
from toolgate.errors import Unauthenticated
from toolgate.server import auth as auth_
from toolgate.server import tokens as tokens_
from toolgate.server.auth import caller_of
from toolgate.settings.auth import Auth
from toolgate.tenancy.keys import Key, Role
from toolgate.tenancy.world import World

pytestmark = pytest.mark.req("V3")


async def test_a_token_becomes_the_caller_that_its_claims_name(opened: Opening) -> None:
    async with opened(persona_claim="act_as", roles_claim="realm.roles") as entrance:
        token = entrance.issuer.token(act_as="clerk", realm={"roles": ["finance", "audit"]})
        key = await entrance.let_in(token)
        assert key is not None
        caller = caller_of(key)
        assert (caller.tenant, caller.agent, caller.user) == ("acme", "billing", "ann")
        assert (caller.persona, caller.roles) == ("clerk", ("finance", "audit"))
        assert (key.role, caller.key) == (Role.AGENT, "")
        assert caller.until_ns == key.expires_ns > clock.unix_ns()
        listed = await entrance.gate.discover(caller)
        assert "echo" in {spec.name for spec in listed}


async def test_a_token_that_was_verified_is_known_at_once(entrance: Entrance) -> None:
    header = f"Bearer {entrance.issuer.token()}".encode()
    assert entrance.door.known(header) is None, "somebody has to look"
    key = await entrance.door.verified(header)
    entrance.issuer.away = True
    assert entrance.door.known(header) is key
    await entrance.gate.tenancy.remove_agent("acme", "billing")
    with pytest.raises(Unauthenticated):
        entrance.door.known(header)


@pytest.mark.parametrize("alg", ["ES256", "EdDSA", "PS256"])
async def test_other_key_pairs_sign_too(entrance: Entrance, alg: str) -> None:
    made = {
        "ES256": lambda: ECKey.generate_key("P-256", {"kid": "two"}),
        "EdDSA": lambda: OKPKey.generate_key("Ed25519", {"kid": "two"}),
        "PS256": lambda: RSAKey.generate_key(2048, {"kid": "two"}),
    }[alg]()
    entrance.issuer.published.append(made)
    token = entrance.issuer.token(key=made, header={"alg": alg, "kid": "two"})
    assert await entrance.let_in(token) is not None


def with_secret(secret: bytes, head: Any, claims: Any) -> str:
    """By hand: no library lends itself to it."""
    said = f"{part(head)}.{part(claims)}"
    mac = hmac.digest(secret, said.encode(), "sha256")
    return f"{said}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def forged(entrance: Entrance, stranger: RSAKey) -> dict[str, str]:
    """Whole in every other way: each of them opens where signatures are not looked at."""
    issuer = entrance.issuer
    public = issuer.key.as_pem(private=False)
    head, claims = {"alg": "none", "typ": "JWT"}, issuer.claims()
    good = issuer.token()
    return {
        "none": f"{part(head)}.{part(claims)}.",
        "none, in other letters": f"{part(head | {'alg': 'nOnE'})}.{part(claims)}.",
        "none, with a signature": f"{part(head)}.{part(claims)}.{good.rpartition('.')[2]}",
        "no alg": f"{part({'typ': 'JWT'})}.{part(claims)}.{good.rpartition('.')[2]}",
        "HS256 with the public key": with_secret(
            public, {"alg": "HS256", "kid": issuer.key.kid}, claims
        ),
        "a stranger's key": issuer.token(key=stranger),
        "RS384, which is not taken": issuer.token(header={"alg": "RS384"}),
        "claims of its own": ".".join(
            [good.split(".")[0], part(claims | {"sub": "bob"}), good.split(".")[2]]
        ),
        "its own key in the header": issuer.token(
            key=stranger, header={"kid": "mine", "jwk": stranger.as_dict(private=False)}
        ),
        "a path for a key": issuer.token(key=stranger, header={"kid": "../../../keys"}),
        "a file for a key": issuer.token(key=stranger, header={"kid": "/dev/null"}),
        "an address for a key": issuer.token(key=stranger, header={"kid": f"{issuer.url}/keys"}),
        "a key for something else": issuer.token(header={"typ": "logout+jwt"}),
        "what has to be understood": by_hand(
            issuer.key, {"alg": "RS256", "kid": "one", "crit": ["bound"], "bound": 1}, claims
        ),
    }


async def test_what_the_issuer_did_not_sign_opens_nothing(
    entrance: Entrance, strangers_key: RSAKey
) -> None:
    made = by_hand(entrance.issuer.key, {"alg": "RS256", "kid": "one"}, entrance.issuer.claims())
    for good in (entrance.issuer.token(), made):
        assert await entrance.let_in(good) is not None, "the positive control"
    for what, token in forged(entrance, strangers_key).items():
        assert await entrance.let_in(token) is None, what
    metadata = "/.well-known/oauth-authorization-server"
    assert set(entrance.issuer.asked) == {metadata, "/keys"}, "no header says where to look"


async def test_without_the_signature_each_of_them_would(
    entrance: Entrance, strangers_key: RSAKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard-off control."""

    async def believed(token: bytes) -> Any:
        middle = token.split(b".")[1]
        return orjson.loads(base64.urlsafe_b64decode(middle + b"=" * (-len(middle) % 4)))

    monkeypatch.setattr(entrance.tokens, "_opened", believed)
    for what, token in forged(entrance, strangers_key).items():
        assert await entrance.let_in(token) is not None, what


def untimely(issuer: Any) -> dict[str, str]:
    now = int(time.time())
    return {
        "another audience": issuer.token(aud="https://other.example"),
        "audiences without us": issuer.token(aud=["a", "https://gate.example/"]),
        "no audience": issuer.token(aud=None),
        "another issuer": issuer.token(iss="https://issuer.example"),
        "the issuer with a slash": issuer.token(iss=f"{issuer.url}/"),
        "no issuer": issuer.token(iss=None),
        "ended": issuer.token(exp=now - 60),
        "no end": issuer.token(exp=None),
        "an end in words": issuer.token(exp="tomorrow"),
        "an end that is true": issuer.token(exp=True),
        "an end beyond all time": issuer.token(exp=10**18),
        "not yet": issuer.token(nbf=now + 120),
        "made tomorrow": issuer.token(iat=now + 86_400),
    }


async def test_what_is_not_for_us_or_not_now_opens_nothing(entrance: Entrance) -> None:
    now = int(time.time())
    goods: list[dict[str, Any]] = [{}, {"aud": ["x", AUDIENCE]}, {"nbf": now + 20}]
    for good in (*goods, dict[str, Any](exp=now - 20)):
        assert await entrance.let_in(entrance.issuer.token(**good)) is not None, good
    for what, token in untimely(entrance.issuer).items():
        assert await entrance.let_in(token) is None, what


async def test_why_a_token_is_refused_stands_in_the_log_and_nothing_of_the_token(
    opened: Opening, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(required_scope="tools") as entrance:
        issuer = entrance.issuer
        assert await entrance.let_in(issuer.token(scope="tools")) is not None
        assert caplog.records == [], "what opens is not told"
        whys = {
            "another audience": issuer.token(aud="https://other.example"),
            "it has ended": issuer.token(exp=int(time.time()) - 60),
            "it lacks the scope": issuer.token(scope="other"),
            "not on record": issuer.token(scope="tools", tenant="nobody"),
            "signature": issuer.token(scope="tools")[:-4] + "AAAA",
        }
        for why, token in whys.items():
            caplog.clear()
            # Whoever knocks again and again is told of once.
            for _ in range(3):
                assert await entrance.let_in(token) is None
            [told] = [one.getMessage() for one in caplog.records]
            assert why in told
            assert token.split(".")[1] not in told


async def test_without_the_look_at_those_claims_each_of_them_would(
    entrance: Entrance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard-off control."""
    strict = tokens_.key_of

    def lenient(claims: dict[str, Any], auth: Auth) -> Key:
        return strict(entrance.issuer.claims() | {"sub": claims["sub"]}, auth)

    monkeypatch.setattr(tokens_, "key_of", lenient)
    for what, token in untimely(entrance.issuer).items():
        assert await entrance.let_in(token) is not None, what


def elsewhere(issuer: Any) -> dict[str, str]:
    return {
        "a tenant that is not there": issuer.token(tenant="umbrella"),
        "a tenant in other letters": issuer.token(tenant="Acme"),
        "no tenant": issuer.token(tenant=None),
        "a list of tenants": issuer.token(tenant=["acme"]),
        "an agent that is not there": issuer.token(agent="intern"),
        "no agent": issuer.token(agent=None),
        "no user": issuer.token(sub=None),
        "a user of two words": issuer.token(sub="ann bob"),
    }


async def test_whom_nobody_has_put_on_record_is_nobody(entrance: Entrance) -> None:
    unknown = None
    for what, token in elsewhere(entrance.issuer).items():
        with pytest.raises(Unauthenticated) as told:
            await entrance.door.verified(f"Bearer {token}".encode())
        unknown = unknown or str(told.value)
        assert str(told.value) == unknown, what
        # Also the second time, when it is known what the token says.
        assert await entrance.let_in(token) is None, what
    await entrance.gate.tenancy.set_agent("umbrella", "billing")
    key = await entrance.let_in(entrance.issuer.token(tenant="umbrella"))
    assert key is not None
    assert key.tenant == "umbrella", "the positive control: it is its claims' tenant"


async def test_without_the_look_at_the_record_a_stranger_would_be_let_in(
    entrance: Entrance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard-off control."""

    def anybody(_key: Key, _world: World) -> bool:
        return True

    monkeypatch.setattr(auth_, "is_on_record", anybody)
    for what in ("a tenant that is not there", "an agent that is not there"):
        assert await entrance.let_in(elsewhere(entrance.issuer)[what]) is not None
