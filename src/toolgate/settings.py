"""One frozen Settings: everything that can be set, as values that hold by themselves."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)

_HTTP = re.compile(r"https?://[^/:?#\s]")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _store_url(url: str) -> str:
    if re.match(r"(sqlite:///|postgresql://).", url):
        return url
    raise ValueError("write sqlite:///PATH or postgresql://USER:PASSWORD@HOST/NAME")


def _http_url(url: str) -> str:
    if url and not _HTTP.match(url):
        raise ValueError("write an address such as https://HOST or http://HOST:PORT")
    return url.rstrip("/")


def _redis_url(url: str) -> str:
    if url and not re.match(r"rediss?://.", url):
        raise ValueError("write redis://HOST:PORT or rediss://HOST:PORT")
    return url


def _grpc_url(url: str) -> str:
    if url and not re.match(r"grpcs?://[^/:?#\s]", url):
        raise ValueError("write grpc://HOST:PORT, or grpcs://HOST:PORT with TLS")
    return url.rstrip("/")


def _texts(given: object) -> object:
    if not isinstance(given, (list, tuple)):
        raise ValueError('write a list of texts, such as ["tools/*.yaml"]')
    return cast("object", given)


def _seconds(given: object) -> object:
    if isinstance(given, bool):
        raise ValueError("write a number of seconds")
    return given


Texts = Annotated[tuple[str, ...], BeforeValidator(_texts)]
Seconds = Annotated[float, BeforeValidator(_seconds)]


class Server(_Part):
    """Where the server listens."""

    host: str = Field(default="127.0.0.1", description="The address to listen on.")
    port: int = Field(
        default=8700, ge=0, le=65535, description="The port to listen on; 0 takes a free one."
    )
    public_url: Annotated[str, AfterValidator(_http_url)] = Field(
        default="", description="The address callers use. Needed to listen beyond this machine."
    )


class Store(_Part):
    """Where everything is kept."""

    url: Annotated[str, AfterValidator(_store_url)] = Field(
        default="sqlite:///.toolgate/toolgate.db",
        description="`sqlite:///PATH` or `postgresql://…`; one with a password by environment.",
    )


class Tools(_Part):
    """Where tools come from."""

    files: Texts = Field(
        default=("tools/*.yaml", "tools/*.yml", "tools/*.json"),
        strict=False,
        description="Tool files, as globs below the folder of the settings file.",
    )
    urls: tuple[Annotated[str, AfterValidator(_http_url)], ...] = Field(
        default=(), strict=False, description="Endpoints that answer with a tool file."
    )
    refresh: Seconds = Field(
        default=30,
        ge=0,
        le=86_400,
        strict=False,
        description="Seconds after which sources are asked again; 0 asks them only at the start.",
    )
    builtin: Texts = Field(
        default=("*",),
        strict=False,
        description="Which built-in tools there are, as globs over names.",
    )


class Policy(_Part):
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
    url: Annotated[str, AfterValidator(_http_url)] = Field(
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


class Relations(_Part):
    """The third phase of the gate: who stands how to which tool."""

    engine: Literal["off", "store", "spicedb"] = Field(
        default="off", description="`store` keeps relations here, `spicedb` in a server."
    )
    url: Annotated[str, AfterValidator(_grpc_url)] = Field(
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


class Cache(_Part):
    """How long decisions are believed, and where nodes share them."""

    url: Annotated[str, AfterValidator(_redis_url)] = Field(
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


class Toolbox(_Part):
    """How calls run."""

    default_timeout: Seconds = Field(
        default=30, gt=0, le=86_400, strict=False, description="Seconds a call may take."
    )


class Settings(_Part):
    """Everything that can be set. `root` is what relative paths start from."""

    server: Server = Field(default_factory=Server.model_construct)
    store: Store = Field(default_factory=Store.model_construct)
    policy: Policy = Field(default_factory=Policy.model_construct)
    relations: Relations = Field(default_factory=Relations.model_construct)
    cache: Cache = Field(default_factory=Cache.model_construct)
    tools: Tools = Field(default_factory=Tools.model_construct)
    toolbox: Toolbox = Field(default_factory=Toolbox.model_construct)
    root: Path = Field(default_factory=Path.cwd, exclude=True, strict=False)

    def path(self, relative: str) -> Path:
        """A path from the settings, absolute."""
        return (self.root / relative).absolute()


SECTIONS: Mapping[str, type[_Part]] = {
    "server": Server,
    "store": Store,
    "policy": Policy,
    "relations": Relations,
    "cache": Cache,
    "tools": Tools,
    "toolbox": Toolbox,
}
