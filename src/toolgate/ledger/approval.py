"""What a person is asked, and what came of it: values, pure rules, and the port they are kept by.

An approval is bound by its hash to one call by one requester under one policy. A call that differs
in anything is another one, and needs another approval.
"""

import unicodedata
from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from toolgate.call import Event
from toolgate.ledger.entry import Entry
from toolgate.ledger.state import State
from toolgate.spec.document import sha256

# What may be open at a time: of a tenant, and of one agent that acts for one user in it.
MOST_OF_TENANT = 512
MOST_OF_REQUESTER = 64


class Kind(StrEnum):
    """Who is asked: somebody else than the requester, or the user that the agent acts for."""

    APPROVAL = "approval"
    CONFIRMATION = "confirmation"


class Standing(StrEnum):
    """How far it got. Only what waits can be decided, and only what is approved be used."""

    WAITING = "waiting"
    APPROVED = "approved"
    DENIED = "denied"
    USED = "used"  # its call has begun
    EXPIRED = "expired"


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """One question to a person. `args` is JSON without secrets; the hash holds them all."""

    id: str
    tenant: str
    hash: str
    call_id: str
    kind: Kind
    tool: str
    fingerprint: str
    agent: str
    user: str
    args: bytes
    prompt: str
    policy_revision: str
    state: Standing = Standing.WAITING
    created_ns: int = 0
    expires_ns: int = 0
    decided_ns: int = 0
    decided_by: str = ""
    reason: str = ""


class Word(StrEnum):
    """What a call that needs a person is told."""

    GO = "go"  # this approval is there for it
    WAIT = "wait"  # somebody is asked, now or before
    NO = "no"  # somebody said so
    ON_RECORD = "on_record"  # its key is: it can be answered without anybody
    FULL = "full"  # so many wait already that nobody else is asked


class Requested(msgspec.Struct, frozen=True):
    """The word, and the approval it rests on. `is_new`: it was not asked for before."""

    word: Word
    approval: Approval
    is_new: bool = False


class Decider(msgspec.Struct, frozen=True, kw_only=True):
    """Who wants to decide. `reach`: the tenant whose approvals they see; empty means every one.

    Tenant, agent and user are whom they stand for, where that is known.
    """

    who: str
    is_operator: bool
    reach: str = ""
    tenant: str = ""
    agent: str = ""
    user: str = ""


class Some(msgspec.Struct, frozen=True, kw_only=True):
    """Approvals to look for. Empty means any."""

    tenant: str = ""
    agent: str | None = None
    user: str | None = None
    states: frozenset[Standing] = frozenset()
    limit: int = 50
    # A cursor: when one was asked for, and its id; only those that come after it.
    before: tuple[int, str] | None = None


class Approvals(Protocol):
    """Where they are kept. Time is the store's; a tenant's are only found by that tenant's name."""

    async def request(self, wanted: Approval, intent: Entry, ttl_ns: int) -> Requested:
        """What holds for this call, in one transaction.

        Where nobody was asked yet: the approval, its call as one that waits, the audit and the
        event are put on record together. Where so many are open that no more may be: `FULL`.
        """
        ...

    async def stands(self, tenant: str, id_: str) -> Standing | None:
        """How far one got by now. It is asked often, and costs little."""
        ...

    async def find(self, tenant: str, id_: str) -> Approval | None:
        """One; of any tenant if that is empty."""
        ...

    async def search(self, some: Some) -> Sequence[Approval]:
        """The newest first."""
        ...

    async def decide(
        self, approval: Approval, *, approved: bool, who: str, why: str
    ) -> Approval | None:
        """The decision on record, once; `None` where it does not wait any more."""
        ...

    async def sweep(self) -> int:
        """What is over by the store's clock expires, with its call; how many did."""
        ...


