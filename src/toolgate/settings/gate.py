"""How the gate decides: policy, relations, and how long decisions are believed."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from toolgate.settings.part import Part, Seconds, grpc_url, http_url, redis_url


class Policy(Part):
    """The last phase of the gate: layers, personas and Rego."""

    engine: Literal["rego", "opa"] = Field(
        default="rego", description="`rego` decides in this process, `opa` asks a server."
    )
    path: str = Field(
        default="policies", description="The folder with your Rego files and their data."
    )
    mode: Literal["enforce", "observe"] = Field(
        default="enforce",
        description="`observe` records what this phase would have refused, and lets it pass.",
    )
    bundled: bool = Field(
        default=True,
        description="Whether your files extend the bundled policy, or stand in its place.",
    )
    refresh: Seconds = Field(
        default=1.0,
        ge=0,
        le=86_400,
        strict=False,
        description="Seconds after which files are looked at again; 0 looks only at the start.",
    )
    url: Annotated[str, AfterValidator(http_url)] = Field(
        default="", description="The address of the OPA server."
    )
    token_env: str = Field(
        default="", description="The environment variable that holds the OPA server's token."
    )
    push: bool = Field(
        default=True,
        description="Whether the policy is sent to the OPA server, or is there by a bundle of its.",
    )
    timeout: Seconds = Field(
        default=1.0,
        gt=0,
        le=60,
        strict=False,
        description="Seconds that a server may take to decide.",
    )
    record_calls: bool = Field(
        default=False,
        description="Whether each decision is kept with the call's arguments and time, so that "
        "`toolgate policy replay` can ask a changed policy about them.",
    )
    unlisted_personas_may_add: bool = Field(
        default=False, description="Whether a persona that nobody has spoken of may add tools."
    )

    @model_validator(mode="after")
    def _server_has_an_address(self) -> Self:
        if self.engine == "opa" and not self.url:
            raise ValueError('engine = "opa" needs url = "http://HOST:8181"')
        return self


class Relations(Part):
    """The third phase of the gate: who stands how to which tool."""

    engine: Literal["off", "store", "spicedb"] = Field(
        default="off", description="`store` keeps relations here, `spicedb` in a server."
    )
    url: Annotated[str, AfterValidator(grpc_url)] = Field(
        default="",
        description="The address of SpiceDB: `grpc://HOST:PORT`, or `grpcs://` with TLS.",
    )
    token_env: str = Field(
        default="", description="The environment variable that holds SpiceDB's preshared key."
    )
    timeout: Seconds = Field(
        default=1.0,
        gt=0,
        le=60,
        strict=False,
        description="Seconds that SpiceDB may take to answer.",
    )

    @model_validator(mode="after")
    def _server_has_an_address(self) -> Self:
        if self.engine == "spicedb" and not (self.url and self.token_env):
            raise ValueError(
                'engine = "spicedb" needs url = "grpc://HOST:50051" and '
                'token_env = "THE_VARIABLE_WITH_ITS_KEY"'
            )
        return self


class Cache(Part):
    """How long decisions are believed, and where nodes share them."""

    url: Annotated[str, AfterValidator(redis_url)] = Field(
        default="", description="`redis://…`; empty keeps everything in this process."
    )
    schema_ttl: Seconds = Field(
        default=3_600, gt=0, le=86_400, strict=False, description="Seconds for a definition."
    )
    enabled_ttl: Seconds = Field(
        default=300, gt=0, le=86_400, strict=False, description="Seconds for flags and capsules."
    )
    permission_ttl: Seconds = Field(
        default=60, gt=0, le=3_600, strict=False, description="Seconds for a decision."
    )
