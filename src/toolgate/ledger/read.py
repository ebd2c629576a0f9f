"""A pure call that did its work, as it is handed to the journal."""

import msgspec

from toolgate.asked import PLAINLY, Asked
from toolgate.call import Call, Grant
from toolgate.ledger.entry import Entry
from toolgate.ledger.state import State

_encode = msgspec.json.Encoder().encode


class Read(msgspec.Struct, frozen=True, gc=False):
    """What there is to keep of it. Most of that is its grant's, and the same for many."""

    call_id: str
    grant: Grant
    asked: Asked
    turn_group: str
    args: bytes
    started_ns: int
    duration_ns: int

    def entry(self, state: State = State.SUCCEEDED) -> Entry:
        """The same with a field for everything."""
        caller, spec, asked = self.grant.caller, self.grant.spec, self.asked
        return Entry(
            self.call_id,
            spec.name,
            spec.fingerprint,
            spec.effect,
            caller.tenant,
            caller.agent,
            caller.user,
            caller.persona,
            caller.session,
            self.turn_group,
            asked.kind,
            self.args,
            self.started_ns,
            state,
            self.duration_ns,
            decision=self.grant.decision,
            chain=asked.chain,
            chain_index=asked.chain_index,
            planned=b"" if asked.planned is None else _encode(asked.planned),
        )


def read_of(call: Call, args: bytes, duration_ns: int = 0) -> Read:
    """A call with its arguments as JSON."""
    turn, asked = call.turn, call.asked
    if not asked.chain and asked.planned is None and asked.kind is PLAINLY.kind:
        # Nothing of it is kept: whatever else it holds must not live until this is written.
        asked = PLAINLY
    return Read(
        call.id,
        call.grant,
        asked,
        "" if turn is None else turn.group,
        args,
        call.started_ns,
        duration_ns,
    )