def hash_of(
    *,
    tool: str,
    fingerprint: str,
    args: bytes,
    tenant: str,
    requester: Sequence[str],
    policy_revision: str,
    kind: Kind,
    of: tuple[str, str] = ("", ""),
) -> str:
    """The hash of all that a person agrees to; `args` is their canonical form.

    `of` is the call that it takes back, and the one that it runs once more.
    """
    parts = [tool, fingerprint, tenant, *requester, policy_revision, kind]
    # To agree that a call is taken back is not to agree to the same call by itself.
    parts += [
        f"{how}:{call_id}" for how, call_id in zip(("undo", "again"), of, strict=True) if call_id
    ]
    # Each with its length, so that no two lists of parts look alike.
    counted = [part.encode("utf-8", "backslashreplace") for part in parts] + [args]
    return sha256(b"".join(b"%d:%b" % (len(part), part) for part in counted))


def standing(approval: Approval, now_ns: int) -> Standing:
    """Its state as of now: what is over has expired, also where it was approved and not used."""
    is_open = approval.state in {Standing.WAITING, Standing.APPROVED}
    return Standing.EXPIRED if is_open and now_ns >= approval.expires_ns else approval.state


def word(found: Collection[Approval], now_ns: int) -> Requested | None:
    """What those on record under one hash say to a call; `None`: somebody has to be asked."""
    for one in found:
        match standing(one, now_ns):
            case Standing.APPROVED:
                return Requested(Word.GO, one)
            case Standing.WAITING:
                return Requested(Word.WAIT, one)
            case _:
                pass
    for one in found:
        if one.state is Standing.DENIED and now_ns < one.expires_ns:
            return Requested(Word.NO, one)
    return None


def is_full(*, of_tenant: int, of_requester: int) -> bool:
    """Whether so many are open that no more may be."""
    return of_tenant >= MOST_OF_TENANT or of_requester >= MOST_OF_REQUESTER


def refusal(approval: Approval, by: Decider) -> str:
    """Why this one cannot decide it, or nothing."""
    is_same_user = bool(by.user) and by.user == approval.user
    if approval.kind is Kind.CONFIRMATION and is_same_user:
        return ""
    if not by.is_operator:
        return (
            "The user that the agent acts for confirms this, or an operator."
            if approval.kind is Kind.CONFIRMATION
            else "An operator decides this."
        )
    is_same = (by.tenant, by.agent, by.user) == (approval.tenant, approval.agent, approval.user)
    # To some issuers Ann and ann are one person. Who may be the same one does not agree.
    may_be_same = bool(by.user) and _folded(by.user) == _folded(approval.user)
    if may_be_same or is_same:
        return "Whoever asked for it cannot be the one who agrees to it."
    return ""


def _folded(user: str) -> str:
    folded = unicodedata.normalize("NFKC", user).casefold()
    return unicodedata.normalize("NFKC", folded).strip()


def sees(approval: Approval, by: Decider) -> bool:
    """Whether it is shown to this one: to operators, its agent, and the user that acts."""
    if by.reach not in {"", approval.tenant}:
        return False
    is_same_user = bool(by.user) and by.user == approval.user
    return by.is_operator or is_same_user or (by.agent, by.user) == (approval.agent, approval.user)


def waiting(intent: Entry, approval: Approval, found: Entry | None = None) -> Entry:
    """The call while a person is asked. Its key is free until it begins.

    `found`: what is on record of it, where it was brought before and did not begin.
    """
    return msgspec.structs.replace(
        intent,
        call_id=approval.call_id,
        state=State.WAITING,
        key="",
        approval=approval.id,
        expires_ns=approval.expires_ns,
        fence=0 if found is None else found.fence,
        tried=found is not None and found.tried,
    )


def event_of(approval: Approval, kind: str, at_ns: int) -> Event:
    """`approval.requested`, `approval.approved`, `approval.denied`, `approval.expired`."""
    payload = {
        "approval_id": approval.id,
        "kind": str(approval.kind),
        "user": approval.user,
        "prompt": approval.prompt,
        "expires_ns": approval.expires_ns,
    }
    if approval.decided_by:
        payload |= {"decided_by": approval.decided_by, "reason": approval.reason}
    return Event(
        id=f"evt_{approval.id}.{kind}",
        kind=f"approval.{kind}",
        at_ns=at_ns,
        tenant=approval.tenant,
        agent=approval.agent,
        tool=approval.tool,
        call_id=approval.call_id,
        payload=payload,
    )
