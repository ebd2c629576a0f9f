"""A page of pure calls: what many have in common is written once, and nothing gets lost by it."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.entries import pure
from toolgate.asked import PLAINLY, Asked, Planned
from toolgate.call import Call, Grant
from toolgate.caller import Caller
from toolgate.ledger.entry import Entry
from toolgate.ledger.read import Read, read_of
from toolgate.ledger.state import State
from toolgate.spec.document import sha256
from toolgate.spec.effect import Effect
from toolgate.spec.tool import ToolSpec
from toolgate.store.page import Page, entries_of

pytestmark = pytest.mark.req("D1", "O2")
SPEC = ToolSpec(name="look", effect=Effect.PURE)
ANN = Grant(
    Caller(tenant="acme", agent="billing", user="ann"),
    SPEC,
    1,
    1,
    needs_a_person=False,
    decision="d1",
)
BOB = Grant(
    Caller(tenant="acme", agent="sales", user="bob"),
    SPEC,
    1,
    1,
    needs_a_person=False,
    decision="d2",
)
PLAN = Asked(chain="chain_1", chain_index=2, planned=Planned(rule="r", step="s"))
READS = st.builds(
    Read,
    call_id=st.integers(0, 9_999).map("call_{}".format),
    grant=st.sampled_from([ANN, BOB]),
    asked=st.sampled_from([PLAINLY, PLAN]),
    turn_group=st.sampled_from(["", "t1", "t2"]),
    args=st.sampled_from([b"{}", b'{"a":1}']),
    started_ns=st.integers(0, 2**62),
    duration_ns=st.integers(0, 2**40),
)
ENTRIES = st.sampled_from(
    [
        pure(state=State.FAILED, error_code="refused", error_message="No."),
        pure(args=b"", args_hash=sha256(b"large")),
    ]
)


def filled(calls: list[Entry | Read]) -> bytes:
    page = Page()
    for call in calls:
        page.add(call)
    assert len(page) == len(calls)
    return page.written()


def kept(call: Entry | Read) -> Entry:
    """As it is read back: with the digest of its arguments, and without them."""
    entry = call.entry() if isinstance(call, Read) else call
    digest = entry.args_hash or sha256(entry.args)
    return msgspec.structs.replace(entry, args=b"", args_hash=digest)


@given(st.lists(READS | ENTRIES))
def test_what_is_read_back_is_what_was_written_in_its_order(calls: list[Entry | Read]) -> None:
    assert list(entries_of(filled(calls))) == [kept(call) for call in calls]


def test_one_more_call_of_the_same_takes_few_bytes() -> None:
    def reads(many: int) -> list[Entry | Read]:
        return [Read(f"call_{at:028x}", ANN, PLAINLY, "t1", b"{}", 1, 1) for at in range(many)]

    assert (len(filled(reads(1_001))) - len(filled(reads(1)))) / 1_000 < 100


def test_what_a_call_was_asked_by_does_not_wait_for_its_page() -> None:
    asked = Asked(key="k-1", on_piece=print)
    call = Call("call_1", ANN, {}, None, 1, 2, asked)
    assert read_of(call, b"{}").asked is PLAINLY
    # What is kept of it stays.
    planned = Call("call_1", ANN, {}, None, 1, 2, PLAN)
    assert read_of(planned, b"{}").asked is PLAN


def test_text_that_no_page_can_hold_keeps_no_other_call_from_it() -> None:
    odd = pure(error_message="half a pair \udcff", session="\udcff")
    found = list(entries_of(filled([odd, pure()])))
    assert [one.session for one in found] == ["\\udcff", pure().session]
