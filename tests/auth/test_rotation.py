"""Another secret for the same holder: both open for a while, then only the new one."""

import asyncio
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest

from tests.auth.skew import SKEWED, put_forward
from tests.house import open_gate
from tests.server.admins import Asked, House, prepare
from tests.server.serving import Serving
from tests.server.test_routes import is_problem
from toolgate.errors import InvalidRequest
from toolgate.tenancy.keys import FreshKey, Role, digest
from toolgate.tenancy.tenancy import Tenancy
from toolgate.testing.directory import MemoryDirectory

pytestmark = pytest.mark.req("V3")
HOLDER = ("role", "tenant", "agent", "user", "persona", "roles")


@pytest.fixture
def house(tmp_path: Path) -> Generator[House]:
    keys: Mapping[str, FreshKey] = prepare(tmp_path)
    with Serving(tmp_path, before=SKEWED) as server:
        yield House(server, keys)


def make(house: House, **more: object) -> dict[str, str]:
    whom = {"role": "agent", "agent": "billing", "user": "ann", "roles": ["clerk"], **more}
    return house.ask("own", Asked("POST", "keys", whom)).body


def opens(house: House, secret: str) -> bool:
    return house.server.get("/v1/tools", secret).status == 200


def test_both_open_for_the_overlap_and_then_only_the_new_one(house: House, tmp_path: Path) -> None:
    old = make(house)
    asked = Asked("POST", f"keys/{old['id']}/rotate", {"overlap": "2h", "why": "it was shown"})
    new = house.ask("own", asked).body
    assert [new[name] for name in HOLDER] == [old[name] for name in HOLDER]
    assert (new["replaces"], new["expires"]) == (old["id"], None)
    assert new["secret"] != old["secret"]
    assert opens(house, old["secret"])
    assert opens(house, new["secret"])
    put_forward(tmp_path, 3)
    assert not opens(house, old["secret"])
    assert opens(house, new["secret"])
    listed = house.ask("own", Asked("GET", "keys")).text
    assert new["id"] in listed
    assert old["id"] not in listed, "as if it had never been"
    audit = house.ask("own", Asked("GET", "audit?limit=5"))
    assert "it was shown" in audit.text
    assert not [one for one in (new["secret"], digest(new["secret"])) if one in audit.text + listed]


def test_without_an_overlap_the_old_one_is_shut_at_once(house: House) -> None:
    old = make(house)
    new = house.ask("own", Asked("POST", f"keys/{old['id']}/rotate", {"overlap": "0"})).body
    assert not opens(house, old["secret"])
    assert opens(house, new["secret"])


def test_a_key_that_ends_is_followed_by_one_that_lasts_as_long(
    house: House, tmp_path: Path
) -> None:
    old = make(house, expires="10h")
    put_forward(tmp_path, 8)
    new = house.ask("own", Asked("POST", f"keys/{old['id']}/rotate", {"overlap": "24h"})).body
    assert new["replaced_until"] == old["expires"], "an overlap makes nothing last longer"
    put_forward(tmp_path, 11)
    assert not opens(house, old["secret"])
    assert opens(house, new["secret"])
    put_forward(tmp_path, 19)
    assert not opens(house, new["secret"])


def test_nobody_rotates_what_is_not_theirs(house: House) -> None:
    old = make(house)
    missing = house.ask("other", Asked("POST", "keys/key_none/rotate", {}))
    is_problem(missing, 400, "invalid_request")
    theirs = house.ask("other", Asked("POST", f"keys/{old['id']}/rotate", {}))
    assert theirs.text.replace(old["id"], "key_none") == missing.text
    is_problem(
        house.ask("agent", Asked("POST", f"keys/{old['id']}/rotate", {})), 403, "permission_denied"
    )
    admin = house.keys["admin"].key.id
    is_problem(house.ask("own", Asked("POST", f"keys/{admin}/rotate", {})), 400, "invalid_request")
    assert opens(house, old["secret"]), "nothing was changed"
    for wrong in ({"overlap": "soon"}, {"expires": "2020-01-01"}, {"extra": 1}):
        answer = house.ask("own", Asked("POST", f"keys/{old['id']}/rotate", wrong))
        is_problem(answer, 400, "invalid_request")


async def test_a_key_that_is_revoked_has_no_successor() -> None:
    tenancy = Tenancy(MemoryDirectory())
    await tenancy.add_tenant("acme")
    old = await tenancy.add_key(Role.ADMIN, tenant="acme")
    await tenancy.revoke_key(old.key.id)
    with pytest.raises(InvalidRequest, match="no key"):
        await tenancy.rotate_key(old.key.id)
    with pytest.raises(InvalidRequest, match="no key"):
        await tenancy.rotate_key("key_none")
    assert not tenancy.world.keys


def test_another_process_sees_when_a_key_was_last_used(house: House, tmp_path: Path) -> None:
    fresh = make(house)
    rows = {one["id"]: one for one in house.ask("own", Asked("GET", "keys")).body["keys"]}
    assert rows[fresh["id"]]["last_used"] is None
    assert opens(house, fresh["secret"])
    rows = {one["id"]: one for one in house.ask("own", Asked("GET", "keys")).body["keys"]}
    assert rows[fresh["id"]]["last_used"] is not None
    house.server.stop()

    async def look() -> Mapping[str, int]:
        async with open_gate(tmp_path) as gate:
            return await gate.tenancy.uses.known()

    uses = asyncio.run(look())
    assert uses[fresh["id"]] >= uses.get("key_none", 1)
