"""Why a call did not run: it can be made again without fear. Import from `errors`."""

from collections.abc import Sequence

from toolgate.trouble import ToolgateError


class CallRefused(ToolgateError):
    """Nothing ran."""


class Unauthenticated(CallRefused):
    """No valid key was sent; send one as `Authorization: Bearer KEY`."""

    code = "unauthenticated"


class IssuerUnavailable(CallRefused):
    """The issuer of this token has not told its keys yet; nothing ran. Try again."""

    code = "issuer_unavailable"
    retryable = True


class InsufficientScope(CallRefused):
    """The token is valid and lacks a scope; get one that has it. The challenge names it."""

    code = "insufficient_scope"

    def __init__(self, scope: str) -> None:
        super().__init__(
            f"This token is valid, but lacks the scope {scope!r}; nothing ran. Get one with it.",
            scope=scope,
        )
        self.scope = scope


class ToolNotFound(CallRefused):
    """The tool does not exist or is hidden from this caller; list the tools."""

    code = "tool_not_found"

    def __init__(self, name: str) -> None:
        shown = name if len(name) <= 64 else name[:64] + "…"
        super().__init__(
            f"There is no tool {shown!r} that you may call. List the tools to see which there are."
        )


class CallNotFound(CallRefused):
    """There is no call of this id that is the caller's; the ledger lists those there are."""

    code = "call_not_found"

    def __init__(self, name: str, what: str = "call", hint: str = "") -> None:
        """`what` it is a name of: a call, a turn group or a chain."""
        shown = name if len(name) <= 64 else name[:64] + "…"
        listed = (
            "The ledger lists the side effects there are: `toolgate ledger list --tenant NAME`, or "
            "over HTTP `GET /v1/ledger`."
        )
        super().__init__(f"There is no {what} {shown!r} of yours on record. {hint or listed}")


class ApprovalNotFound(CallRefused):
    """There is no such approval for who asks; list them to see which there are."""

    code = "approval_not_found"

    def __init__(self) -> None:
        """Without its id: one that is there and one that is not are told in the same bytes."""
        super().__init__(
            "There is no such approval that you may see. Nothing was decided; list all of them to "
            "see which there are."
        )


class PermissionDenied(CallRefused):
    """The tool is visible, but this call of it is not allowed."""

    code = "permission_denied"

    def __init__(self, message: str, *, phase: str, reason: str) -> None:
        super().__init__(message, phase=phase, reason=reason)
        self.phase = phase
        self.reason = reason


class PolicyUnavailable(CallRefused):
    """The policy engine did not say yes or no; nothing ran. Try again, or look at its health."""

    code = "policy_unavailable"
    retryable = True


class RelationsUnavailable(CallRefused):
    """The relations engine did not answer; nothing ran. Try again, or look at its health."""

    code = "relations_unavailable"
    retryable = True


class InvalidArguments(CallRefused):
    """The arguments do not fit the schema; correct what the pointers name."""

    code = "invalid_arguments"

    def __init__(self, tool: str, problems: Sequence[tuple[str, str]]) -> None:
        listed = "; ".join(
            f"{pointer or '(arguments)'}: {message}" for pointer, message in problems
        )
        super().__init__(
            f"The arguments of {tool!r} do not fit its schema: {listed}. "
            "Correct them and call again; nothing ran.",
            problems=[{"pointer": pointer, "message": message} for pointer, message in problems],
        )


class InvalidRequest(CallRefused):
    """The request around the arguments is malformed; send what the message says."""

    code = "invalid_request"


class UnsupportedProvider(CallRefused):
    """Nothing here runs tools of this kind; add its provider."""

    code = "unsupported_provider"


class RateLimited(CallRefused):
    """Too many calls in a time; wait and try again."""

    code = "rate_limited"
    retryable = True


class BudgetExceeded(CallRefused):
    """The budget is used up; raise it or wait for the next period."""

    code = "budget_exceeded"


class LimitsUnavailable(CallRefused):
    """Whether a rate limit holds cannot be told while Redis is away; nothing ran. Try again."""

    code = "limits_unavailable"
    retryable = True


class IdempotencyConflict(CallRefused):
    """The idempotency key was used for another call; use a new key, or send the same call."""

    code = "idempotency_conflict"


class InProgress(CallRefused):
    """The same call is running already; ask for its result, or try again in a moment."""

    code = "in_progress"
    retryable = True


class Overloaded(CallRefused):
    """Too many calls of this kind run already; try again in a moment."""

    code = "overloaded"
    retryable = True


class OutOfTime(CallRefused):
    """The time for the call was over before it could begin; allow more, or try again."""

    code = "out_of_time"
    retryable = True


class ProviderUnavailable(CallRefused):
    """What would run the tool cannot be reached; nothing ran. Try again in a moment."""

    code = "provider_unavailable"
    retryable = True


class CircuitOpen(CallRefused):
    """The tool, or the server behind it, has failed too often and is left alone for a while."""

    code = "circuit_open"
    retryable = True


class ApprovalPending(CallRefused):
    """A person has to agree before this runs."""

    code = "approval_pending"


class ApprovalDenied(CallRefused):
    """A person has said no to this call; do without it, or ask for something else."""

    code = "approval_denied"


class Superseded(CallRefused):
    """Newer messages came before an irreversible call; read them first."""

    code = "superseded"
