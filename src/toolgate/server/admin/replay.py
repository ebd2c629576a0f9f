"""`/v1/admin/replay`: recorded decisions, asked again of a policy that is not in force."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
import orjson

from toolgate.errors import InvalidRequest
from toolgate.gate.replay import Flip, Replay
from toolgate.server.admin.desk import Desk, OfTenant
from toolgate.server.answers import Page, Shape
from toolgate.server.hangup import while_there
from toolgate.tenancy import lasting

# So many decisions are asked in one go.
_TOGETHER = 1_000
_MOST_FILES = 1_000
_MOST_PATH = 256
_LAST_NS = 2**63 - 1
_Path = Annotated[str, msgspec.Meta(min_length=1, max_length=_MOST_PATH)]


class Draft(OfTenant):
    """The policy's files by their path in its folder, and which decisions are meant.

    Without files, the folder of the server's settings is read as it stands. `since_ns` is a moment
    since 1970; `cursor` is the `next` of the answer before, with all else the same.
    """

    since_ns: Annotated[int, msgspec.Meta(ge=0, le=_LAST_NS)] = 0
    files: Annotated[dict[_Path, str], msgspec.Meta(max_length=_MOST_FILES)] | None = None
    cursor: Annotated[str, msgspec.Meta(pattern=r"^([0-9]{1,19}:[!-~]{1,200})?$")] = ""


class Flipped(Shape, kw_only=True):
    """A decision that the policy of these files makes otherwise, and the calls that rest on it."""

    decision: str
    at: str
    tenant: str
    tool: str
    caller: dict[str, Any]
    was: str
    observed: bool
    now: str
    reasons: list[str]
    calls: list[str]


class Unasked(Shape, kw_only=True):
    """A decision that cannot be asked again: the policy reads what was not recorded."""

    decision: str
    tool: str
    missing: list[str]


class Replayed(Page, kw_only=True):
    """How many were asked, and which of them flip. There are more where there is a `next`."""

    asked: int
    flips: list[Flipped]
    untold: list[Unasked]


async def replay_decisions(desk: Desk, given: Draft) -> Any:
    """`POST replay` `{files: {path: text}, since_ns, tenant, cursor}`: which recorded decisions
    would these policies make otherwise. Nothing is kept of them, and nothing changes.
    """
    gate, stored = desk.gate, desk.gate.tenancy.world.everyone.policies
    for path in given.files or ():
        if not path.isprintable() or {"", ".", ".."} & set(path.split("/")):
            raise InvalidRequest(f"{path[:80]!r} is no path in a folder, such as shop/data.json.")
    moment, _, id_ = given.cursor.partition(":")
    after = (min(int(moment), _LAST_NS), id_) if id_ else None
    decisions = await gate.decisions.since(
        given.since_ns, tenant=desk.tenant, after=after, most=_TOGETHER
    )
    work = gate.replayed(decisions, given.files, stored)
    found = await while_there(desk.request.receive, work)
    wanted = {flip.decision.id for flip in found.flips}
    calls = await gate.journal.calls_of(wanted, given.since_ns) if wanted else {}
    last = decisions[-1] if len(decisions) == _TOGETHER else None
    return shown(found, calls) | {"next": None if last is None else f"{last.at_ns}:{last.id}"}


def shown(found: Replay, calls: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """What came of it, as every door tells it."""
    return {
        "asked": found.asked,
        "flips": [_row(flip, calls) for flip in found.flips],
        "untold": [
            {"decision": one.decision.id, "tool": one.decision.tool, "missing": one.missing}
            for one in found.untold
        ],
    }


def _row(flip: Flip, calls: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    decision = flip.decision
    return {
        "decision": decision.id,
        "at": lasting.shown(decision.at_ns) or "",
        "tenant": decision.tenant,
        "tool": decision.tool,
        "caller": orjson.loads(decision.input)["caller"],
        # What only observing let pass was a no.
        "was": "allowed" if decision.allowed and not decision.observed else "refused",
        "observed": decision.observed,
        "now": "allowed" if flip.allowed else "refused",
        "reasons": flip.reasons,
        "calls": calls.get(decision.id, []),
    }
