"""What is beyond this process: other servers, other programs, and how far they may reach."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from toolgate.settings.part import Part, Seconds, Texts, Variable, Variables, http_url

_SERVER = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}\Z")
_WHO = r"\{(?:tenant|user|agent)\}"
# Nothing between two names but what cannot stand in one.
_ENTITY = re.compile(rf"(?:[\w.-]*[:/|])?{_WHO}(?:[:/|]{_WHO})*\Z")
_FACTORY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*\Z")
_PLACE = re.compile(r"(\*\.)?[A-Za-z0-9.:_\[\]-]+(/\d{1,3})?\Z")


def _place(given: str) -> str:
    if not _PLACE.match(given):
        raise ValueError("write a host, host:port, *.domain or a network such as 10.0.0.0/8")
    return given


def _command(given: object) -> object:
    """One word is a command without arguments."""
    return (given,) if isinstance(given, str) else given


def _named(given: "Mapping[str, OpenApi]") -> "Mapping[str, OpenApi]":
    for name in given:
        if not is_server_name(name):
            raise ValueError(
                f"{name[:60]!r} names no document; use small letters, digits, _ and -, at most 40"
            )
    return given


def is_server_name(name: str) -> bool:
    """Whether a server may be called this."""
    return _SERVER.match(name) is not None


def _servers(given: "Mapping[str, McpServer]") -> "Mapping[str, McpServer]":
    for name in given:
        if not _SERVER.match(name):
            raise ValueError(
                f"{name[:60]!r} names no server; use small letters, digits, _ and -, at most 40"
            )
    return given


class OpenApi(Part):
    """A document whose operations are tools."""

    document: str = Field(
        min_length=1,
        description="Its file, from the folder of the settings file, or its address.",
    )
    prefix: str = Field(default="", description="What stands before the names of its tools.")
    server: Annotated[str, AfterValidator(http_url)] = Field(
        default="", description="Where its operations are, whatever it says itself."
    )
    client_id: str = Field(default="", description="Who we are where OAuth gives tokens.")
    tags: Texts = Field(default=(), strict=False, description="Only operations of these tags.")
    paths: Texts = Field(
        default=(), strict=False, description="Only operations of these paths, as globs."
    )
    methods: Texts = Field(
        default=(), strict=False, description="Only operations of these methods."
    )
    operations: Texts = Field(
        default=(), strict=False, description="Only operations of these ids, as globs."
    )
    deprecated: bool = Field(default=False, description="Whether also what is deprecated.")
    auth: Texts = Field(
        default=(),
        strict=False,
        description="The security schemes to take where an operation offers several.",
    )
    overlay: str = Field(
        default="", description="A file with your word on its tools: effect, limits, arguments."
    )


class Net(Part):
    """Where requests may go."""

    allow: tuple[Annotated[str, AfterValidator(_place)], ...] = Field(
        default=(),
        strict=False,
        description="Places of private networks that tools may reach: `localhost:8080`, "
        "`*.internal`, `10.0.0.0/8`. What is public needs no entry.",
    )


class Sandbox(Part):
    """What programs run in."""

    kind: Literal["auto", "bubblewrap", "sandlock", "container", "gvisor"] = Field(
        default="auto",
        description="`auto` takes the first that holds when it is tried: bubblewrap, then gVisor. "
        "Without one that holds, nothing runs. `container` needs an image; `sandlock` is known and "
        "refused, since it does not hold.",
    )
    image: str = Field(default="", description="The image that containers are made from.")
    runtime: str = Field(
        default="", description="What the engine runs containers with: `runsc` is gVisor."
    )
    readable: Texts = Field(
        default=(),
        strict=False,
        description="Folders that programs may read beside those of the system.",
    )
    memory: int = Field(
        default=512,
        ge=16,
        le=1_048_576,
        description="Megabytes that a program may use, unless its tool says less.",
    )
    processes: int = Field(
        default=64, ge=1, le=100_000, description="Processes that a program may have at a time."
    )


class McpOAuth(Part):
    """Tokens for a server that wants them: the client credentials grant, without a person."""

    client_id: str = Field(
        default="", description="Who we are where tokens are given; without one: off."
    )
    secret: str = Field(
        default="",
        description="The name of a secret of `[providers.http.secrets]`. Its hosts are those of "
        "whoever gives tokens: it goes to no other, and to the server only where that is listed.",
    )
    token_url: Annotated[str, AfterValidator(http_url)] = Field(
        default="", description="Where tokens are given; empty: where the server says."
    )
    scope: str = Field(
        default="", description="What to ask for; empty: what the server says it needs."
    )
    audience: str = Field(default="", description="Whom tokens are for, where that is asked for.")
    client_auth: Literal["", "basic", "body"] = Field(
        default="",
        description="Where the id and the secret stand; empty: as whoever gives tokens says.",
    )

    @model_validator(mode="after")
    def _says_who(self) -> Self:
        if (self.client_id == "") != (self.secret == "") or (
            not self.client_id and self.model_fields_set
        ):
            raise ValueError("client_id and secret say who we are, and both are needed")
        return self


class McpServer(Part):
    """A server whose tools are offered here."""

    command: Annotated[Texts, BeforeValidator(_command)] = Field(
        default=(),
        strict=False,
        description="The program that speaks MCP on its standard streams; "
        "with a slash in it, a path that starts from the folder of the settings.",
    )
    args: Texts = Field(default=(), strict=False, description="Its arguments.")
    env: Mapping[str, str] = Field(
        default_factory=dict, description="Variables it is given, which are no secrets."
    )
    secrets_env: Variables = Field(
        default_factory=dict,
        description="Variables it is given, each by the name of the variable that holds its value "
        "here.",
    )
    url: Annotated[str, AfterValidator(http_url)] = Field(
        default="", description="The address of a server that speaks Streamable HTTP."
    )
    headers_env: Variables = Field(
        default_factory=dict,
        description="Headers it is sent, each by the name of the variable that holds its value.",
    )
    oauth: McpOAuth = Field(default=McpOAuth.model_construct())
    timeout: Seconds = Field(
        default=30,
        gt=0,
        le=86_400,
        strict=False,
        description="Seconds a call may take, and seconds that a server which left a request "
        "without an answer may be silent when it is asked whether it is there.",
    )
    prefix: str | None = Field(
        default=None,
        description="What stands before the names of its tools instead of `mcp:NAME:`; an empty "
        "text serves them under their own.",
    )
    trust: Literal["none", "hints"] = Field(
        default="none",
        description="`hints` believes its word on which tools only read; else each asks a person.",
    )
    pin: bool = Field(
        default=True,
        description="Whether a tool that changes waits for an operator before it can be called.",
    )
    overlay: str = Field(
        default="", description="A file that sets effect, approval and limits of its tools."
    )
    when_down: Literal["mark", "hide"] = Field(
        default="mark", description="Whether its tools stay listed while it is away."
    )
    elicitation: bool = Field(
        default=False, description="Whether what it asks a person is put to the caller's client."
    )
    sampling: bool = Field(
        default=False, description="Whether it may use the model of the caller's client."
    )
    roots: bool = Field(
        default=False, description="Whether it may ask for the folders of the caller's client."
    )
    revision: Literal["auto", "2026-07-28", "2025-11-25"] = Field(
        default="auto",
        description="The revision of MCP to speak with it; `auto` takes the newest that it knows.",
    )
    readable: Texts = Field(
        default=(), strict=False, description="Folders that its program may read."
    )
    writable: Texts = Field(
        default=(), strict=False, description="Folders that its program may change."
    )
    hosts: Texts = Field(default=(), strict=False, description="Hosts that its program may reach.")
    enabled: bool = Field(default=True, description="Whether it is used at all.")

    @property
    def asks(self) -> frozenset[str]:
        """What it may ask of a caller's client."""
        asked = {"elicitation": self.elicitation, "sampling": self.sampling, "roots": self.roots}
        return frozenset(name for name, allowed in asked.items() if allowed)

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if bool(self.command) == bool(self.url):
            raise ValueError("a server has a command or a url, and not both")
        return self

    @model_validator(mode="after")
    def _shows_who_asks_in_one_way(self) -> Self:
        if not self.oauth.client_id:
            return self
        if not self.url:
            raise ValueError("oauth is for a server by its url; a program has secrets_env")
        if any(name.lower() == "authorization" for name in self.headers_env):
            raise ValueError("oauth sends Authorization itself; take it out of headers_env")
        return self


