"""What needs a person's word does not run without it."""

from pathlib import Path
from typing import Any

import pytest

from tests.executor.tools import pay
from tests.house import ME, open_gate, states
from toolgate import Toolgate, tool


@pytest.mark.req("S6")
@pytest.mark.parametrize(
    "care",
    [
        {"requires_approval": True},
        {"requires_confirmation": True},
        {"destructive": True},
    ],
)
async def test_what_needs_a_person_refuses_and_never_runs(
    gate: Toolgate, care: dict[str, Any]
) -> None:
    ran: list[str] = []

    async def act() -> None:
        ran.append("act")

    gate.add(tool(effect="irreversible", **care)(act))
    for _ in range(3):
        output = await gate.call("act", caller=ME)
        assert (output.ok, output.status) == (False, "pending_approval")
        assert output.error is not None
        assert output.error.code == "approval_pending"
        assert "Nothing ran" in output.error.message
    assert ran == []
    assert await states(gate) == [("act", "waiting", "")]


@pytest.mark.req("S6")
async def test_without_the_approval_link_it_would_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def passing(_self: object, inner: Any) -> Any:
        return inner

    monkeypatch.setattr("toolgate.executor.people.approval.Ask.link", passing)
    async with open_gate(tmp_path) as gate:
        gate.add(tool(effect="irreversible", destructive=True)(pay))
        assert (await gate.call("pay", {"amount": 1, "to": "ann"}, caller=ME)).ok
