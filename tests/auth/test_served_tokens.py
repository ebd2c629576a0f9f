"""A served house that takes an issuer's tokens: at every door, and where to get one."""

import asyncio
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
from joserfc.jwk import RSAKey

from tests.auth.issuer import AUDIENCE, Issuer, issuing
from tests.auth.skew import SKEWED, put_forward
from tests.house import open_gate
from tests.server.serving import COMMAND, Answer, Serving
from tests.server.test_revoked_keys import MODULE, TOOLS, marks
from tests.server.test_routes import is_problem
from toolgate.tenancy.keys import Role

pytestmark = pytest.mark.req("V3")
WELL_KNOWN = "/.well-known/oauth-protected-resource"


class Place(NamedTuple):
    issuer: Issuer
    server: Serving
    admin: str

    async def ask(self, method: str, path: str, token: str | None = None, **more: Any) -> Answer:
        return await asyncio.to_thread(self.server.ask, method, path, key=token, **more)


@asynccontextmanager
async def served(root: Path, key: RSAKey, before: str = "") -> AsyncGenerator[Place]:
    (root / "tools").mkdir()
    (root / "tools" / "marking.yaml").write_text(TOOLS, "utf-8")
    (root / "marking.py").write_text(MODULE, "utf-8")
    async with open_gate(root) as gate:
        for tenant in ("acme", "umbrella"):
            await gate.tenancy.set_agent(tenant, "billing")
        admin = await gate.tenancy.add_key(Role.ADMIN, tenant="acme")
    async with issuing(key) as issuer:
        scopes = 'required_scope = "gate:use"\napprover_scope = "gate:approve"\n'
        scopes += 'operator_scope = "gate:operate"\n'
        said = f'[auth]\nissuer = "{issuer.url}"\naudience = "{AUDIENCE}"\n{scopes}'
        (root / "toolgate.toml").write_text(said, "utf-8")
        starting = asyncio.to_thread(Serving, root, "--config", "toolgate.toml", before=before)
        server = await starting
        try:
            yield Place(issuer, server, admin.secret)
        finally:
            await asyncio.to_thread(server.stop)


def token(place: Place, **more: Any) -> str:
    named: dict[str, Any] = {"scope": "gate:use", **more}
    return place.issuer.token(**named)


async def test_a_token_opens_what_its_agents_key_would(tmp_path: Path, issuers_key: RSAKey) -> None:
    async with served(tmp_path, issuers_key) as place:
        body = {"tool": "echo", "args": {"text": "x"}}
        done = await place.ask("POST", "/v1/call", token(place), body=body)
        assert (done.status, done.body["data"]) == (200, {"text": "x"})
        did = await place.ask("POST", "/v1/call", token(place), body={"tool": "mark"})
        assert (did.status, marks(tmp_path)) == (200, 1)
        path = f"/v1/calls/{did.body['call_id']}"
        assert (await place.ask("GET", path, token(place))).status == 200
        # Another tenant's, and another user's, is not there.
        other = await place.ask("GET", path, token(place, tenant="umbrella"))
        missing = await place.ask("GET", "/v1/calls/call_none", token(place, tenant="umbrella"))
        assert (other.status, missing.status) == (404, 404)
        assert other.text.replace(did.body["call_id"], "call_none") == missing.text
        assert (await place.ask("GET", path, token(place, sub="bob"))).status == 404
        is_problem(await place.ask("GET", "/v1/admin/keys", token(place)), 403, "permission_denied")
        approver = token(place, scope="gate:use gate:approve")
        assert (await place.ask("GET", "/v1/approvals", approver)).status == 200
        is_problem(await place.ask("GET", "/v1/tools", approver), 403, "permission_denied")


