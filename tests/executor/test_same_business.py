"""Which calls are the same piece of business, and what is said to one that is not."""

import pytest

from toolgate import Caller, Turn, tool
from toolgate.errors import IdempotencyConflict
from toolgate.testing.house import in_memory

pytestmark = pytest.mark.req("S2")
ME = Caller(tenant="acme", agent="billing")
TURN = Turn(group="t1")
ran: list[object] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


@tool(effect="irreversible", idempotency_key=["order", "part"])
def pay(order: str, amount: int, currency: str = "EUR", part: int = 1) -> str:
    """Pay for an order."""
    ran.append((order, amount, currency, part))
    return order


@tool(effect="irreversible")
def send(text: str, loud: bool = False, note: str | None = None) -> str:  # noqa: FBT001, FBT002
    """Send a text."""
    ran.append((text, loud, note))
    return text


async def test_who_sent_no_key_is_told_which_arguments_make_it() -> None:
    async with in_memory(pay) as house:
        first = await house.call("pay", {"order": "7", "amount": 1}, caller=ME, turn=TURN)
        with pytest.raises(IdempotencyConflict) as refused:
            await house.call("pay", {"order": "7", "amount": 2}, caller=ME, turn=TURN)
        told = refused.value
        assert "'order', 'part'" in told.message
        assert "In this turn" in told.message
        assert "new key" not in told.message
        assert told.details["idempotency_fields"] == ["order", "part"]
        assert told.details["call_id"] == first.call_id
        args = {"order": "8", "amount": 1}
        await house.call("pay", args, caller=ME, idempotency_key="mine")
        with pytest.raises(IdempotencyConflict, match="use a new key"):
            await house.call("pay", args | {"amount": 2}, caller=ME, idempotency_key="mine")
    assert len(ran) == 2


async def test_a_default_that_is_written_out_is_the_same_call() -> None:
    async with in_memory(pay, send) as house:
        plain = {"order": "7", "amount": 1}
        for more in ({}, {"currency": "EUR"}, {"part": 1}, {"currency": "EUR", "part": 1.0}):
            output = await house.call("pay", plain | more, caller=ME, turn=TURN)
            assert (output.ok, output.cached) == (True, bool(more))
        for more in ({}, {"loud": False}, {"note": None}):
            output = await house.call("send", {"text": "hi"} | more, caller=ME, turn=TURN)
            assert (output.ok, output.cached) == (True, bool(more))
        with pytest.raises(IdempotencyConflict):
            await house.call("pay", plain | {"currency": "USD"}, caller=ME, turn=TURN)
        other = await house.call("send", {"text": "hi", "loud": True}, caller=ME, turn=TURN)
        assert not other.cached
        part = await house.call("pay", plain | {"part": 2}, caller=ME, turn=TURN)
        assert not part.cached
    assert len(ran) == 4
