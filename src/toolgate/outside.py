"""What others serve and bring, as the settings name it: MCP servers, plugins, the one client."""

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

from toolgate import upkeep
from toolgate.catalog.catalog import Catalog
from toolgate.net.client import HttpClient
from toolgate.net.guard import Guard
from toolgate.plugins.brought import Brought
from toolgate.plugins.desk import Desk as PluginDesk
from toolgate.plugins.keeper import Keeper as Plugins
from toolgate.premises import roots_of
from toolgate.providers.http.secret import Secrets
from toolgate.sandbox.sandbox import Sandbox
from toolgate.settings.outward import McpServer
from toolgate.settings.secrets import known_secrets
from toolgate.settings.settings import Settings
from toolgate.sources.mcp.admission import Admission
from toolgate.sources.mcp.review import Desk
from toolgate.sources.mcp.servers import Servers
from toolgate.spec.redactor import Redactor
from toolgate.tenancy.tenancy import Tenancy
from toolgate.upstreams.member import Member
from toolgate.upstreams.review import Review
from toolgate.upstreams.upstream import Upstream

_NO_PROGRAM = "It is no program."


def client(settings: Settings, stack: AsyncExitStack) -> HttpClient:
    """The one client of the house. What the settings name is reached by `client.named(url)`."""
    made = HttpClient(Guard(settings.net.allow))
    stack.push_async_callback(made.close)
    return made


@asynccontextmanager
async def fetching(
    *named: str, allow: Sequence[str] = ()
) -> AsyncGenerator[Callable[[str, int], Awaitable[tuple[int, bytes]]]]:
    """The one HTTP client, for a door that has to ask who signs its callers' tokens.

    `named` are the issuer's addresses in the settings; where its metadata leads on from there is
    the guard's to decide.
    """
    made = HttpClient(Guard(allow).named(*named))

    async def fetch(url: str, most: int) -> tuple[int, bytes]:
        answer = await made.get(url, headers={"Accept": "application/json"}, most=most)
        return answer.status, answer.body

    try:
        yield fetch
    finally:
        await made.close()


class Plugged(NamedTuple):
    """What keeps the plugins, and what operators see of them."""

    keeper: Plugins
    desk: PluginDesk


class Way(NamedTuple):
    """How servers are reached; `asks`: whether they are at all. `plugins` bring some."""

    client: HttpClient
    sandbox: Callable[[], Awaitable[Sandbox]]
    members: dict[str, Member]
    redactor: Redactor
    plugins: Plugins
    asks: bool = True


async def servers(
    settings: Settings,
    catalog: Catalog,
    tenancy: Tenancy,
    way: Way,
    stack: AsyncExitStack,
) -> Review:
    """The MCP servers of the settings and of the store. One that is away stops no start."""

    secrets = Secrets(settings.providers.http.secrets, os.environ)

    async def make(name: str, given: McpServer) -> Upstream:
        way.redactor.learn(known_secrets(given, os.environ))
        from toolgate.sandbox.choosing import Refusing  # noqa: PLC0415  only where one is used
        from toolgate.upstreams.dialing import connected  # noqa: PLC0415  as above

        # Paths of the settings start from the folder that those are in.
        rooted = {
            field: tuple(str(settings.path(one)) for one in getattr(given, field))
            for field in ("readable", "writable")
        }
        if given.command and "/" in given.command[0]:
            program = str(settings.path(given.command[0]))
            rooted["command"] = (program, *given.command[1:])
        return connected(
            name,
            given.model_copy(update=rooted),
            client=way.client,
            sandbox=await way.sandbox() if given.command else Refusing(_NO_PROGRAM),
            environ=os.environ,
            # An address that was added is reached as any other: where [net] allow says so.
            is_named=name in settings.mcp.servers,
            secret=secrets.sent_to,
        )

    mcp = settings.mcp
    found = Servers(
        mcp.servers,
        catalog,
        tenancy,
        members=way.members,
        make=make,
        path=settings.path,
        admission=Admission(
            mcp.added_env,
            mcp.added_roots,
            mcp.added_hosts,
            settings.path,
            way.client.guard,
            roots_of(settings),
        ),
        asks=way.asks,
        beside=way.plugins.servers,
    )
    stack.push_async_callback(found.close)
    await found.follow()
    way.plugins.on_servers = found.follow
    upkeep.keep_doing(found.run(), stack)
    return Desk(found, tenancy)


async def plugins(
    settings: Settings,
    catalog: Catalog,
    tenancy: Tenancy,
    brought: Brought,
    stack: AsyncExitStack,
) -> Plugged:
    """The plugins in their folders. One that is wrong stops no start."""
    given = settings.plugins
    keeper = Plugins(
        [settings.path(one) for one in settings.tools.plugins],
        catalog,
        tenancy,
        settings=settings.path(given.settings),
        data=settings.path(given.data),
        brought=brought,
        trusted=given.trusted,
    )
    stack.callback(keeper.close)
    await keeper.look()
    if given.refresh:
        upkeep.keep_doing(keeper.run(given.refresh), stack)
    return Plugged(keeper, PluginDesk(keeper, tenancy))
