"""What a person is shown is all that they agree to, without its secrets, and not too much."""

import pytest

from tests.people.asked import ANN, BOT, TURN, pending, ran
from toolgate import Caller, Toolgate, tool
from toolgate.errors import InvalidRequest, Overloaded
from toolgate.executor.people.desk import MOST_SHOWN, code_of, told
from toolgate.ledger import approval as kept_rules
from toolgate.testing.house import in_memory

pytestmark = pytest.mark.req("S6")
PASSWORD = "hunter2hunter2"  # noqa: S105  of this test


async def test_secrets_are_hidden_and_still_part_of_what_was_agreed_to() -> None:
    def login(user: str, password: str) -> str:
        """Log in."""
        ran.append((user, password))
        return "in"

    schema = {
        "type": "object",
        "properties": {"user": {"type": "string"}, "password": {"format": "password"}},
    }
    marked = tool(effect="irreversible", requires_approval=True, input_schema=schema)(login)
    async with in_memory(marked) as gate:
        id_ = await pending(gate, "login", ANN, user="ann", password=PASSWORD)
        found = await gate.approvals.find(id_, by="boss")
        assert found is not None
        assert "hunter2" not in str(told(found, whole=True))
        assert "hunter2" not in str(found)
        await gate.approvals.approve(id_, by="boss")
        other = await pending(gate, "login", ANN, user="ann", password=f"{PASSWORD}!")
        assert other != id_
        assert (await gate.call("login", {"user": "ann", "password": PASSWORD}, caller=ANN)).ok


HIDING = {
    "bidi": "ann\u202e moc.live@",
    "zero width": "ann\u200b\u2060\ufeff@corp",
    "control": "ann\u001b[2K\u0007",
    "line": "ann\u2028bcc: eve",
    "filler": "ann\u3164\u115f\u2800",
    "selector": "ann\ufe0f\U000e0101",
    "tag": "ann\U000e0061",
}


@pytest.mark.parametrize("what", HIDING)
async def test_what_hides_in_arguments_is_shown(gate: Toolgate, what: str) -> None:
    text = HIDING[what]
    id_ = await pending(gate, to=text)
    found = await gate.approvals.find(id_, by="boss")
    assert found is not None
    for whole in (False, True):
        shown = told(found, whole=whole)["args"]
        assert "ann" in shown
        assert "\\u" in shown.lower()
        assert all(sign == "\n" or sign.isprintable() for sign in shown)
        assert not set(shown) & set("\u3164\u115f\u2800\ufe0f\U000e0101")
    # What is to be seen is left as it is.
    plain = await pending(gate, to="Zoë 漢字 🙂")
    kept = await gate.approvals.find(plain, by="boss")
    assert kept is not None
    assert "Zoë 漢字 🙂" in told(kept)["args"]


async def test_a_tail_that_a_list_does_not_show_blocks_the_approval(gate: Toolgate) -> None:
    id_ = await pending(gate, to="bob" + " " * 100_000 + "and eve")
    [listed] = await gate.approvals.list("acme")
    shown = told(listed)
    assert (shown["is_cut"], len(shown["args"])) == (True, MOST_SHOWN)
    assert "seen" not in shown
    assert "eve" not in shown["args"]
    with pytest.raises(InvalidRequest, match="not looked at whole"):
        await gate.approvals.approve(id_, by="boss")
    for seen in ("true", listed.hash, "0" * 12):
        with pytest.raises(InvalidRequest, match="is not the code that is shown"):
            await gate.approvals.approve(id_, by="boss", seen=seen)
    whole = told(listed, whole=True)
    assert "and eve" in whole["args"]
    assert whole["seen"] == code_of(listed)
    await gate.approvals.approve(id_, by="boss", seen=whole["seen"])
    # Nobody has to look for longer than a screen at what is short.
    await gate.approvals.approve(await pending(gate), by="boss")


async def test_what_is_too_long_to_be_looked_at_is_not_kept(gate: Toolgate) -> None:
    with pytest.raises(InvalidRequest, match="nobody can look at"):
        await gate.call("pay", {"to": "x" * 200_000}, caller=ANN, turn=TURN)
    assert await gate.approvals.list("acme") == []
    assert await pending(gate, to="x" * 120_000)


async def test_no_more_are_asked_about_than_a_person_could_answer(
    monkeypatch: pytest.MonkeyPatch, gate: Toolgate
) -> None:
    monkeypatch.setattr(kept_rules, "MOST_OF_REQUESTER", 2)
    monkeypatch.setattr(kept_rules, "MOST_OF_TENANT", 3)
    first = await pending(gate, to="1")
    await pending(gate, to="2")
    with pytest.raises(Overloaded, match="nobody is asked"):
        await gate.call("pay", {"to": "3"}, caller=ANN, turn=TURN)
    assert await pending(gate, to="1") == first, "those that wait are not asked about again"
    await pending(gate, caller=BOT, to="3")
    with pytest.raises(Overloaded):
        await gate.call("pay", {"to": "4"}, caller=BOT, turn=TURN)
    assert await pending(gate, caller=Caller(tenant="umbrella", agent="billing"))
    await gate.approvals.deny(first, by="boss", reason="no")
    assert await pending(gate, caller=BOT, to="4")
