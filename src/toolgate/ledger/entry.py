"""One call on record."""

import msgspec

from toolgate.ledger.machine import Recovery, Slot
from toolgate.ledger.state import State
from toolgate.spec.effect import CallerKind, Effect


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is written before a side effect, and completed after it."""

    call_id: str
    tool: str
    fingerprint: str
    effect: Effect
    tenant: str
    agent: str
    user: str
    persona: str
    session: str
    turn_group: str
    caller_kind: CallerKind
    # JSON. Of a side effect it is kept, without its secrets; of a pure call only its digest is.
    args: bytes
    # Of a side effect given by the store: what is taken back is, in the reverse of this order.
    started_ns: int
    state: State
    duration_ns: int = 0
    error_code: str = ""
    error_message: str = ""
    # Known for an entry that was read back; else made from `args` when it is written.
    args_hash: str = ""
    # The decision that let it pass.
    decision: str = ""
    # The chain that it is a step of, and what a planner said about it, as JSON. What follows them
    # is of side effects only.
    chain: str = ""
    chain_index: int = 0
    planned: bytes = b""
    turn_id: str = ""
    # Once-only: whose key it is, and the key; empty where the call is its own business.
    scope: str = ""
    key: str = ""
    digest: str = ""
    recovery: Recovery = Recovery.PARK
    # Given by the store: who owns it, by which fence, until when.
    owner: str = ""
    fence: int = 0
    lease_ns: int | None = None
    expires_ns: int | None = None
    tried: bool = False
    permanent: bool = False
    # The approval that it runs on, which it uses up.
    approval: str = ""
    # The Output as JSON, without secrets, and how to take it back.
    result: bytes = b""
    plan: bytes = b""
    undo_until_ns: int | None = None
    # What it cost: a budget's lease and the amount, in millionths.
    charges: tuple[tuple[str, int], ...] = ()
    # The call that an operator ran again, or that this one takes back.
    again_of: str = ""
    undo_of: str = ""
    # A later turn of the same group that waits for the same result.
    wanted_by: str = ""
    ended_ns: int = 0
    # Of a caller that is more than its names: all of it, with roles, context and delegation.
    task: bytes = b""
    # Known to whoever goes on with it, and not kept: an owner before may have begun it.
    doubt: bool = False

    @property
    def slot(self) -> Slot:
        """What the machine looks at."""
        waits = self.state is State.WAITING
        return Slot(
            state=self.state,
            digest=self.digest,
            fence=self.fence,
            lease_ns=self.lease_ns,
            # What takes a call back does so once, however much later it is asked for again.
            expires_ns=self.expires_ns if waits or not self.undo_of else None,
            recovery=self.recovery,
            tried=self.tried,
            agreed=bool(self.approval) and not waits,
            permanent=self.permanent,
        )


class Whose(msgspec.Struct, frozen=True):
    """One agent's entries with one user; of one session, where that is named."""

    agent: str
    user: str
    session: str = ""

    def has(self, entry: Entry) -> bool:
        """Whether it is one of them."""
        is_theirs = (entry.agent, entry.user) == (self.agent, self.user)
        return is_theirs and self.session in {"", entry.session}
