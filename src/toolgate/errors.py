"""What can go wrong: one tree, stable codes, sentences that say what to do next.

    ToolgateError
    ├── SettingsInvalid            settings_invalid       the start stops: file, line, nearest key
    ├── CatalogError
    │   ├── InvalidSpecs           invalid_specs          every problem at once
    │   ├── NameClash              name_clash             names both sources
    │   └── SourceUnavailable      source_unavailable     the last good part stays     (retry)
    ├── InvalidPolicy              invalid_policy         the last good policy stays
    ├── StoreError
    │   ├── StoreUnavailable       store_unavailable      no record, no side effect    (retry)
    │   └── StoreMismatch          store_mismatch         newer, foreign or half-migrated
    ├── ServerUnreachable          server_unreachable     a gate elsewhere, no answer  (retry)
    ├── CallRefused                                       nothing ran
    │   ├── Unauthenticated        unauthenticated
    │   ├── IssuerUnavailable      issuer_unavailable     its keys are not there yet   (retry)
    │   ├── ToolNotFound           tool_not_found         missing and hidden look alike
    │   ├── CallNotFound           call_not_found         missing and others' look alike
    │   ├── ApprovalNotFound       approval_not_found     missing and others' look alike
    │   ├── PermissionDenied       permission_denied      with phase and reason
    │   ├── PolicyUnavailable      policy_unavailable     nobody can tell, so no       (retry)
    │   ├── RelationsUnavailable   relations_unavailable  nobody can tell, so no       (retry)
    │   ├── InvalidArguments       invalid_arguments      with JSON pointers
    │   ├── InvalidRequest         invalid_request        the envelope around the arguments
    │   ├── UnsupportedProvider    unsupported_provider
    │   ├── IdempotencyConflict    idempotency_conflict   the key belongs to another call
    │   ├── InProgress             in_progress            the same call is running     (retry)
    │   ├── RateLimited            rate_limited           with `retry_after`           (retry)
    │   ├── BudgetExceeded         budget_exceeded        with `retry_after`
    │   ├── LimitsUnavailable      limits_unavailable     nobody can tell, so no       (retry)
    │   ├── Overloaded             overloaded             too many at once             (retry)
    │   ├── OutOfTime              out_of_time            no time was left to begin    (retry)
    │   ├── ProviderUnavailable    provider_unavailable   what runs it is away         (retry)
    │   ├── CircuitOpen            circuit_open           it failed too often          (retry)
    │   ├── ApprovalPending        approval_pending       a person decides first
    │   ├── ApprovalDenied         approval_denied        a person said no
    │   └── Superseded             superseded             newer messages came first
    └── CallFailed                                        it ran, or may have
        ├── ExecutionFailed        execution_failed
        │   └── ToolError          tool_error             what a tool raises on purpose
        │       ├── InputNeeded    input_required         it has questions, and did not begin
        │       └── CannotAsk      missing_capability     its caller cannot be asked
        ├── TimedOut               timed_out
        ├── InvalidOutput          invalid_output         it ran; its result is not JSON
        └── ExtensionFailed        extension_failed

`CallRefused` is raised to the caller. `CallFailed` becomes an `Output` with `ok = False`: a tool's
own failure is an answer. So is `ApprovalPending`, and `Superseded`: the call may still be made.
No message carries a stack trace, a path of the machine or a secret.
"""

from collections.abc import Sequence
from typing import Any, ClassVar


class ToolgateError(Exception):
    """The root. `code` is stable; `retryable` says whether trying again can help."""

    code: ClassVar[str] = "internal_error"
    retryable: bool = False

    def __init__(self, message: str, **details: Any) -> None:
        # A file's name can hold what is not text; every door and record can carry this.
        self.message = str(message).encode("utf-8", "backslashreplace").decode()
        super().__init__(self.message)
        self.details = details
        # The call it is about, where that is another one than the caller's own attempt.
        self.call_id = ""
        # When that began, on the monotonic clock, where its caller waited for a person before.
        self.began_ns = 0


class SettingsInvalid(ToolgateError):
    """A setting cannot be used; correct the lines that the message names."""

    code = "settings_invalid"

    def __init__(self, problems: Sequence[object]) -> None:
        listed = "\n".join(f"  {problem}" for problem in problems)
        super().__init__(f"The settings cannot be used:\n{listed}")
        self.problems = tuple(problems)


