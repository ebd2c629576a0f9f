"""What is done to the audit log behind its back is seen."""

import asyncio

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from tests.audit.conftest import entry, write_some
from toolgate.spec.effect import Effect
from toolgate.store import audit, pages, proof
from toolgate.store.database import Database
from toolgate.store.records import audit_log, audit_seals, call_pages
from toolgate.store.records import tool_execution_log as log
from toolgate.store.rows import COLUMNS, row_of
from toolgate.store.seals import Sealer
from toolgate.tenancy.audit import Proof

pytestmark = pytest.mark.req("O2")


async def verified(database: Database, *kept: str, tenant: str | None = None) -> Proof:
    return await database.read(lambda one: proof.verify(one, tenant=tenant, kept=kept))


async def tamper(database: Database, *statements: str) -> None:
    """As somebody would who can write to the database."""

    def work(connection: Connection) -> None:
        for statement in statements:
            assert connection.execute(sa.text(statement)).rowcount > 0, "it changed nothing"

    await database.write(work)


async def test_what_nobody_touched_holds(sealed: Database) -> None:
    found = await verified(sealed)
    assert found.holds
    assert (found.records, found.seals, found.pages, found.unsealed) == (27, 9, 6, 0)
    mine = await verified(sealed, tenant="acme")
    assert (mine.records, mine.seals, mine.pages) == (12, 3, 3)


THIRD = "(SELECT min(id) + 2 FROM audit_log WHERE tenant_id = 'acme')"
ATTACKS = {
    "a word is changed": "UPDATE audit_log SET why = 'nothing' WHERE id = {third}",
    "its moment is changed": "UPDATE audit_log SET at_ns = at_ns + 1 WHERE id = {third}",
    "its details are changed": "UPDATE audit_log SET details = '{}' WHERE id = {third}",
    "it becomes another's": "UPDATE audit_log SET tenant_id = 'globex' WHERE id = {third}",
    "it is removed": "DELETE FROM audit_log WHERE id = {third}",
    "a seal is changed": "UPDATE audit_seals SET hash = 'aa' WHERE number = 2",
    "a seal is removed": "DELETE FROM audit_seals WHERE number = 2 AND tenant_id = 'acme'",
    "the first seal is removed": "DELETE FROM audit_seals WHERE number = 1",
    "it is moved to another seal": "UPDATE audit_log SET seal = 3 WHERE id = {third}",
    "it is taken out of its seal": "UPDATE audit_log SET seal = NULL WHERE id = {third}",
    "it gets another place": "UPDATE audit_log SET id = 9000 WHERE id = {third}",
    "one is put between": (
        "INSERT INTO audit_log (id, at_ns, who, why, tenant_id, change, details, digest, seal) "
        "SELECT 9001, at_ns, who, why, tenant_id, change, details, digest, seal "
        "FROM audit_log WHERE id = {third}"
    ),
    "a page is changed": "UPDATE call_pages SET entries = CAST('x' AS {blob})",
    "a page is hidden": "UPDATE call_pages SET written_ns = 0 WHERE tenant_id = 'acme'",
    "a page is removed": "DELETE FROM call_pages WHERE tenant_id = 'acme'",
    "a page is put there": (
        "INSERT INTO call_pages (tenant_id, first_call_id, written_ns, calls, entries) "
        "SELECT tenant_id, 'call_x', written_ns, calls, entries FROM call_pages LIMIT 1"
    ),
}


@pytest.mark.parametrize("what", ATTACKS)
async def test_what_is_done_to_a_record_a_seal_or_a_page_is_seen(
    sealed: Database, what: str
) -> None:
    is_sqlite = type(sealed).__name__ == "Sqlite"
    blob = "BLOB" if is_sqlite else "BYTEA"
    await tamper(sealed, ATTACKS[what].replace("{blob}", blob).replace("{third}", THIRD))
    found = await verified(sealed)
    assert not found.holds, what
    assert all(problem[0].islower() and len(problem) > 20 for problem in found.problems)


async def test_what_is_changed_with_its_digest_is_seen_by_its_seal(sealed: Database) -> None:
    def work(connection: Connection) -> None:
        row = connection.execute(
            sa.select(audit_log).where(audit_log.c.who == "eva").limit(1)
        ).mappings()
        changed = {**next(iter(row)), "who": "mallory"}
        connection.execute(
            audit_log.update()
            .where(audit_log.c.id == changed["id"])
            .values(who="mallory", digest=audit.digest_of(changed))
        )

    await sealed.write(work)
    [problem] = (await verified(sealed)).problems
    assert "seal 1" in problem
    assert "does not hold" in problem


async def test_two_records_that_change_places_are_seen(sealed: Database) -> None:
    def work(connection: Connection) -> None:
        first, second = (
            connection.execute(
                sa.select(audit_log.c.id).where(
                    audit_log.c.seal == 2, audit_log.c.tenant_id == "acme"
                )
            )
            .scalars()
            .all()[:2]
        )
        for old, new in ((first, -1), (second, first), (-1, second)):
            connection.execute(audit_log.update().where(audit_log.c.id == old).values(id=new))

    await sealed.write(work)
    assert not (await verified(sealed)).holds