class Secret(Part):
    """A secret that a tool names, and never sees."""

    value_env: Variable = Field(description="The environment variable that holds it.")
    hosts: tuple[Annotated[str, AfterValidator(_place)], ...] = Field(
        strict=False, description="The hosts it may be sent to: `api.example.com`, `*.example.com`."
    )


class HttpTools(Part):
    """Tools that are requests."""

    default_timeout: Seconds = Field(
        default=30, gt=0, le=86_400, strict=False, description="Seconds that one request may take."
    )
    max_retries: int = Field(
        default=3, ge=0, le=10, description="How often a request that may be repeated is repeated."
    )
    secrets: Mapping[str, Secret] = Field(
        default_factory=dict, description="What tools may name in their `auth`."
    )


class CommandSecret(Part):
    """A secret that a command is handed as a variable."""

    value_env: Variable = Field(description="The environment variable that holds it.")
    tools: Texts = Field(
        strict=False, description="The tools whose command may be handed it, by name."
    )


class Commands(Part):
    """Tools that are commands."""

    secrets: Mapping[str, CommandSecret] = Field(
        default_factory=dict, description="What commands may name in their `secrets`."
    )


def _entity(given: str) -> str:
    if not _ENTITY.match(given) or "{tenant}" not in given:
        raise ValueError("write names with a : between them, and the tenant: {tenant}:{user}")
    return given