class CatalogError(ToolgateError):
    """Something is wrong with the tool definitions."""


class InvalidSpecs(CatalogError):
    """Definitions contradict themselves or are malformed; write what each line proposes."""

    code = "invalid_specs"

    def __init__(self, problems: Sequence[object]) -> None:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        listed = "\n".join(f"  {problem}" for problem in problems)
        super().__init__(f"{count} in the tool definitions; nothing was loaded:\n{listed}")
        self.problems = tuple(problems)


class NameClash(CatalogError):
    """Two sources have a tool of the same name; rename one."""

    code = "name_clash"


class SourceUnavailable(CatalogError):
    """A source did not answer; its last good tools stay. Look at its health."""

    code = "source_unavailable"
    retryable = True


class InvalidPolicy(ToolgateError):
    """A policy cannot be used; correct what each line names. The last good one stays."""

    code = "invalid_policy"

    def __init__(self, problems: Sequence[object]) -> None:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        listed = "\n".join(f"  {problem}" for problem in problems)
        super().__init__(f"{count} in the policies; nothing was loaded:\n{listed}")
        self.problems = tuple(problems)


class StoreError(ToolgateError):
    """Something is wrong with the store."""


class StoreUnavailable(StoreError):
    """The store cannot be reached or written; try again when it is back."""

    code = "store_unavailable"
    retryable = True


class StoreMismatch(StoreError):
    """The database is newer, half migrated or not ours; restore it or use another."""

    code = "store_mismatch"


class ServerUnreachable(ToolgateError):
    """A toolgate server elsewhere did not answer; check its address, and that it runs.

    `details.sent` says whether the request may have reached it.
    """

    code = "server_unreachable"
    retryable = True


class CallRefused(ToolgateError):
    """Nothing ran."""


class Unauthenticated(CallRefused):
    """No valid key was sent; send one as `Authorization: Bearer KEY`."""

    code = "unauthenticated"


class IssuerUnavailable(CallRefused):
    """The issuer of this token has not told its keys yet; nothing ran. Try again."""

    code = "issuer_unavailable"
    retryable = True


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


class CallFailed(ToolgateError):
    """The call ran, or may have."""


class ExecutionFailed(CallFailed):
    """The tool raised an error of its own; `details.outcome` says if it may have happened."""

    code = "execution_failed"
    # Whether what runs it is well, and has answered with this.
    is_answer: ClassVar[bool] = False


class ToolError(ExecutionFailed):
    """Raise this from a tool to say, in words for the model, why it did not do its work.

    It means that nothing happened: the ledger records the call as failed, not as unknown.
    `retryable`: the same call can succeed later; `retry_after`: in so many seconds.
    """

    code = "tool_error"

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        **details: Any,
    ) -> None:
        if retry_after is not None:
            details["retry_after"] = retry_after
        super().__init__(message, **details)
        self.retryable = retryable or retry_after is not None


class InputNeeded(ToolError):
    """The tool has questions before it begins: answer them, and call it again with the answers.

    `questions` are by name, as the door that the call came by can put them.
    """

    code = "input_required"

    def __init__(self, questions: dict[str, Any]) -> None:
        super().__init__(
            "The tool asks for more before it begins. Nothing ran: call it again with the answers.",
            retryable=True,
            questions=questions,
        )


class CannotAsk(ToolError):
    """The tool has questions that its caller cannot be asked; use a client that takes them."""

    code = "missing_capability"

    def __init__(self, needed: tuple[str, ...]) -> None:
        super().__init__(
            f"This tool asks its caller something ({', '.join(needed) or 'a question'}), and this "
            "one does not take that. Nothing ran.",
            retryable=True,
            needed=list(needed),
        )


class TimedOut(CallFailed):
    """The tool took too long; unless it is repeatable, check before you call again."""

    code = "timed_out"

    def __init__(self, message: str, *, produced: Any = None, **details: Any) -> None:
        super().__init__(message, **details)
        # What a tool that streams had produced by then.
        self.produced = produced


class InvalidOutput(CallFailed):
    """The tool ran, but what it returned is not JSON, or far too large; correct the tool."""

    code = "invalid_output"


class ExtensionFailed(CallFailed):
    """An extension raised an error; the message says whether the tool had run."""

    code = "extension_failed"

    def __init__(self, message: str, *, ran: bool | None = None, **details: Any) -> None:
        super().__init__(message, **details)
        self.ran = ran
