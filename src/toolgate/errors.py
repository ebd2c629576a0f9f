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
    │   ├── StoreMismatch          store_mismatch         newer, foreign or half-migrated
    │   └── StoreQuarantined       store_quarantined      an older copy, not accepted yet
    ├── ServerUnreachable          server_unreachable     a gate elsewhere, no answer  (retry)
    ├── CallRefused                                       nothing ran
    │   ├── Unauthenticated        unauthenticated
    │   ├── IssuerUnavailable      issuer_unavailable     its keys are not there yet   (retry)
    │   ├── InsufficientScope      insufficient_scope     the token is valid, and not for this
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

from toolgate.failure import (
    CallFailed,
    CannotAsk,
    ExecutionFailed,
    ExtensionFailed,
    InputNeeded,
    InvalidOutput,
    TimedOut,
    ToolError,
)
from toolgate.refusal import (
    ApprovalDenied,
    ApprovalNotFound,
    ApprovalPending,
    BudgetExceeded,
    CallNotFound,
    CallRefused,
    CircuitOpen,
    IdempotencyConflict,
    InProgress,
    InsufficientScope,
    InvalidArguments,
    InvalidRequest,
    IssuerUnavailable,
    LimitsUnavailable,
    OutOfTime,
    Overloaded,
    PermissionDenied,
    PolicyUnavailable,
    ProviderUnavailable,
    RateLimited,
    RelationsUnavailable,
    Superseded,
    ToolNotFound,
    Unauthenticated,
    UnsupportedProvider,
)
from toolgate.trouble import (
    CatalogError,
    InvalidPolicy,
    InvalidSpecs,
    NameClash,
    ServerUnreachable,
    SettingsInvalid,
    SourceUnavailable,
    StoreError,
    StoreMismatch,
    StoreQuarantined,
    StoreUnavailable,
    ToolgateError,
)

__all__ = [
    "ApprovalDenied",
    "ApprovalNotFound",
    "ApprovalPending",
    "BudgetExceeded",
    "CallFailed",
    "CallNotFound",
    "CallRefused",
    "CannotAsk",
    "CatalogError",
    "CircuitOpen",
    "ExecutionFailed",
    "ExtensionFailed",
    "IdempotencyConflict",
    "InProgress",
    "InputNeeded",
    "InsufficientScope",
    "InvalidArguments",
    "InvalidOutput",
    "InvalidPolicy",
    "InvalidRequest",
    "InvalidSpecs",
    "IssuerUnavailable",
    "LimitsUnavailable",
    "NameClash",
    "OutOfTime",
    "Overloaded",
    "PermissionDenied",
    "PolicyUnavailable",
    "ProviderUnavailable",
    "RateLimited",
    "RelationsUnavailable",
    "ServerUnreachable",
    "SettingsInvalid",
    "SourceUnavailable",
    "StoreError",
    "StoreMismatch",
    "StoreQuarantined",
    "StoreUnavailable",
    "Superseded",
    "TimedOut",
    "ToolError",
    "ToolNotFound",
    "ToolgateError",
    "Unauthenticated",
    "UnsupportedProvider",
]
