"""Who changed what and why: on record with the change itself, or neither is."""

import pytest
import sqlalchemy as sa
from inline_snapshot import snapshot

from tests.store.places import Walled
from toolgate import clock
from toolgate.errors import InvalidRequest, StoreUnavailable
from toolgate.store.database import Database
from toolgate.store.directory import TableDirectory
from toolgate.tenancy import keys
from toolgate.tenancy.audit import Actor, Record
from toolgate.tenancy.changes import (
    AddKey,
    AddTenant,
    Change,
    FirstKeys,
    MarkRelations,
    RemoveAgent,
    RevokeKey,
    SetActivation,
    SetAgent,
    SetLayer,
    SetPolicyModule,
    SetRelations,
    SetTenantFlag,
    SetToolFlag,
)
from toolgate.tenancy.directory import Directory
from toolgate.tenancy.keys import Key, Role
from toolgate.tenancy.layer import Layer
from toolgate.tenancy.relation import parse

pytestmark = pytest.mark.req("D1", "G1")
ACME, CLERK = AddTenant("acme"), SetAgent("acme", "clerk")
EVA = Actor("eva", "ticket 7")
ANN = parse("tool:pay#executor@user:ann")
KEY = Key(id="key_1", digest="d1ge57", role=Role.AGENT, tenant="acme", agent="clerk")


async def test_a_change_is_on_record_with_who_and_why(directory: Directory) -> None:
    began = clock.unix_ns()
    await directory.put((SetToolFlag("echo", enabled=False),), EVA)
    await directory.put((ACME,))
    newest, oldest = await directory.audit()
    assert (oldest.who, oldest.why, oldest.tenant) == ("eva", "ticket 7", "")
    assert (oldest.change, oldest.details) == ("set_tool_flag", {"tool": "echo", "enabled": False})
    assert (newest.who, newest.why, newest.tenant) == ("library", "", "acme")
    assert began <= oldest.at_ns <= newest.at_ns <= clock.unix_ns()
    assert oldest.id < newest.id


def brief(record: Record) -> tuple[str, str, dict[str, object]]:
    return record.tenant, record.change, dict(record.details)


async def test_what_each_change_said_is_kept(directory: Directory) -> None:
    changes: tuple[Change, ...] = (
        FirstKeys(),
        ACME,
        CLERK,
        SetActivation("acme", "clerk", "echo", overrides={"requires_approval": True}),
        SetLayer("house", Layer(allow=("group:read",), reason="r"), role="x", tenant="acme"),
        SetRelations("acme", add=(ANN,)),
        MarkRelations("acme", "t1", remove=(ANN,)),
        SetPolicyModule("a", "package a"),
        SetPolicyModule("a", None),
        AddKey(KEY),
        RevokeKey("key_1"),
        RemoveAgent("acme", "clerk"),
    )
    await directory.put(changes)
    assert [brief(one) for one in reversed(await directory.audit())] == snapshot(
        [
            ("", "first_keys", {}),
            ("acme", "add_tenant", {"tenant": "acme"}),
            ("acme", "set_agent", {"tenant": "acme", "agent": "clerk", "mode": "all"}),
            (
                "acme",
                "set_activation",
                {
                    "tenant": "acme",
                    "agent": "clerk",
                    "tool": "echo",
                    "enabled": True,
                    "overrides": {"requires_approval": True},
                },
            ),
            (
                "acme",
                "set_layer",
                {
                    "name": "house",
                    "layer": {"allow": ["group:read"], "deny": [], "reason": "r"},
                    "role": "x",
                    "tenant": "acme",
                },
            ),
            (
                "acme",
                "set_relations",
                {"tenant": "acme", "add": ["tool:pay#executor@user:ann"], "remove": []},
            ),
            (
                "acme",
                "mark_relations",
                {
                    "tenant": "acme",
                    "token": "t1",
                    "add": [],
                    "remove": ["tool:pay#executor@user:ann"],
                },
            ),
            (
                "",
                "set_policy_module",
                {
                    "name": "a",
                    "length": 9,
                    "sha256": "7663fa2eaf2e6846391a250cc37947941ffda1650e53cdee850c32f56e277971",
                },
            ),
            ("", "set_policy_module", {"name": "a", "text": None}),
            (
                "acme",
                "add_key",
                {
                    "key": {
                        "id": "key_1",
                        "role": "agent",
                        "tenant": "acme",
                        "agent": "clerk",
                        "user": "",
                        "persona": "",
                        "roles": [],
                        "revoked": False,
                        "created_ns": 0,
                        "expires_ns": 0,
                        "issuer": "",
                    }
                },
            ),
            ("acme", "revoke_key", {"id": "key_1"}),
            ("acme", "remove_agent", {"tenant": "acme", "agent": "clerk"}),
        ]
    )