async def test_whoever_is_not_let_in_is_told_where_to_get_a_token(
    tmp_path: Path, issuers_key: RSAKey
) -> None:
    async with served(tmp_path, issuers_key) as place:
        url = place.server.greeting["url"]
        wrong = [
            token(place, aud="x"),
            token(place, exp=1),
            token(place, tenant="nobody"),
            "tg_agent_none",
            "a.b.c",
            None,
        ]
        told = [await place.ask("GET", "/v1/tools", one) for one in wrong]
        assert {(one.status, one.text) for one in told} == {(401, told[0].text)}
        told += [await place.ask("POST", "/mcp", one, body={}) for one in wrong]
        challenge = f'Bearer resource_metadata="{url}{WELL_KNOWN}", scope="gate:use"'
        assert {(one.status, one.headers["www-authenticate"]) for one in told} == {(401, challenge)}
        await _lacking_a_scope(place, f'resource_metadata="{url}{WELL_KNOWN}"')
        numbers = (await place.ask("GET", "/metrics")).text
        counted = dict(
            line.removeprefix('toolgate_auth_refused_total{reason="').split('"} ')
            for line in numbers.splitlines()
            if line.startswith("toolgate_auth_refused_total{")
        )
        assert counted == {
            "token_audience": "2",
            "token_time": "2",
            "token_holder": "2",
            "token_scope": "2",
            "token_unreadable": "2",
            "unknown_key": "2",
            "no_key": "2",
        }
        for path in ("", "/mcp"):
            found = await place.ask("GET", WELL_KNOWN + path)
            assert (found.status, found.headers["content-type"]) == (200, "application/json")
            head = await place.ask("HEAD", WELL_KNOWN + path)
            length = str(len(found.text.encode()))
            assert (head.status, head.text) == (200, "")
            assert head.headers["content-length"] == length
            assert found.body == {
                "resource": url + path,
                "authorization_servers": [place.issuer.url],
                "bearer_methods_supported": ["header"],
                "resource_name": "toolgate",
                "scopes_supported": ["gate:use", "gate:operate", "gate:approve"],
            }
        wrong = await place.ask("POST", WELL_KNOWN)
        is_problem(wrong, 405, "method_not_allowed")
        assert wrong.headers["allow"] == "GET, HEAD"


async def _lacking_a_scope(place: Place, where: str) -> None:
    """A valid token is told which scope it lacks: for the door, and for an address behind it."""
    error = 'Bearer error="insufficient_scope", scope='
    poor = token(place, scope="other")
    rest = await place.ask("GET", "/v1/tools", poor)
    is_problem(rest, 403, "insufficient_scope")
    mcp = await place.ask("POST", "/mcp", poor, body={})
    assert (mcp.status, mcp.body["error"]["data"]) == (403, {"code": "insufficient_scope"})
    told = {one.headers["www-authenticate"] for one in (rest, mcp)}
    assert told == {f'{error}"gate:use", {where}'}
    more = await place.ask("GET", "/v1/admin/calls", token(place))
    is_problem(more, 403, "permission_denied")
    assert more.headers["www-authenticate"] == f'{error}"gate:use gate:operate", {where}'
    # Nothing makes a token an admin's here, and a key of ours has no scopes.
    for path, one in (("/v1/admin/keys", token(place)),):
        shut = await place.ask("GET", path, one)
        assert (shut.status, "www-authenticate" in shut.headers) == (403, False), path


async def waited(place: Place, root: Path) -> Answer:
    """A call that waits for a person, who agrees when its token has ended."""
    body = {"tool": "grave", "wait_s": 20}
    asking = asyncio.create_task(place.ask("POST", "/v1/call", token(place), body=body))
    listed: list[Any] = []
    while not listed:
        listed = (await place.ask("GET", "/v1/approvals", place.admin)).body["approvals"]
    put_forward(root, 0.25)
    path = f"/v1/approvals/{listed[0]['id']}/approve"
    assert (await place.ask("POST", path, place.admin, body={})).status == 200
    return await asking


async def test_a_call_that_waited_longer_than_its_token_lasts_does_nothing(
    tmp_path: Path, issuers_key: RSAKey
) -> None:
    async with served(tmp_path, issuers_key, SKEWED) as place:
        is_problem(await waited(place, tmp_path), 401, "unauthenticated")
        assert marks(tmp_path) == 0


async def test_without_the_end_of_its_token_it_would(tmp_path: Path, issuers_key: RSAKey) -> None:
    """The guard-off control."""
    off = (
        "import toolgate.gate.book as book\n"
        "book.is_let_in = lambda *_: True\nbook.end_of = lambda *_: 0\n"
    )
    async with served(tmp_path, issuers_key, SKEWED + off) as place:
        assert (await waited(place, tmp_path)).status == 200
        assert marks(tmp_path) == 1


def test_without_the_library_it_does_not_start(tmp_path: Path) -> None:
    said = '[auth]\nissuer = "https://issuer.example"\naudience = "x"\n'
    (tmp_path / "toolgate.toml").write_text(said, "utf-8")
    gone = "import sys; sys.modules['joserfc'] = None; "
    ended = subprocess.run(
        [
            *COMMAND[:2],
            gone + COMMAND[2],
            "serve",
            "--config",
            "toolgate.toml",
            "--port",
            "0",
            "--json",
        ],
        cwd=tmp_path,
        capture_output=True,
        timeout=50,
        check=False,
    )
    assert ended.returncode == 1
    told = orjson.loads(ended.stdout)["error"]
    assert "make install EXTRAS=jwt" in str(told)


def test_without_an_issuer_there_is_no_such_page(tmp_path: Path) -> None:
    with Serving(tmp_path) as server:
        for path in ("", "/mcp"):
            assert server.get(WELL_KNOWN + path).status in {401, 404}
        answer = server.get("/v1/tools")
        assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
