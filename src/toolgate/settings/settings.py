"""One frozen Settings: everything that can be set, as values that hold by themselves."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from toolgate.settings.auth import Auth
from toolgate.settings.builtin import Agent, Code, Llm, Memory, Web
from toolgate.settings.execution import (
    Approvals,
    Events,
    Features,
    Limits,
    Telemetry,
    Toolbox,
)
from toolgate.settings.fleet import Fleet
from toolgate.settings.gate import Cache, Policy, Relations
from toolgate.settings.outward import Net, OpenApis, Providers, Sandbox, Servers
from toolgate.settings.part import Part, Seconds, Texts, http_url, origin, owner_url, store_url

# Beside the settings, made when a tool first needs it: what agents may read and write.
FOLDER = "agent_files"


class Server(Part):
    """Where the server listens."""

    host: str = Field(default="127.0.0.1", description="The address to listen on.")
    port: int = Field(
        default=8700, ge=0, le=65535, description="The port to listen on; 0 takes a free one."
    )
    public_url: Annotated[str, AfterValidator(http_url)] = Field(
        default="", description="The address callers use. Needed to listen beyond this machine."
    )
    allowed_origins: tuple[Annotated[str, AfterValidator(origin)], ...] = Field(
        default=(),
        strict=False,
        description="Pages that may ask from a browser, such as `https://console.example`.",
    )
    drain: Seconds = Field(
        default=30,
        ge=0,
        le=3_600,
        strict=False,
        description="Seconds that calls get to finish once the server is told to end.",
    )


class Store(Part):
    """Where everything is kept."""

    url: Annotated[str, AfterValidator(store_url)] = Field(
        default="sqlite:///.toolgate/toolgate.db",
        description="`sqlite:///PATH` or `postgresql://…`; one with a password by environment.",
    )
    connections: int = Field(
        default=24,
        ge=6,
        le=1_000,
        description="The most connections of one process to PostgreSQL; a server has 100 for all.",
    )
    migrate_url: Annotated[str, AfterValidator(owner_url)] = Field(
        default="",
        description="The same database for the owner of its tables, who makes and upgrades them; "
        "by environment. Empty: the role of `url` does.",
    )
    witness: str = Field(
        default="",
        description="A file that remembers how far the store had come, so that an older copy of it "
        "is known as one; best on another disk. Empty: beside a file of SQLite, and none for "
        "PostgreSQL.",
    )
    row_security: Literal["warn", "require"] = Field(
        default="warn",
        description="What to do on PostgreSQL where its row security is not in force: tell, or "
        "refuse to start.",
    )


class Tools(Part):
    """Where tools come from."""

    files: Texts = Field(
        default=("tools/*.yaml", "tools/*.yml", "tools/*.json"),
        strict=False,
        description="Tool files, as globs below the folder of the settings file.",
    )
    urls: tuple[Annotated[str, AfterValidator(http_url)], ...] = Field(
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
    plugins: Texts = Field(
        default=("plugins",),
        strict=False,
        description="Folders that plugins are in, each in a folder of its own.",
    )
    roots: Texts = Field(
        default=(FOLDER,),
        strict=False,
        description="Folders that tools may read and write files in. None of them is the folder of "
        "the settings, or lies in what toolgate goes by: tools, policies, plugins, its own code.",
    )
    web: Web = Field(default_factory=Web, description="Tools that look things up.")
    code: Code = Field(default_factory=Code, description="Tools that run and check code.")
    llm: Llm = Field(default_factory=Llm, description="Tools that compare and sort texts.")
    memory: Memory = Field(default_factory=Memory, description="Tools that remember.")
    agent: Agent = Field(
        default_factory=Agent, description="Tools that reach people and other agents."
    )
    openapi: OpenApis = Field(
        default_factory=dict, description="OpenAPI documents whose operations are tools, by name."
    )


class Plugins(Part):
    """Plugins: code and tools in a folder."""

    settings: str = Field(
        default="plugin_settings",
        min_length=1,
        description="The folder of their settings files, `NAME.json` each.",
    )
    data: str = Field(
        default="plugin_data",
        min_length=1,
        description="The folder in which programs of plugins keep what they write.",
    )
    trusted: Texts = Field(
        default=(),
        strict=False,
        description="Plugins whose new and changed code is loaded without an operator's word; `*` "
        "means all of them.",
    )
    refresh: Seconds = Field(
        default=2,
        ge=0,
        le=86_400,
        strict=False,
        description="Seconds after which their folders are looked at again; 0 looks only at the "
        "start, and when told to.",
    )


class Mcp(Part):
    """What MCP clients find."""

    expose_tools: bool = Field(
        default=True,
        description="Whether tools can be listed and called; without it only the resources that "
        "tell who has which tools are there.",
    )
    task_after: Seconds = Field(
        default=1,
        ge=0.01,
        le=300,
        strict=False,
        description="Seconds after which a call that is not over becomes a task, for clients that "
        "take tasks.",
    )
    servers: Servers = Field(default_factory=dict, description="Whose tools are offered here.")
    added_env: tuple[str, ...] = Field(
        default=(),
        strict=False,
        description="Environment variables that servers which operators add may be given.",
    )
    added_roots: tuple[str, ...] = Field(
        default=(),
        strict=False,
        description="Folders below which servers that operators add may read and write.",
    )
    added_hosts: tuple[str, ...] = Field(
        default=(),
        strict=False,
        description="Hosts that programs which operators add as servers may reach: "
        "`api.example.com`, `*.example.com`.",
    )


class Settings(Part):
    """Everything that can be set. Relative paths start from `root`; `file` is what was read."""

    server: Server = Field(default_factory=Server.model_construct)
    auth: Auth = Field(default_factory=Auth.model_construct)
    store: Store = Field(default_factory=Store.model_construct)
    policy: Policy = Field(default_factory=Policy.model_construct)
    relations: Relations = Field(default_factory=Relations.model_construct)
    cache: Cache = Field(default_factory=Cache.model_construct)
    tools: Tools = Field(default_factory=Tools.model_construct)
    plugins: Plugins = Field(default_factory=Plugins.model_construct)
    mcp: Mcp = Field(default_factory=Mcp.model_construct)
    providers: Providers = Field(default_factory=Providers.model_construct)
    sandbox: Sandbox = Field(default_factory=Sandbox.model_construct)
    net: Net = Field(default_factory=Net.model_construct)
    toolbox: Toolbox = Field(default_factory=Toolbox.model_construct)
    approvals: Approvals = Field(default_factory=Approvals.model_construct)
    limits: Limits = Field(default_factory=Limits.model_construct)
    queue: Fleet = Field(default_factory=Fleet.model_construct)
    events: Events = Field(default_factory=Events.model_construct)
    features: Features = Field(default_factory=Features.model_construct)
    telemetry: Telemetry = Field(default_factory=Telemetry.model_construct)
    root: Path = Field(default_factory=Path.cwd, exclude=True, strict=False)
    file: Path | None = Field(default=None, exclude=True, strict=False)

    @model_validator(mode="after")
    def _outlives_the_queue(self) -> Self:
        # What is brought twice must be known the second time.
        ttl = self.toolbox.default_idempotency_ttl
        if ttl < self.queue.expires:
            raise ValueError(
                f"queue.expires is {self.queue.expires:g}, but toolbox.default_idempotency_ttl "
                f"is {ttl:g}: a call that is brought twice by then would run twice; raise the "
                "latter, or lower the former"
            )
        return self

    def path(self, relative: str) -> Path:
        """A path from the settings, absolute."""
        return (self.root / relative).absolute()


SECTIONS: Mapping[str, type[Part]] = {
    "server": Server,
    "auth": Auth,
    "store": Store,
    "policy": Policy,
    "relations": Relations,
    "cache": Cache,
    "tools": Tools,
    "plugins": Plugins,
    "mcp": Mcp,
    "providers": Providers,
    "sandbox": Sandbox,
    "net": Net,
    "toolbox": Toolbox,
    "approvals": Approvals,
    "limits": Limits,
    "queue": Fleet,
    "events": Events,
    "features": Features,
    "telemetry": Telemetry,
}
