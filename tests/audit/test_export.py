"""An export in parts: whatever their size, the same lines, and nobody else's."""

from typing import Any

import orjson
import pytest

from tests.audit.conftest import write_some
from tests.audit.test_chain import tamper
from tests.audit.test_whole import verified_elsewhere
from toolgate.errors import InvalidRequest
from toolgate.store.database import Database
from toolgate.store.seals import Sealer
from toolgate.store.trail import TableTrail
from toolgate.tenancy.audit import Mark

MOVED = "UPDATE audit_log SET seal = {seal} WHERE id = {last}"
pytestmark = pytest.mark.req("V5")


async def exported(database: Database, most: int, tenant: str | None = None) -> list[str]:
    lines: list[str] = []
    after: Mark | None = None
    while True:
        found, after = await TableTrail(database).export(tenant, after, most=most)
        lines += found
        if after is None:
            return lines


def rows(lines: list[str]) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in lines]


async def test_parts_of_any_size_are_the_same_export(sealed: Database) -> None:
    whole = await exported(sealed, 10_000)
    assert verified_elsewhere(whole)
    kinds = [row["kind"] for row in rows(whole)]
    assert (kinds.count("seal"), kinds.count("record") > 9) == (9, True)
    for most in (1, 2, 3, 7, 20):
        assert await exported(sealed, most) == whole, most


async def test_a_part_holds_about_as_much_as_was_asked_for(sealed: Database) -> None:
    longest = 1 + max(row["records"] for row in rows(await exported(sealed, 99)) if "hash" in row)
    for most in (1, 5, 9):
        found, _ = await TableTrail(sealed).export(None, None, most=most)
        assert 0 < len(found) < most + longest


async def test_a_mark_says_where_and_never_whose(sealed: Database) -> None:
    trail = TableTrail(sealed)
    for mark in (None, Mark("globex"), Mark("globex", 0, 0), Mark("")):
        found, _ = await trail.export("acme", mark, most=10_000)
        assert {row["tenant"] for row in rows(list(found))} <= {"acme"}, mark
    found, _ = await trail.export(None, Mark("globex"), most=10_000)
    assert {row["tenant"] for row in rows(list(found))} == {"globex"}, "the control"


async def test_anchors_and_an_export_of_nobody_are_refused_as_a_proof_is(sealed: Database) -> None:
    trail = TableTrail(sealed)
    assert (await trail.export("acme", None, most=1)).lines
    with pytest.raises(InvalidRequest) as proof:
        await trail.verify(tenant="acmee")
    with pytest.raises(InvalidRequest, match="no tenant 'acmee'") as export:
        await trail.export("acmee", None, most=1)
    assert export.value.message == proof.value.message
    assert [one.tenant for one in await trail.anchors("acme")] == ["acme"]
    with pytest.raises(InvalidRequest) as anchors:
        await trail.anchors("acmee")
    assert anchors.value.message == proof.value.message


async def test_what_is_sealed_meanwhile_comes_with_its_seal(sealed: Database) -> None:
    trail = TableTrail(sealed)
    first, after = await trail.export("acme", None, most=4)
    await write_some(sealed, 7)
    rest, end = await trail.export("acme", after, most=10_000)
    assert end is None
    assert verified_elsewhere([*first, *rest])
    assert rows(list(rest))[-1]["kind"] == "seal"


@pytest.mark.parametrize("seal", ["NULL", "1", "99"])
async def test_what_stands_where_no_seal_has_put_it_is_told(sealed: Database, seal: str) -> None:
    """Nothing is left out of an export because somebody has moved it."""
    before = await exported(sealed, 3, "acme")
    last = max(row["id"] for row in rows(before) if row["kind"] == "record")
    await tamper(sealed, MOVED.format(seal=seal, last=last))
    if seal == "NULL":
        await Sealer(sealed).seal()
    now = await exported(sealed, 3, "acme")
    assert last in {row["id"] for row in rows(now) if row["kind"] == "record"}
    assert not verified_elsewhere(now)
