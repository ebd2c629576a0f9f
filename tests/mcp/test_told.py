"""What a client may keep of an answer, and what it can complete."""

from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.mcp.house import House
from tests.mcp.older import Older
from tests.mcp.others import behind, library

pytestmark = pytest.mark.req("V1")
LISTS: Mapping[str, Mapping[str, Any]] = {
    "tools/list": {},
    "resources/list": {},
    "resources/templates/list": {},
    "prompts/list": {},
    "resources/read": {"uri": "focal://tools/tenant/acme/available"},
}
TEMPLATES = {
    "focal://tools/tenant/{id}/available": "acme",
    "focal://tools/agent/{id}/enabled": "billing",
    "focal://tools/agent/{id}/unavailable": "billing",
}


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    """With a server behind it, which has prompts and books."""
    async with behind(tmp_path) as found:
        found.put(library())
        yield found.house


async def test_nothing_that_may_change_in_a_moment_is_kept(house: House) -> None:
    for method, params in LISTS.items():
        _status, body = await house.post(method, params)
        found = body["result"]
        assert (found["ttlMs"], found["cacheScope"]) == (0, "private"), method
    _status, body = await house.post("server/discover")
    found = body["result"]
    assert (found["ttlMs"], found["cacheScope"]) == (3_600_000, "public"), "the same for everybody"


async def test_the_older_revision_is_told_nothing_that_it_does_not_know(house: House) -> None:
    async with aiohttp.ClientSession() as http:
        older = await Older(house, http).begin()
        for method, params in LISTS.items():
            found = (await older.ask(method, dict(params), accept="application/json"))["result"]
            assert not {"ttlMs", "cacheScope", "resultType"} & found.keys(), method


async def completed(house: House, template: str, typed: str, key: str = "") -> list[str]:
    params = {
        "ref": {"type": "ref/resource", "uri": template},
        "argument": {"name": "id", "value": typed},
    }
    _status, body = await house.post("completion/complete", params, key=key)
    return body["result"]["completion"]["values"]


@pytest.mark.parametrize("template", TEMPLATES)
async def test_our_templates_are_completed_with_what_is_the_callers_own(
    house: House, template: str
) -> None:
    own = TEMPLATES[template]
    _status, body = await house.post("resources/templates/list")
    assert template in [one["uriTemplate"] for one in body["result"]["resourceTemplates"]]
    for typed in ("", own[0], own):
        assert await completed(house, template, typed) == [own]
        # And can be read by it.
        uri = template.replace("{id}", own)
        assert "result" in (await house.post("resources/read", {"uri": uri}))[1]
    for typed in ("x", own + "x", own.upper()):
        assert await completed(house, template, typed) == []


async def test_nobody_is_told_of_other_tenants_and_agents(house: House) -> None:
    tenants, agents = list(TEMPLATES)[:2]
    assert await completed(house, tenants, "", house.other) == ["globex"]
    assert await completed(house, tenants, "acme", house.other) == []
    assert await completed(house, agents, "", house.plain) == ["robot"]
    assert await completed(house, agents, "billing", house.plain) == []
