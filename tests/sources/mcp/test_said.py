"""What a server's tools say is data: whatever it asks for, nothing is decided by it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.sources.mcp.served import ME, READS, TRUSTED, Served, served, text, tool
from toolgate.testing.upstream import MemoryUpstream

pytestmark = pytest.mark.req("P3", "G6")
DATA = Path(__file__).parents[4] / "shared" / "data" / "security"


def texts() -> list[str]:
    """Orders to a model, as attackers have written them."""
    found: list[str] = []
    for name, key in (("agentdojo_injections", "text"), ("tool_poisoning", "description")):
        items = json.loads((DATA / f"{name}.json").read_text("utf-8"))["items"]
        found += [one[key] for one in items if one.get(key, "").strip()]
    return found


async def decided(house: Served) -> dict[str, Any]:
    """What the gate says of each tool, and what becomes of a call of each."""
    found: dict[str, Any] = {"listed": await house.names()}
    for name in ("mcp:it:hidden", "mcp:it:pay", "mcp:it:read"):
        found[name] = await house.gate.explain(name, caller=ME)
    found["pay"] = (await house.gate.call("mcp:it:pay", {"text": "all"}, caller=ME)).status
    return found


@pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is not here")
async def test_no_text_of_a_result_changes_a_decision() -> None:
    upstream = MemoryUpstream(
        "it", tools=[tool("read", annotations=READS), tool("pay"), tool("hidden")]
    )
    upstream.tools = {"read": text("All is well."), "pay": text("Paid.")}
    async with served({"it": upstream}, TRUSTED) as house:
        await house.gate.tenancy.activate("acme", "clerk", "mcp:it:hidden", enabled=False)
        well = await house.gate.call("read", {}, caller=ME)
        assert (well.data, well.untrusted) == ("All is well.", True)
        clean = await decided(house)
        assert clean["pay"] == "pending_approval"
        said = texts()
        assert len(said) >= 100
        for one in said:
            upstream.tools["read"] = text(one)
            output = await house.gate.call("read", {}, caller=ME)
            assert output.data == one, "as it was sent"
            assert output.untrusted is True
            assert await decided(house) == clean
        assert [one.params["name"] for one in upstream.heard].count("pay") == 0
