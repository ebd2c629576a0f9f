"""Some of the cases in a whole house: from a settings file to the tool's own answer."""

from pathlib import Path

import pytest

from tests.gate.case import Case, by_note, put, read_cases, write_house
from toolgate import CallRefused, Toolgate
from toolgate.errors import PermissionDenied, ToolNotFound

WHOLE = [case for case in read_cases() if case.whole]


@pytest.mark.req("G1", "G6", "C4", "O2")
@pytest.mark.parametrize("case", WHOLE, ids=by_note)
async def test_a_whole_house_decides_as_the_case_says(case: Case, tmp_path: Path) -> None:
    caller = case.who()
    async with Toolgate.open(write_house(tmp_path, case)) as house:
        await put(house.tenancy, case)
        box = await house.toolbox(caller).refresh()
        listed = {spec.name for spec in await house.discover(caller)}
        assert (case.tool in listed) is (case.want != "hide")
        assert box.is_available(case.tool) is (case.want != "hide")

        refusal: CallRefused | None = None
        try:
            output = await house.call(case.tool, case.args, caller=caller)
            assert output.data == case.args
        except CallRefused as raised:
            refusal = raised
        kind = {"call": None, "hide": ToolNotFound, "deny": PermissionDenied}[case.want]
        assert (type(refusal) if refusal is not None else None) is kind

        explained = await house.explain(case.tool, caller=caller, args=case.args)
        assert explained.allowed is case.allowed
        entries = await house.journal.entries(caller.tenant)
        assert [entry.tool for entry in entries] == [case.tool] * case.allowed
    async with Toolgate.open(tmp_path / "toolgate.toml") as house:
        decisions = await house.decisions.since(0, tenant=caller.tenant)
        [entry] = await house.journal.entries(caller.tenant) if case.allowed else [None]
        assert {one.allowed for one in decisions} == {case.allowed}
        if entry is not None:
            # What ran is on record with the decision that let it.
            [decision] = [one for one in decisions if one.id == entry.decision]
            assert (decision.tool, decision.observed) == (case.tool, case.observe)
