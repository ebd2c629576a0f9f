"""One suite for every journal: the twin in memory, SQLite and PostgreSQL."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from tests.store.entries import entry, pure
from toolgate import clock
from toolgate.call import new_call_id
from toolgate.errors import InvalidRequest
from toolgate.ledger.entry import Entry, Whose
from toolgate.ledger.journal import Journal
from toolgate.ledger.machine import Recovery
from toolgate.ledger.state import MOVES, State
from toolgate.spec.document import sha256
from toolgate.spec.effect import CallerKind, Effect
from toolgate.store import journal as table_journal
from toolgate.store import page, pages
from toolgate.testing.journal import MemoryJournal

replace = msgspec.structs.replace
pytestmark = pytest.mark.req("D1", "O2")
ENDS = [State.SUCCEEDED, State.FAILED, State.UNKNOWN]
ODD = "NUL \0, half a pair \udcff, é, 🙂, ' \" -- \n\u2028"


def kept(given: Entry) -> Entry:
    """A pure call as it is read back: the digest of its arguments, not themselves."""
    return replace(given, args=b"", args_hash=sha256(given.args))


def shown(given: Entry) -> Entry:
    """A side effect without what the store gives it: owner, fence and times."""
    times: dict[str, Any] = {"started_ns": 0, "lease_ns": None, "ended_ns": 0}
    return replace(given, owner="", fence=0, tried=False, args_hash="", **times)


async def recorded(journal: Journal, tenant: str = "acme", limit: int = 50) -> list[Entry]:
    """What is on record, as the caller wrote it."""
    found = await journal.entries(tenant, limit=limit)
    return [shown(one) if one.fence else one for one in found]


@pytest.mark.req("S3")
async def test_an_intent_is_on_record_as_soon_as_it_has_begun(journal: Journal) -> None:
    intent = entry()
    await journal.begin(intent)
    assert await recorded(journal) == [shown(intent)]


@pytest.mark.parametrize("state", ENDS)
async def test_a_started_entry_ends_with_what_came_of_it(journal: Journal, state: State) -> None:
    intent = entry()
    begun = (await journal.begin(intent)).entry
    said: dict[str, Any] = {
        "state": state,
        "duration_ns": 2_500_001,
        "error_code": "timed_out",
        "error_message": "Late.",
        "result": b'{"status":"error"}',
        "plan": b'{"tool":"mail.recall","args":{"id":1}}',
        "charges": (("lease", 7),),
        "permanent": True,
    }
    assert (await journal.end(replace(begun, **said))).accepted
    assert await recorded(journal) == [shown(replace(intent, **said))]


@pytest.mark.parametrize("first", ENDS)
@pytest.mark.parametrize("second", list(State))
async def test_an_entry_ends_only_once(journal: Journal, first: State, second: State) -> None:
    intent = entry()
    begun = (await journal.begin(intent)).entry
    await journal.end(replace(begun, state=first, duration_ns=1_000))
    second_end = replace(begun, state=second, duration_ns=9_000, error_message="again")
    # What nobody saw can still be told by whoever holds the fence.
    told = second in MOVES[first]
    assert (await journal.end(second_end)).accepted is told
    found = await recorded(journal)
    assert [one.state for one in found] == [second if told else first]
    assert [one.duration_ns for one in found] == [9_000 if told else 1_000]


async def test_an_end_that_is_none_changes_nothing(journal: Journal) -> None:
    intent = entry()
    begun = (await journal.begin(intent)).entry
    await journal.end(replace(begun, duration_ns=9_000, error_message="still"))
    assert await recorded(journal) == [shown(intent)]


async def test_only_the_outcome_of_an_entry_can_change(journal: Journal) -> None:
    intent = entry()
    begun = (await journal.begin(intent)).entry
    other = replace(begun, state=State.FAILED, tool="other", user="eve", args=b"{}")
    assert not (await journal.end(replace(other, tenant="globex"))).accepted
    assert not (await journal.end(replace(other, fence=2))).accepted
    assert (await journal.end(other)).accepted
    assert await recorded(journal) == [shown(replace(intent, state=State.FAILED))]
    assert await recorded(journal, "globex") == []


async def test_an_end_without_a_beginning_leaves_no_trace(journal: Journal) -> None:
    await journal.end(entry(state=State.SUCCEEDED))
    assert list(await journal.entries("acme")) == []


async def test_a_noted_call_cannot_be_ended(journal: Journal) -> None:
    noted = pure(state=State.FAILED)
    journal.note(noted)
    await journal.drain()
    await journal.end(replace(noted, state=State.SUCCEEDED))
    assert list(await journal.entries("acme")) == [kept(noted)]


async def test_a_call_that_is_on_record_cannot_begin_again(journal: Journal) -> None:
    intent = entry(args=b'"the first"')
    await journal.begin(intent)
    for other in ({}, {"key": "k", "scope": "s"}, {"tenant": "globex"}):
        with pytest.raises(InvalidRequest) as refused:
            await journal.begin(replace(intent, args=b'"the second"', **other))
        assert intent.call_id in refused.value.message
        assert "INSERT" not in str(refused.value)
    assert await recorded(journal) == [shown(intent)]


@pytest.mark.parametrize("effect", list(Effect))
@pytest.mark.parametrize("kind", list(CallerKind))
async def test_every_field_comes_back_as_it_was(
    journal: Journal, effect: Effect, kind: CallerKind
) -> None:
    intent = entry(
        effect=effect,
        caller_kind=kind,
        persona="",
        session="",
        turn_group="",
        chain="c1",
        chain_index=3,
        planned=b'{"step":"s"}',
        turn_id="t",
        scope="clerk/3/ann/key",
        digest="d",
        recovery=Recovery.PROBED,
        again_of="call_a",
        undo_of="call_b",
    )
    await journal.begin(intent)
    noted = pure(effect=effect, caller_kind=kind, error_code="tool_error", error_message="No. é")
    journal.note(noted)
    await journal.drain()
    assert await recorded(journal) == [kept(noted), shown(intent)]


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
        made.append(entry())
        await journal.begin(made[-1])
        made.append(pure())
        journal.note(made[-1])
        await journal.drain()
    newest = [shown(one) if one.state is State.STARTED else kept(one) for one in reversed(made)]
    assert await recorded(journal) == newest
    for limit in (0, 1, 3, 8, 100):
        assert await recorded(journal, limit=limit) == newest[:limit]
    assert list(await journal.entries("acme", limit=-1)) == []


async def test_a_long_call_stands_where_it_began_not_where_it_ended(journal: Journal) -> None:
    long, short = pure(), pure()
    journal.note(short)
    await journal.drain()
    journal.note(long)
    await journal.drain()
    assert list(await journal.entries("acme", limit=1)) == [kept(short)]
    assert list(await journal.entries("acme", limit=2)) == [kept(short), kept(long)]


async def test_an_agents_calls_are_found_however_busy_others_are(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    who = {"agent": "rare", "user": "ann", "session": "s-1"}
    made = [entry(**who)]
    # The store says when it began: what comes behind it is made then.
    await journal.begin(made[0])
    made += [pure(**who), pure(**who | {"session": "s-2"})]
    for noted in made[1:]:
        journal.note(noted)
    await journal.drain()
    for other in ({"agent": "busy"}, {"agent": "rare", "user": "bob"}, {"tenant": "globex"}) * 5:
        intent, noted = entry(**who | other), pure(**who | other)
        await journal.begin(intent)
        journal.note(noted)
        await journal.drain()
    theirs = [one.call_id for one in reversed(made)]
    whose = Whose("rare", "ann")

    async def found(of: Whose, limit: int = 3) -> list[str]:
        return [one.call_id for one in await journal.entries("acme", limit=limit, of=of)]

    assert await found(whose) == theirs
    assert await found(whose, 1) == theirs[:1]
    assert await found(Whose("rare", "ann", "s-1")) == theirs[1:]
    assert await found(Whose("rare", "eve")) == await found(Whose("rar", "ann")) == []
    if not isinstance(journal, MemoryJournal):
        # How far back is looked has an end.
        monkeypatch.setattr(pages, "_MOST_PAGES", 2)
        monkeypatch.setattr(table_journal, "_MOST_ROWS", 2)
        assert await found(whose) == []


async def test_a_tenant_sees_its_own_calls_only(journal: Journal) -> None:
    mine, theirs = [entry(), pure()], [entry(tenant="globex"), pure(tenant="globex")]
    for intent, noted in (mine, theirs):
        await journal.begin(intent)
        journal.note(noted)
    assert {one.call_id for one in await journal.entries("acme")} == {e.call_id for e in mine}
    assert {one.call_id for one in await journal.entries("globex")} == {e.call_id for e in theirs}
    for nobody in ("", "Acme", "acme ", "ac%", "_cme", "acm\0e"):
        assert list(await journal.entries(nobody)) == []


async def test_of_a_pure_call_only_the_arguments_digest_is_kept(journal: Journal) -> None:
    for secret in (b'{"password":"hunter2"}', b'"' + b"hunter2" * 2_000 + b'"'):
        journal.note(pure(args=secret))
        (found,) = await journal.entries("acme", limit=1)
        assert (found.args, found.args_hash) == (b"", sha256(secret))


async def test_of_a_side_effect_the_arguments_are_kept_as_they_were_given(journal: Journal) -> None:
    """Without its secrets, which are not here to be told from others; with the whole's digest."""
    given = entry(args=b'{"to":"bob"}', args_hash=sha256(b'{"to":"bob","password":"hunter2"}'))
    await journal.begin(given)
    (found,) = await journal.entries("acme")
    assert (found.args, found.args_hash) == (given.args, given.args_hash)


