"""A call on record as what it was: who called, in which turn, how it was asked for, with what."""

from typing import Any, cast

import msgspec
import orjson

from toolgate.asked import Asked, Planned
from toolgate.call import Turn
from toolgate.caller import Caller
from toolgate.errors import InvalidRequest
from toolgate.ledger.entry import Entry
from toolgate.ledger.history import owner_of
from toolgate.spec.document import sha256
from toolgate.spec.effect import CallerKind
from toolgate.spec.secret import HIDDEN

_caller = msgspec.json.Decoder(Caller).decode


def caller_of(entry: Entry) -> Caller:
    """Who called, with the roles, the context and the delegation of then; now by itself.

    `InvalidRequest` where that cannot be read any more.
    """
    if entry.task:
        try:
            return msgspec.structs.replace(_caller(entry.task), kind=CallerKind.DIRECT)
        except msgspec.MsgspecError:
            raise InvalidRequest("Who made this call cannot be read from its record.") from None
    return Caller(
        tenant=entry.tenant,
        agent=entry.agent,
        user=entry.user,
        persona=entry.persona,
        session=entry.session,
    )


def same_caller(entry: Entry) -> Caller:
    """Who called, in the way it was called: a step of a chain is decided as one."""
    return msgspec.structs.replace(caller_of(entry), kind=entry.caller_kind)


def is_of(entry: Entry, caller: Caller) -> bool:
    """Whether it is the caller's own: its user's, by its agent or one that has the task from it."""
    if entry.tenant != caller.tenant:
        return False
    if not entry.scope:
        # A pure call, which is nobody's business a second time.
        return (entry.agent, entry.user) == (caller.agent, caller.user)
    return entry.scope.startswith(f"{owner_of(caller)}/")


def turn_of(entry: Entry) -> Turn | None:
    """The turn it belonged to, which nobody listens to any more."""
    return Turn(group=entry.turn_group, id=entry.turn_id) if entry.turn_group else None


def asked_of(entry: Entry) -> Asked:
    """How it was asked for."""
    return Asked(
        key=entry.key if entry.scope.endswith("/key") else "",
        kind=entry.caller_kind,
        chain=entry.chain,
        chain_index=entry.chain_index,
        planned=msgspec.json.decode(entry.planned, type=Planned) if entry.planned else None,
        again_of=entry.again_of,
        undo_of=entry.undo_of,
    )


def whole_args(entry: Entry) -> dict[str, Any] | None:
    """The arguments as they were; `None` where they were too large to keep, or hold a secret."""
    if not entry.args or sha256(entry.args) != entry.args_hash:
        return None
    return orjson.loads(entry.args)


def known_args(entry: Entry) -> dict[str, Any]:
    """Those arguments that are on record: what was hidden is not there."""
    return _without_hidden(orjson.loads(entry.args)) if entry.args else {}


def _without_hidden(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {name: _without_hidden(of) for name, of in fields.items() if not _hides(of)}
    if isinstance(value, list):
        return [_without_hidden(of) for of in cast("list[Any]", value)]
    return value


def _hides(value: Any) -> bool:
    """A list that lacks one item would have the others at wrong places."""
    if isinstance(value, list):
        return any(map(_hides, cast("list[Any]", value)))
    return isinstance(value, str) and HIDDEN in value
