"""One suite for every journal: the twin in memory, SQLite and PostgreSQL."""

import msgspec
import pytest

from tests.store.entries import entry, pure
from toolgate.errors import InvalidRequest
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Journal
from toolgate.ledger.state import State
from toolgate.spec.document import sha256
from toolgate.spec.effect import CallerKind, Effect

pytestmark = pytest.mark.req("D1", "O2")
ENDS = [State.SUCCEEDED, State.FAILED, State.UNKNOWN]
ODD = "NUL \0, half a pair \udcff, é, 🙂, ' \" -- \n\u2028"


def kept(given: Entry) -> Entry:
    """As it is read back: the digest of its arguments, not themselves."""
    return msgspec.structs.replace(given, args=b"", args_hash=sha256(given.args))


@pytest.mark.req("S3")
async def test_an_intent_is_on_record_as_soon_as_it_has_begun(journal: Journal) -> None:
    intent = entry()
    await journal.begin(intent)
    assert list(await journal.entries("acme")) == [kept(intent)]


@pytest.mark.parametrize("state", ENDS)
async def test_a_started_entry_ends_with_what_came_of_it(journal: Journal, state: State) -> None:
    intent = entry()
    await journal.begin(intent)
    over = msgspec.structs.replace(
        intent, state=state, duration_ns=2_500_001, error_code="timed_out", error_message="Late."
    )
    await journal.end(over)
    assert list(await journal.entries("acme")) == [kept(over)]


@pytest.mark.parametrize("first", ENDS)
@pytest.mark.parametrize("second", list(State))
async def test_an_entry_ends_only_once(journal: Journal, first: State, second: State) -> None:
    intent = entry()
    await journal.begin(intent)
    over = msgspec.structs.replace(intent, state=first, duration_ns=1_000)
    await journal.end(over)
    await journal.end(
        msgspec.structs.replace(over, state=second, duration_ns=9_000, error_message="again")
    )
    assert list(await journal.entries("acme")) == [kept(over)]


async def test_an_end_that_is_none_changes_nothing(journal: Journal) -> None:
    intent = entry()
    await journal.begin(intent)
    await journal.end(msgspec.structs.replace(intent, duration_ns=9_000, error_message="still"))
    assert list(await journal.entries("acme")) == [kept(intent)]


async def test_only_the_outcome_of_an_entry_can_change(journal: Journal) -> None:
    intent = entry()
    await journal.begin(intent)
    await journal.end(
        msgspec.structs.replace(
            intent, state=State.FAILED, tenant="globex", tool="other", user="eve", args=b"{}"
        )
    )
    assert list(await journal.entries("acme")) == [
        kept(msgspec.structs.replace(intent, state=State.FAILED))
    ]
    assert list(await journal.entries("globex")) == []


async def test_an_end_without_a_beginning_leaves_no_trace(journal: Journal) -> None:
    await journal.end(entry(state=State.SUCCEEDED))
    assert list(await journal.entries("acme")) == []


async def test_a_noted_call_cannot_be_ended(journal: Journal) -> None:
    noted = pure(state=State.FAILED)
    journal.note(noted)
    await journal.drain()
    await journal.end(msgspec.structs.replace(noted, state=State.SUCCEEDED))
    assert list(await journal.entries("acme")) == [kept(noted)]


async def test_a_call_that_is_on_record_cannot_begin_again(journal: Journal) -> None:
    intent = entry(args=b"the first")
    await journal.begin(intent)
    with pytest.raises(InvalidRequest) as refused:
        await journal.begin(msgspec.structs.replace(intent, args=b"the second"))
    assert intent.call_id in refused.value.message
    assert "INSERT" not in str(refused.value)
    assert list(await journal.entries("acme")) == [kept(intent)]


@pytest.mark.parametrize("effect", list(Effect))
@pytest.mark.parametrize("kind", list(CallerKind))
async def test_every_field_comes_back_as_it_was(
    journal: Journal, effect: Effect, kind: CallerKind
) -> None:
    intent = entry(effect=effect, caller_kind=kind, persona="", session="", turn_group="")
    noted = pure(effect=effect, caller_kind=kind, error_code="tool_error", error_message="No. é")
    await journal.begin(intent)
    journal.note(noted)
    await journal.drain()
    assert list(await journal.entries("acme")) == [kept(noted), kept(intent)]