async def test_a_digest_that_is_known_is_kept(journal: Journal) -> None:
    await journal.begin(entry(args=b"", args_hash="sha256:11"))
    journal.note(pure(args=b"", args_hash="sha256:22"))
    found = await journal.entries("acme")
    assert [one.args_hash for one in found] == ["sha256:22", "sha256:11"]


async def test_a_call_is_found_by_its_whole_id_only(journal: Journal) -> None:
    short, long = pure(), pure(started_ns=clock.unix_ns() - 3_600 * 10**9)
    for call in (short, long, pure(tenant="other")):
        journal.note(call)
    assert await journal.find("acme", short.call_id) == kept(short)
    assert await journal.find("acme", long.call_id) == kept(long)
    assert await journal.find("other", short.call_id) is None
    for part in ("", "call_", short.call_id[:-1], f"{short.call_id}0", short.call_id.upper(), ODD):
        assert await journal.find("acme", part) is None


@pytest.mark.parametrize("what", ["an id that is none", "a part of one", "one of another day"])
async def test_no_page_is_read_for_what_stands_on_none_of_them(
    journal: Journal, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = pure(session="call_", turn_group="call_18")
    # Who calls may write into its session whatever it will look for.
    other_day = new_call_id(call.started_ns - 3 * 86_400 * 10**9)
    journal.note(msgspec.structs.replace(call, session=other_day))
    journal.note(call)
    await journal.drain()
    read: list[bytes] = []
    decode = page.entries_of

    def counted(raw: bytes) -> Iterable[Entry]:
        read.append(raw)
        return decode(raw)

    monkeypatch.setattr(pages, "entries_of", counted)
    wanted = {"an id that is none": "call_", "a part of one": "call_18"}.get(what, other_day)
    assert await journal.find("acme", wanted) is None
    assert read == []
    assert await journal.find("acme", call.call_id) is not None


async def test_odd_text_keeps_nothing_from_being_recorded(journal: Journal) -> None:
    begun = (await journal.begin(entry(user=ODD, session=ODD))).entry
    await journal.end(replace(begun, state=State.FAILED, error_message=ODD))
    journal.note(pure(error_message=ODD, persona=ODD))
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