@pytest.mark.parametrize("cut", [True, False], ids=["cut", "control"])
async def test_a_tail_that_was_cut_off_is_seen_with_an_anchor(
    sealed: Database,
    cut: bool,  # noqa: FBT001
) -> None:
    anchors = await sealed.read(proof.anchors)
    kept = [str(one) for one in anchors]
    if cut:
        await tamper(
            sealed,
            "DELETE FROM audit_seals WHERE number = 3 AND tenant_id = 'acme'",
            "DELETE FROM audit_log WHERE seal = 3 AND tenant_id = 'acme'",
            "DELETE FROM call_pages WHERE first_call_id LIKE 'call_acme_2%'",
            "DELETE FROM tool_execution_log WHERE call_id LIKE 'call_acme_2%'",
        )
    assert (await verified(sealed)).holds, "by itself a chain does not know its end"
    found = await verified(sealed, *kept)
    assert found.holds is not cut
    if cut:
        [problem] = found.problems
        assert "cut off" in problem


async def test_an_anchor_stays_good_while_the_log_grows(sealed: Database) -> None:
    kept = [str(one) for one in await sealed.read(proof.anchors)]
    await write_some(sealed, 7)
    await Sealer(sealed).seal()
    assert (await verified(sealed, *kept)).holds
    assert (await verified(sealed, kept[0].partition(":")[2])).holds, "the hash alone will do"


async def test_a_page_that_is_written_again_takes_its_own_place(sealed: Database) -> None:
    page = [entry("call_again"), entry("call_again_2")]
    await sealed.write(lambda one: pages.write(one, page[:1]))
    await sealed.write(lambda one: pages.write(one, page))
    assert (await verified(sealed)).holds


async def test_what_commits_late_with_a_smaller_id_stands_in_a_later_seal(
    opened: Database,
) -> None:
    def put(connection: Connection, id_: int) -> None:
        done = entry(f"call_{id_}", effect=Effect.IRREVERSIBLE)
        connection.execute(log.insert(), dict(zip(COLUMNS, row_of(done), strict=True)))
        row = audit.execution_row(done, id_)
        connection.execute(audit_log.insert().values(id=id_, **row))

    await opened.write(lambda one: put(one, 50))
    assert await Sealer(opened).seal() == 1
    await opened.write(lambda one: put(one, 49))
    assert await Sealer(opened).seal() == 1
    found = await verified(opened)
    assert (found.holds, found.seals, found.records) == (True, 2, 2)


async def test_sealers_on_several_nodes_make_one_chain(opened: Database) -> None:
    for number in range(5):
        await write_some(opened, number)
        await asyncio.gather(*(Sealer(opened).seal() for _ in range(4)))
    await Sealer(opened).seal()
    found = await verified(opened)
    assert found.holds
    assert found.unsealed == 0

    def count(connection: Connection) -> int:
        return connection.execute(sa.select(sa.func.sum(audit_seals.c.records))).scalar_one()

    assert await opened.read(count) == found.records


async def test_records_of_an_older_version_are_sealed_from_now_on(opened: Database) -> None:
    await write_some(opened, 0)
    await tamper(opened, "UPDATE audit_log SET digest = ''")
    assert (await verified(opened)).holds
    await Sealer(opened).seal()
    assert (await verified(opened)).holds
    await tamper(opened, ATTACKS["a word is changed"].replace("{third}", THIRD))
    assert not (await verified(opened)).holds


async def test_the_quick_digest_of_an_execution_is_the_usual_one() -> None:
    odd = entry('call_"\n\u2028\x1b\x7f', tenant="t\u0001ö\U0001f600", effect=Effect.IDEMPOTENT)
    row = audit.execution_row(odd, 7)
    assert row["digest"] == audit.digest_of(row)


@pytest.mark.parametrize("written_ns", [0, 1, 1 << 62])
async def test_a_page_without_its_record_is_seen_whenever_it_says_it_was_written(
    sealed: Database, written_ns: int
) -> None:
    forged = {
        "tenant_id": "acme",
        "first_call_id": "call_0",
        "written_ns": written_ns,
        "calls": 1,
        "entries": b"",
    }
    assert (await verified(sealed)).holds
    await sealed.write(lambda one: one.execute(call_pages.insert().values(**forged)))
    [problem] = (await verified(sealed)).problems
    assert "put there by another hand" in problem


async def test_a_name_that_is_said_twice_in_a_record_is_seen(sealed: Database) -> None:
    """Some readers of JSON believe the first one, and some the last."""

    def work(connection: Connection) -> None:
        column = audit_log.c
        asked = sa.select(column.id, sa.cast(column.details, sa.Text))
        id_, told = (
            connection.execute(asked.where(column.change == "call.ended")).first() or ("",) * 2
        )
        given = ":told" if connection.dialect.name == "sqlite" else "CAST(:told AS JSON)"
        change = sa.text(f"UPDATE audit_log SET details = {given} WHERE id = :id")  # noqa: S608
        twice = told.replace("{", '{"user": "mallory", ', 1)
        assert connection.execute(change, {"told": twice, "id": id_}).rowcount == 1

    await sealed.write(work)
    [problem, *_] = (await verified(sealed)).problems
    assert "cannot be read" in problem
