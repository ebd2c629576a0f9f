"""A page of pure calls as bytes: what many of them have in common is written once.

    2, [[head, …], [line, …]]

A head says who called what, on which decision; a line says when, with which arguments, and, where
it did not succeed, how it ended.
"""

from collections.abc import Iterable
from hashlib import sha256

import msgspec

from toolgate.ledger.entry import Entry
from toolgate.ledger.read import Read
from toolgate.ledger.state import State
from toolgate.spec.effect import CallerKind, Effect
from toolgate.store.text import storable_row

_DIGEST = "sha256:"
_encode = msgspec.msgpack.Encoder().encode


class _Head(msgspec.Struct, array_like=True, frozen=True):
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
    decision: str
    chain: str
    chain_index: int
    planned: bytes


class _Line(msgspec.Struct, array_like=True, frozen=True):
    head: int
    # As text, since a page is looked for by the ids in its bytes.
    call_id: str
    started_ns: int
    duration_ns: int
    args_digest: bytes
    state: State = State.SUCCEEDED
    error_code: str = ""
    error_message: str = ""


class _Page(msgspec.Struct, array_like=True, frozen=True):
    heads: list[_Head]
    lines: list[_Line]


_decode = msgspec.msgpack.Decoder(_Page).decode
# How the first pages were written: each call with all of its fields.
_decode_first = msgspec.msgpack.Decoder(list[Entry]).decode
# A list never begins with it, so it tells this form from the first.
_FORM = b"\x02"


class Page:
    """A page that is being filled."""

    def __init__(self) -> None:
        # Tuples, not the classes above: they are written only, and there are many.
        self._heads: dict[tuple[object, ...], int] = {}
        self._lines: list[tuple[object, ...]] = []
        # Whoever is in here is alive as long as the page is.
        self._known: dict[tuple[int, int, str], int] = {}
        self.first_call_id = ""

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, one: Entry | Read) -> None:
        """One more call."""
        if not self._lines:
            self.first_call_id = one.call_id
        if isinstance(one, Read):
            key = id(one.grant), id(one.asked), one.turn_group
            head = self._known.get(key)
            if head is None:
                head = self._known[key] = self._head(one.entry())
            digest = sha256(one.args).digest()
            self._lines.append((head, one.call_id, one.started_ns, one.duration_ns, digest))
        else:
            self._lines.append(self._line(one))

    def written(self) -> bytes:
        """All of it."""
        try:
            return _FORM + _encode((list(self._heads), self._lines))
        except UnicodeEncodeError:
            # One call that cannot be written must not keep all the others waiting.
            heads, lines = map(storable_row, self._heads), map(storable_row, self._lines)
            return _FORM + _encode((list(heads), list(lines)))

    def _head(self, entry: Entry) -> int:
        head = (
            entry.tool,
            entry.fingerprint,
            entry.effect,
            entry.tenant,
            entry.agent,
            entry.user,
            entry.persona,
            entry.session,
            entry.turn_group,
            entry.caller_kind,
            entry.decision,
            entry.chain,
            entry.chain_index,
            entry.planned,
        )
        return self._heads.setdefault(head, len(self._heads))

    def _line(self, entry: Entry) -> tuple[object, ...]:
        known = entry.args_hash.removeprefix(_DIGEST)
        return (
            self._head(entry),
            entry.call_id,
            entry.started_ns,
            entry.duration_ns,
            bytes.fromhex(known) if known else sha256(entry.args).digest(),
            entry.state,
            entry.error_code,
            entry.error_message,
        )


def entries_of(page: bytes) -> Iterable[Entry]:
    """The calls of a page, in the order that they ended."""
    if not page.startswith(_FORM):
        yield from _decode_first(page)
        return
    found = _decode(memoryview(page)[len(_FORM) :])
    for line in found.lines:
        head = found.heads[line.head]
        yield Entry(
            line.call_id,
            head.tool,
            head.fingerprint,
            head.effect,
            head.tenant,
            head.agent,
            head.user,
            head.persona,
            head.session,
            head.turn_group,
            head.caller_kind,
            b"",
            line.started_ns,
            line.state,
            line.duration_ns,
            line.error_code,
            line.error_message,
            _DIGEST + line.args_digest.hex(),
            head.decision,
            head.chain,
            head.chain_index,
            head.planned,
        )
