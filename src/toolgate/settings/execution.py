"""How calls run: time, once-only, people, limits, events, and what is told of it."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from toolgate.settings.part import Part, Seconds, http_url, rate


class Toolbox(Part):
    """How calls run."""

    default_timeout: Seconds = Field(
        default=30, gt=0, le=86_400, strict=False, description="Seconds a call may take."
    )
    default_idempotency_ttl: Seconds = Field(
        default=86_400,
        gt=0,
        le=31_536_000,
        strict=False,
        description="Seconds after its end for which a repeated call gets the first result.",
    )
    default_wait: Seconds = Field(
        default=5,
        ge=0,
        le=600,
        strict=False,
        description="Seconds that a call waits for its twin that is running, unless it says.",
    )
    lease: Seconds = Field(
        default=15,
        ge=1,
        le=3_600,
        strict=False,
        description="Seconds after which a side effect whose process is gone is looked after.",
    )
    max_batch_size: int = Field(
        default=10, ge=1, le=1_000, description="Calls in one batch, chain or model's message."
    )
    parallel_mutations: bool = Field(
        default=False,
        description="Whether a chain may run side effects at the same time, if it asks to.",
    )
    output_limit: int = Field(
        default=100_000,
        ge=1_000,
        le=100_000_000,
        description="Bytes of an output that are answered at once, unless the tool says.",
    )
    blob_ttl: Seconds = Field(
        default=86_400,
        gt=0,
        le=31_536_000,
        strict=False,
        description="Seconds for which the rest of a large output can be read.",
    )

    @model_validator(mode="after")
    def _is_remembered_long_enough(self) -> Self:
        # Whoever waited for as long as a call may take must not find its key free.
        if self.default_idempotency_ttl < self.default_timeout:
            raise ValueError(
                f"default_idempotency_ttl is at least default_timeout, which is "
                f"{self.default_timeout:g}"
            )
        return self


class Approvals(Part):
    """When a person is asked."""

    mode: Literal["never", "unsafe_only", "always"] = Field(
        default="unsafe_only",
        description="`unsafe_only` asks for tools that say so or destroy; `always` for every call; "
        "`never` asks nobody: what needs a person then runs without one.",
    )
    ttl: Seconds = Field(
        default=3_600,
        gt=0,
        le=2_592_000,
        strict=False,
        description="Seconds within which a person decides, and an approval is used.",
    )


class Limits(Part):
    """How much is let through."""

    tenant: Annotated[str, AfterValidator(rate)] = Field(
        default="", description="The most calls of a tenant in a time, such as `600/minute`."
    )
    persona: Annotated[str, AfterValidator(rate)] = Field(
        default="", description="The most calls of a persona of a tenant in a time."
    )
    tool: Annotated[str, AfterValidator(rate)] = Field(
        default="", description="The most calls of a tool by a tenant in a time."
    )
    default_plan: Literal["free", "starter", "team", "enterprise"] = Field(
        default="enterprise", description="The budget plan of tenants that have none of their own."
    )
    concurrency: int = Field(
        default=64,
        ge=1,
        le=10_000,
        description="Calls of one provider that run at a time; an eighth more is kept for tenants "
        "that run little.",
    )
    waiting: int = Field(
        default=1_000, ge=0, le=100_000, description="Calls of one provider that wait their turn."
    )
    processes: int = Field(
        default=1,
        ge=1,
        le=10_000,
        description="How many processes share the limits while Redis is away.",
    )


class Events(Part):
    """Where others are told what happens."""

    url: Annotated[str, AfterValidator(http_url)] = Field(
        default="", description="The address that every event is sent to, signed."
    )
    secret_env: str = Field(
        default="", description="The environment variable with the secret that signs them."
    )

    @model_validator(mode="after")
    def _are_signed(self) -> Self:
        if self.url and not self.secret_env:
            raise ValueError('url needs secret_env = "THE_VARIABLE_WITH_A_SECRET"')
        return self


class Features(Part):
    """What can be switched off as a whole."""

    structured_tool_output: bool = Field(
        default=True,
        description="Whether doors answer with an Output; else with the bare result, or an error.",
    )
    side_effect_tracking: bool = Field(
        default=True,
        description="Whether outputs tell side effects, and destructive tools wait for a person.",
    )
    cascading_tool_policy: bool = Field(
        default=True,
        description="Whether layers cascade; else only the permissions of roles are looked at.",
    )


class Telemetry(Part):
    """What is told of calls while they run."""

    metrics: bool = Field(default=True, description="Whether `/metrics` answers.")
    traces: Annotated[str, AfterValidator(http_url)] = Field(
        default="", description="The OTLP address that traces and metrics are sent to."
    )
    log: Literal["text", "json"] = Field(default="text", description="How log lines look.")
    level: Literal["debug", "info", "warning", "error"] = Field(
        default="warning",
        description="Which log lines are written; `info` has one for the end of each call.",
    )
