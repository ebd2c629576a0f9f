"""What can go wrong: one tree, stable codes, sentences that say what to do next.

    ToolgateError
    ├── SettingsInvalid            settings_invalid       the start stops: file, line, nearest key
    ├── CatalogError
    │   ├── InvalidSpecs           invalid_specs          every problem at once
    │   ├── NameClash              name_clash             names both sources
    │   └── SourceUnavailable      source_unavailable     the last good part stays     (retry)
    ├── StoreError
    │   ├── StoreUnavailable       store_unavailable      no record, no side effect    (retry)
    │   └── StoreMismatch          store_mismatch         newer, foreign or half-migrated
    ├── CallRefused                                       nothing ran
    │   ├── Unauthenticated        unauthenticated
    │   ├── ToolNotFound           tool_not_found         missing and hidden look alike
    │   ├── PermissionDenied       permission_denied      with phase and reason
    │   ├── InvalidArguments       invalid_arguments      with JSON pointers
    │   ├── InvalidRequest         invalid_request        the envelope around the arguments
    │   ├── UnsupportedProvider    unsupported_provider
    │   ├── RateLimited            rate_limited                                        (retry)
    │   ├── BudgetExceeded         budget_exceeded
    │   ├── ApprovalPending        approval_pending       a person decides first
    │   └── Superseded             superseded             newer messages came first
    └── CallFailed                                        it ran, or may have
        ├── ExecutionFailed        execution_failed
        │   └── ToolError          tool_error             what a tool raises on purpose
        ├── TimedOut               timed_out
        ├── InvalidOutput          invalid_output         it ran; its result is not JSON
        └── ExtensionFailed        extension_failed

`CallRefused` is raised to the caller. `CallFailed` becomes an `Output` with `ok = False`: a tool's
own failure is an answer. No message carries a stack trace, a path of the machine or a secret.
"""

from collections.abc import Sequence
from typing import Any, ClassVar


class ToolgateError(Exception):
    """The root. `code` is stable; `retryable` says whether trying again can help."""

    code: ClassVar[str] = "internal_error"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class SettingsInvalid(ToolgateError):
    code = "settings_invalid"

    def __init__(self, problems: Sequence[object]) -> None:
        listed = "\n".join(f"  {problem}" for problem in problems)
        super().__init__(f"The settings cannot be used:\n{listed}")
        self.problems = tuple(problems)


class CatalogError(ToolgateError):
    pass


class InvalidSpecs(CatalogError):
    code = "invalid_specs"

    def __init__(self, problems: Sequence[object]) -> None:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        listed = "\n".join(f"  {problem}" for problem in problems)
        super().__init__(f"{count} in the tool definitions; nothing was loaded:\n{listed}")
        self.problems = tuple(problems)


class NameClash(CatalogError):
    code = "name_clash"


class SourceUnavailable(CatalogError):
    code = "source_unavailable"
    retryable = True


class StoreError(ToolgateError):
    pass


class StoreUnavailable(StoreError):
    code = "store_unavailable"
    retryable = True


class StoreMismatch(StoreError):
    code = "store_mismatch"


class CallRefused(ToolgateError):
    """Nothing ran."""


class Unauthenticated(CallRefused):
    code = "unauthenticated"


class ToolNotFound(CallRefused):
    code = "tool_not_found"

    def __init__(self, name: str) -> None:
        shown = name if len(name) <= 64 else name[:64] + "…"
        super().__init__(
            f"There is no tool {shown!r} that you may call. List the tools to see which there are."
        )


class PermissionDenied(CallRefused):
    code = "permission_denied"

    def __init__(self, message: str, *, phase: str, reason: str) -> None:
        super().__init__(message, phase=phase, reason=reason)
        self.phase = phase
        self.reason = reason


class InvalidArguments(CallRefused):
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
    code = "invalid_request"


class UnsupportedProvider(CallRefused):
    code = "unsupported_provider"


class RateLimited(CallRefused):
    code = "rate_limited"
    retryable = True


class BudgetExceeded(CallRefused):
    code = "budget_exceeded"


class ApprovalPending(CallRefused):
    code = "approval_pending"


class Superseded(CallRefused):
    code = "superseded"


class CallFailed(ToolgateError):
    """The call ran, or may have."""


class ExecutionFailed(CallFailed):
    code = "execution_failed"


class ToolError(ExecutionFailed):
    """Raise this from a tool to say, in words for the model, why it did not do its work.

    It means that nothing happened: the ledger records the call as failed, not as unknown.
    """

    code = "tool_error"


class TimedOut(CallFailed):
    code = "timed_out"


class InvalidOutput(CallFailed):
    code = "invalid_output"


class ExtensionFailed(CallFailed):
    code = "extension_failed"