async def test_noted_calls_are_read_without_waiting_for_a_write(journal: Journal) -> None:
    noted = [pure() for _ in range(3)]
    for one in noted:
        journal.note(one)
    assert list(await journal.entries("acme")) == [kept(one) for one in reversed(noted)]


async def test_draining_when_nothing_waits_does_nothing(journal: Journal) -> None:
    await journal.drain()
    await journal.drain()
    assert list(await journal.entries("acme")) == []


async def test_the_newest_come_first_whatever_their_kind(journal: Journal) -> None:
    made: list[Entry] = []
    for _ in range(4):
        made += [entry(), pure()]
        await journal.begin(made[-2])
        journal.note(made[-1])
        await journal.drain()
    newest = [kept(one) for one in reversed(made)]
    assert list(await journal.entries("acme")) == newest
    for limit in (0, 1, 3, 8, 100):
        assert list(await journal.entries("acme", limit=limit)) == newest[:limit]
    assert list(await journal.entries("acme", limit=-1)) == []


async def test_a_long_call_stands_where_it_began_not_where_it_ended(journal: Journal) -> None:
    long, short = pure(), pure()
    journal.note(short)
    await journal.drain()
    journal.note(long)
    await journal.drain()
    assert list(await journal.entries("acme", limit=1)) == [kept(short)]
    assert list(await journal.entries("acme", limit=2)) == [kept(short), kept(long)]


async def test_a_tenant_sees_its_own_calls_only(journal: Journal) -> None:
    mine, theirs = [entry(), pure()], [entry(tenant="globex"), pure(tenant="globex")]
    for intent, noted in (mine, theirs):
        await journal.begin(intent)
        journal.note(noted)
    assert {one.call_id for one in await journal.entries("acme")} == {e.call_id for e in mine}
    assert {one.call_id for one in await journal.entries("globex")} == {e.call_id for e in theirs}
    for nobody in ("", "Acme", "acme ", "ac%", "_cme", "acm\0e"):
        assert list(await journal.entries(nobody)) == []


async def test_arguments_are_not_kept_only_their_digest(journal: Journal) -> None:
    for secret in (b'{"password":"hunter2"}', b"hunter2" * 2_000):
        intent, noted = entry(args=secret), pure(args=secret)
        await journal.begin(intent)
        journal.note(noted)
        found = await journal.entries("acme", limit=2)
        assert [one.args for one in found] == [b"", b""]
        assert [one.args_hash for one in found] == [sha256(secret)] * 2


async def test_a_digest_that_is_known_is_kept(journal: Journal) -> None:
    await journal.begin(entry(args=b"", args_hash="sha256:11"))
    journal.note(pure(args=b"", args_hash="sha256:22"))
    found = await journal.entries("acme")
    assert [one.args_hash for one in found] == ["sha256:22", "sha256:11"]


async def test_odd_text_keeps_nothing_from_being_recorded(journal: Journal) -> None:
    intent, noted = entry(user=ODD, session=ODD), pure(error_message=ODD, persona=ODD)
    await journal.begin(intent)
    await journal.end(msgspec.structs.replace(intent, state=State.FAILED, error_message=ODD))
    journal.note(noted)
    journal.note(pure())
    found = await journal.entries("acme")
    assert [one.state for one in found] == [State.SUCCEEDED, State.SUCCEEDED, State.FAILED]
    assert all("é, 🙂, ' \" -- \n\u2028" in one.error_message for one in found[1:])


async def test_an_odd_tenant_keeps_no_other_from_being_recorded(journal: Journal) -> None:
    for tenant in (ODD, "acme"):
        journal.note(pure(tenant=tenant))
        await journal.begin(entry(tenant=tenant))
    assert len(await journal.entries("acme")) == 2
    assert len(await journal.entries(ODD)) == 2
