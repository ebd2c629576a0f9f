"""Which role a token has: an agent's, unless a scope of it is mapped on purpose."""

from typing import Any

import pytest
from pydantic import ValidationError

from tests.auth.conftest import Opening
from toolgate.server.rights import Right, may
from toolgate.settings.auth import Auth
from toolgate.tenancy.keys import Role

pytestmark = pytest.mark.req("V3")


async def test_no_scope_opens_more_unless_it_is_mapped(opened: Opening) -> None:
    async with opened() as entrance:
        token = entrance.issuer.token(scope="admin operator gate:admin", roles=["admin"])
        key = await entrance.let_in(token)
        assert key is not None
        assert key.role is Role.AGENT


async def test_a_mapped_scope_makes_the_token_that_roles(opened: Opening) -> None:
    scopes = {"operator_scope": "gate:operate", "approver_scope": "gate:approve"}
    async with opened(admin_scope="gate:admin", **scopes) as entrance:
        told = {
            "gate:approve": Role.APPROVER,
            "openid gate:operate gate:approve": Role.OPERATOR,
            "gate:admin": Role.ADMIN,
            "gate:adm": Role.AGENT,
            "GATE:ADMIN": Role.AGENT,
        }
        for scope, role in told.items():
            key = await entrance.let_in(entrance.issuer.token(scope=scope))
            assert key is not None
            assert key.role is role
        key = await entrance.let_in(entrance.issuer.token(scp=["gate:approve"], agent=None))
        assert key is not None
        assert (key.role, key.agent) == (Role.APPROVER, "")
        assert not may(key, Right.CALL)
        assert await entrance.let_in(entrance.issuer.token(scope="gate:admin", tenant="no")) is None


async def test_a_token_without_the_scope_that_is_needed_opens_nothing(opened: Opening) -> None:
    async with opened(required_scope="gate:use") as entrance:
        scopes: list[Any] = [None, "gate:user", "", {"gate:use": 1}]
        for wrong in scopes:
            assert await entrance.let_in(entrance.issuer.token(scope=wrong)) is None, wrong
        assert await entrance.let_in(entrance.issuer.token(scope="a gate:use")) is not None
        assert b'scope="gate:use"' in entrance.door.challenge


@pytest.mark.parametrize(
    "wrong",
    [
        {"issuer": "https://issuer.example"},
        {"audience": "x"},
        {"issuer": "http://issuer.example", "audience": "x"},
        {"issuer": "https://ann:secret@issuer.example", "audience": "x"},
        {"issuer": "https://issuer.example?x", "audience": "x"},
        {"issuer": "ftp://issuer.example", "audience": "x"},
        {"issuer": "https://issuer.example", "audience": "x", "jwks_url": "http://keys.example"},
        {"issuer": "https://issuer.example", "audience": "x", "algorithms": ["HS256"]},
        {"issuer": "https://issuer.example", "audience": "x", "algorithms": ["none"]},
        {"issuer": "https://issuer.example", "audience": "x", "algorithms": []},
        {"issuer": "https://issuer.example", "audience": "x", "tenant_claim": ""},
        {"issuer": "https://issuer.example", "audience": "x", "admin_scope": "two words"},
        {"issuer": "https://issuer.example", "audience": "x", "leeway": 3600},
    ],
)
def test_settings_that_would_open_too_much_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Auth(**wrong)  # pyright: ignore[reportArgumentType]


def test_settings_that_hold_are_taken() -> None:
    kept = Auth(issuer="https://issuer.example/", audience="x", algorithms=("ES512",))
    assert kept.issuer == "https://issuer.example/", "an issuer is what it says, to the letter"
    Auth(issuer="http://[::1]:9000", audience="x", jwks_url="https://keys.example/jwks")
