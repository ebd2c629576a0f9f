"""Calls that workers run, and what carries them there."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from toolgate.settings.part import Part, Seconds, Texts, Variable

_BROKERS = re.compile(r"kafka(\+tls)?://[^/\s,@]+:\d+(,[^/\s,@]+:\d+)*")


def broker_url(url: str) -> str:
    """Empty, or the brokers of a cluster."""
    if url and not _BROKERS.fullmatch(url):
        raise ValueError("write kafka://HOST:PORT, or kafka+tls://HOST:PORT,HOST:PORT")
    return url


class Sasl(Part):
    """Who we are to the brokers."""

    mechanism: Literal["", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        default="", description="How we say it; empty where they do not ask."
    )
    username_env: Variable = Field(
        default="", description="The environment variable with our name."
    )
    password_env: Variable = Field(default="", description="The one with our password.")

    @model_validator(mode="after")
    def _says_who(self) -> Self:
        if self.mechanism and not (self.username_env and self.password_env):
            raise ValueError("mechanism needs username_env and password_env")
        if not self.mechanism and (self.username_env or self.password_env):
            raise ValueError(
                "username_env and password_env need mechanism: write PLAIN, SCRAM-SHA-256 or "
                "SCRAM-SHA-512, as the brokers ask"
            )
        return self


class Producer(Part):
    """Another system that may put calls into the queue, or answer those of `provider: queue`."""

    secret_env: Variable = Field(
        min_length=1,
        description=(
            "The environment variable that holds what it signs by: at least 16 characters."
        ),
    )
    tenants: Texts = Field(
        strict=False, description="The tenants that it may speak for; `*` means all of them."
    )


class Topics(Part):
    """Where messages go, and how the topics are made that are not there."""

    requests: str = Field(default="tool.requests", min_length=1, description="Calls to be run.")
    results: str = Field(default="tool.results", min_length=1, description="How calls ended.")
    dead: str = Field(
        default="tool.dead", min_length=1, description="Calls that no worker could run."
    )
    create: bool = Field(default=True, description="Whether those that are missing are made.")
    partitions: int = Field(
        default=12,
        ge=1,
        le=10_000,
        description="Of a topic that is made: so many can share it.",
    )
    replication: int = Field(
        default=1, ge=1, le=10, description="Of a topic that is made: on how many brokers it is."
    )
    retention: Seconds = Field(
        default=86_400,
        gt=0,
        le=31_536_000,
        strict=False,
        description="Of a topic that is made: seconds for which messages are kept.",
    )


class Fleet(Part):
    """Calls of tools with `execution: queued`."""

    url: Annotated[str, AfterValidator(broker_url)] = Field(
        default="", description="`kafka://HOST:PORT`; empty keeps the queue in the store."
    )
    work: Literal["auto", "always", "never"] = Field(
        default="auto",
        description=(
            "Whether `toolgate serve` runs queued calls itself: `always`, `never` (workers do), or "
            "`auto`: where there is no broker."
        ),
    )
    concurrency: int = Field(
        default=32,
        ge=1,
        le=10_000,
        description=(
            "Queued calls that one worker runs at a time; an eighth more is kept for tenants that "
            "run little there."
        ),
    )
    attempts: int = Field(
        default=5, ge=1, le=1_000, description="So often a call is taken; then it is dead."
    )
    expires: Seconds = Field(
        default=3_600,
        ge=1,
        le=2_592_000,
        strict=False,
        description="Seconds that a call may wait to be run.",
    )
    lease: Seconds = Field(
        default=15,
        ge=1,
        le=3_600,
        strict=False,
        description=(
            "Seconds after which a call is due again whose worker is gone; one that had begun a "
            "side effect goes on after `[toolbox] lease`, too."
        ),
    )
    drain: Seconds = Field(
        default=10,
        ge=0,
        le=3_600,
        strict=False,
        description="Seconds that queued calls get to finish once their worker is told to end.",
    )
    waiting: int = Field(
        default=100_000, ge=1, le=10_000_000, description="The most calls that are queued."
    )
    tenant_waiting: int = Field(
        default=20_000, ge=1, le=10_000_000, description="The most of one tenant."
    )
    window: int = Field(
        default=1_000,
        ge=1,
        le=100_000,
        description="The most calls of one tenant that are with the broker; others come between.",
    )
    group: str = Field(default="toolgate", min_length=1, description="The workers' consumer group.")
    topics: Topics = Field(default_factory=Topics.model_construct)
    producers: Mapping[str, Producer] = Field(
        default_factory=dict,
        description="Other systems that may put calls into the queue, by name.",
    )
    sasl: Sasl = Field(default_factory=Sasl.model_construct)
    ca_file: str = Field(default="", description="Whom `kafka+tls` trusts; empty: the system's.")
    cert_file: str = Field(default="", description="Our own certificate, where they ask for it.")
    key_file: str = Field(default="", description="The key of that certificate.")

    @property
    def brokers(self) -> tuple[str, ...]:
        """Where the cluster is found."""
        return tuple(self.url.partition("://")[2].split(",")) if self.url else ()

    @property
    def is_encrypted(self) -> bool:
        """Whether what goes over the wire is for the brokers only."""
        return self.url.startswith("kafka+tls://")
