"""Entries for tests: a call by somebody, some time."""

from typing import Any

from toolgate import clock
from toolgate.call import new_call_id
from toolgate.ledger.entry import Entry
from toolgate.ledger.state import State
from toolgate.spec.effect import CallerKind, Effect


class _Moments:
    """The time, and never the same twice: the store gives those of side effects itself."""

    last = 0

    def __next__(self) -> int:
        self.last = max(clock.unix_ns(), self.last + 1)
        return self.last


_moments = _Moments()


def entry(**fields: Any) -> Entry:
    """A new call, one moment after the last one; fields given here win."""
    started_ns: int = fields.pop("started_ns", None) or next(_moments)
    values: dict[str, Any] = {
        "call_id": new_call_id(started_ns),
        "tool": "mail.send",
        "fingerprint": "sha256:00",
        "effect": Effect.IRREVERSIBLE,
        "tenant": "acme",
        "agent": "clerk",
        "user": "ann",
        "persona": "helper",
        "session": "s1",
        "turn_group": "t1",
        "caller_kind": CallerKind.DIRECT,
        "args": b'{"to":"bob"}',
        "started_ns": started_ns,
        "state": State.STARTED,
    }
    return Entry(**(values | fields))


def pure(**fields: Any) -> Entry:
    """A finished call without effect, as `note` takes it."""
    over: dict[str, Any] = {"effect": Effect.PURE, "state": State.SUCCEEDED, "duration_ns": 1_500}
    return entry(**(over | fields))
