"""What `/v1/admin/servers…` gives, as shapes."""

from toolgate.server.answers import Shape


class McpServer(Shape, kw_only=True):
    """One server: where it comes from, where it is, and how it is doing."""

    name: str
    origin: str
    where: str
    state: str
    tools: int
    held: int
    problem: str


class McpServerShown(McpServer, kw_only=True):
    """One server whole: how it calls itself, what waits, and its program's last complaints."""

    server: dict[str, str]
    waiting: list[str]
    last_words: list[str]


class McpServers(Shape, kw_only=True):
    """By name."""

    servers: list[McpServer]


class McpServerPut(Shape, kw_only=True):
    """A server that is used from now on."""

    name: str


class McpServerTested(Shape, kw_only=True):
    """What a server said when it was asked, and which of its tools wait."""

    name: str
    ok: bool
    problem: str
    server: dict[str, str]
    tools: int
    held: list[str]


class Waiting(Shape, kw_only=True):
    """A tool that waits: why, and line by line how it differs from what was agreed to."""

    tool: str
    shown: str
    reason: str
    fingerprint: str
    is_new: bool
    lines: list[str]


class McpServerWaiting(Shape, kw_only=True):
    """What of a server waits for an operator."""

    name: str
    tools: list[Waiting]


class McpServerApproved(Shape, kw_only=True):
    """What was agreed to."""

    name: str
    approved: list[str]