class Composio(Part):
    """Tools of Composio."""

    api_key_env: Variable = Field(
        default="", description="The environment variable that holds its key; without one: off."
    )
    url: Annotated[str, AfterValidator(http_url)] = Field(
        default="", description="Another address of its API than its own."
    )
    toolkits: Texts = Field(
        default=(), strict=False, description="Whose actions become tools, such as `github`."
    )
    entity: Annotated[str, AfterValidator(_entity)] = Field(
        default="{tenant}:{user}",
        description="Whose account is used: `{tenant}`, `{user}` and `{agent}` are filled in, with "
        "a `:`, `/` or `|` between them. Without the tenant, tenants would share accounts.",
    )


def _use(given: str) -> str:
    if given and not _FACTORY.match(given):
        raise ValueError("write MODULE:NAME, where NAME makes the provider")
    return given


class CustomProvider(Part):
    """A kind of tool that another package runs."""

    use: Annotated[str, AfterValidator(_use)] = Field(
        default="",
        description="`module:name` of what makes it; empty: the entry point of its name in the "
        "group `toolgate.providers`.",
    )
    settings: Mapping[str, str] = Field(
        default_factory=dict, description="What it is handed when it is made."
    )
    settings_env: Variables = Field(
        default_factory=dict,
        description="The same, each by the name of the variable that holds its value.",
    )


class Providers(Part):
    """How tools run that are not in this process."""

    http: HttpTools = Field(default_factory=HttpTools.model_construct)
    shell: Commands = Field(default_factory=Commands.model_construct)
    composio: Composio = Field(default_factory=Composio.model_construct)
    custom: Mapping[str, CustomProvider] = Field(
        default_factory=dict, description="Kinds of tools that other packages run, by name."
    )


Servers = Annotated[Mapping[str, McpServer], AfterValidator(_servers)]
OpenApis = Annotated[Mapping[str, OpenApi], AfterValidator(_named)]
