"""PostgreSQL by two roles, as the docs set them up: one owns the tables, the other uses them."""

# asyncpg carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
import re
from collections.abc import Generator, Sequence
from pathlib import Path

import asyncpg
import pytest

from tests.cli.conftest import Run, as_json
from tests.servers.postgres import Postgres as Server
from toolgate import Caller, Toolgate, tool
from toolgate.settings.settings import Settings, Store

pytestmark = pytest.mark.req("D1", "V3")
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "use-postgresql.md"
URL, MIGRATE_URL = "TOOLGATE_STORE__URL", "TOOLGATE_STORE__MIGRATE_URL"
REQUIRED = "TOOLGATE_STORE__ROW_SECURITY"


@tool(effect="irreversible")
async def send(number: int) -> int:
    """Send it."""
    return number


def execute(dsn: str, *statements: str) -> Sequence[Sequence[str]]:
    """The rows of the last one."""

    async def work() -> Sequence[Sequence[str]]:
        line = await asyncpg.connect(dsn)
        try:
            return [await line.fetch(one) for one in statements][-1]
        finally:
            await line.close()

    return asyncio.run(work())


def shown() -> list[list[str]]:
    """The statements on the page, as they stand there."""
    blocks = re.findall(r"```text\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return [[one.strip() for one in block.split(";") if one.strip()] for block in blocks]


def at(server: Server, role: str) -> str:
    dsn = server.dsn.removesuffix("/postgres") + "/toolgate"
    return dsn.replace("//toolgate@", f"//{role}@")


@pytest.fixture
def server(postgres: Server) -> Generator[Server]:
    first, then = shown()
    execute(postgres.dsn, *first)
    try:
        execute(at(postgres, "toolgate_owner"), *then)
        yield postgres
    finally:
        gone = ("DATABASE toolgate WITH (FORCE)", "ROLE toolgate_owner", "ROLE toolgate_app")
        execute(postgres.dsn, *(f"DROP {one}" for one in gone))


def tenants(run: Run) -> tuple[bool, str]:
    """What the doctor says of the wall between them."""
    [[fine, says]] = [
        [one["fine"], one["says"]]
        for one in as_json(run("doctor", "--json"))
        if one["part"] == "tenants"
    ]
    return fine, says


async def called(url: str, folder: Path) -> str:
    settings = Settings(store=Store(url=url, row_security="require"), root=folder)
    async with Toolgate.open(settings) as gate:
        gate.add(send)
        output = await gate.call(
            "send", {"number": 3}, caller=Caller(tenant="default", agent="default")
        )
        return output.status


def test_a_role_that_owns_nothing_serves_what_the_owner_made(
    run: Run, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, owner = at(server, "toolgate_app"), at(server, "toolgate_owner")
    monkeypatch.setenv(URL, app)
    monkeypatch.setenv(REQUIRED, "require")
    refused = run("tenants", "list")
    assert refused.exit_code == 1
    assert "toolgate migrate" in refused.output
    monkeypatch.setenv(MIGRATE_URL, owner)
    assert "up to date" in run("migrate").output
    monkeypatch.delenv(MIGRATE_URL)
    assert run("tenants", "add", "acme", "--why", "new").exit_code == 0
    assert tenants(run) == (True, "row security is in force")
    assert asyncio.run(called(app, tmp_path)) == "success"
    # Who says nothing sees nothing; an earlier version, which has nothing to say, goes on.
    calls = "SELECT state FROM tool_execution_log"
    assert execute(app, calls) == []
    assert execute(app, "SET toolgate.tenant = 'globex'", calls) == []
    assert [tuple(row) for row in execute(owner, calls)] == [("succeeded",)]
    assert execute(owner, "SET toolgate.tenant = ''", calls) == []


def test_a_role_that_sees_past_the_wall_is_told_or_refused(
    run: Run, server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(URL, at(server, "toolgate"))
    assert run("tenants", "list").exit_code == 0
    assert "row security is not in force: the role 'toolgate' is a superuser" in caplog.text
    fine, says = tenants(run)
    assert fine
    assert says.startswith("row security is not in force: the role 'toolgate' is a superuser")
    monkeypatch.setenv(REQUIRED, "require")
    refused = run("tenants", "list")
    assert refused.exit_code == 1
    assert "store.row_security: row security is not in force" in refused.output
    monkeypatch.setenv(URL, "sqlite:///here.db")
    refused = run("tenants", "list")
    assert refused.exit_code == 1
    assert "SQLite has no row security" in refused.output


def test_the_owners_password_is_not_written_into_a_file(run: Run, tmp_path: Path) -> None:
    text = '[store]\nmigrate_url = "postgresql://me:hunter2@host/name"'
    (tmp_path / "toolgate.toml").write_text(text, "utf-8")
    refused = run("tenants", "list")
    assert refused.exit_code == 1
    assert "store.migrate_url holds a password" in refused.output
    assert MIGRATE_URL in refused.output
    assert "hunter2" not in refused.output