async def test_a_digest_is_never_in_the_audit_log(directory: Directory) -> None:
    fresh = keys.make(Role.AGENT, tenant="acme", agent="clerk")
    await directory.put((ACME, CLERK, AddKey(fresh.key), RevokeKey(fresh.key.id)))
    log = repr(await directory.audit())
    assert fresh.key.id in log
    assert fresh.key.digest not in log
    assert fresh.secret not in log


async def test_the_log_is_read_by_tenant_and_page_by_page(directory: Directory) -> None:
    for number in range(5):
        await directory.put((SetTenantFlag("acme", f"a{number}", enabled=True),))
        await directory.put((SetTenantFlag("globex", f"g{number}", enabled=True),))
    await directory.put((SetToolFlag("echo", enabled=True),))
    mine = await directory.audit(tenant="acme")
    assert [one.details["tool"] for one in mine] == ["a4", "a3", "a2", "a1", "a0"]
    assert [one.tenant for one in await directory.audit(tenant="")] == [""]
    everything = await directory.audit()
    assert len(everything) == 11
    first = await directory.audit(limit=4)
    rest = await directory.audit(before=first[-1].id)
    assert [*first, *rest] == everything
    assert await directory.audit(tenant="initech") == []


async def test_a_change_that_is_refused_leaves_no_record(directory: Directory) -> None:
    await directory.put((ACME,))
    before = await directory.audit()
    with pytest.raises(InvalidRequest):
        await directory.put((SetToolFlag("echo", enabled=False), RevokeKey("key_typo")), EVA)
    assert await directory.audit() == before


@pytest.mark.parametrize("broken", [True, False], ids=["broken", "control"])
async def test_what_cannot_be_noted_is_not_done(
    database: Database,
    broken: bool,  # noqa: FBT001
) -> None:
    directory = TableDirectory(database)
    away = "ALTER TABLE audit_log RENAME TO away"
    if broken and isinstance(database, Walled):
        pytest.skip("it owns no table that it could take away")
    if broken:
        await database.write(lambda connection: connection.exec_driver_sql(away).close())
        with pytest.raises(StoreUnavailable):
            await directory.put((SetToolFlag("echo", enabled=True),), EVA)
    else:
        await directory.put((SetToolFlag("echo", enabled=True),), EVA)
    world = await directory.load()
    assert world.everyone.flags == ({} if broken else {"echo": True})
    assert world.revision == (0 if broken else 1)


async def test_what_cannot_be_done_is_not_noted(database: Database) -> None:
    directory = TableDirectory(database)
    away = "ALTER TABLE policy_modules RENAME TO away"
    if isinstance(database, Walled):
        pytest.skip("it owns no table that it could take away")
    await database.write(lambda connection: connection.exec_driver_sql(away).close())
    with pytest.raises(StoreUnavailable):
        await directory.put((ACME, SetPolicyModule("a", "package a")), EVA)
    rows = await database.read(
        lambda connection: connection.execute(sa.text("SELECT count(*) FROM audit_log")).scalar()
    )
    assert rows == 0
