"""What the built-in tools are given to work with."""

import os
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from typing import NamedTuple

from toolgate import upkeep
from toolgate.catalog.plugins import Reloaded
from toolgate.kinds import Kinds
from toolgate.net.client import HttpClient
from toolgate.net.signature import signing_secret
from toolgate.premises import cache_of
from toolgate.recording import Records
from toolgate.runtime import Rest
from toolgate.settings.settings import Settings
from toolgate.spec.tool import ToolSpec
from toolgate.store.hold import Hold
from toolgate.tools.agent.rounds import Rounds
from toolgate.tools.means import May, Means, Perform, Tell
from toolgate.tools.provider import BuiltinProvider
from toolgate.tools.table import table
from toolgate.tools.working.pool import Workers

_OURS = "builtin"


class Later(NamedTuple):
    """What is there only once the house stands; it is asked when a tool runs."""

    may: Callable[[], May]
    perform: Callable[[], Perform]
    tell: Callable[[], Tell]
    reload_plugins: Callable[[], Awaitable[Reloaded]]


def builtin(
    settings: Settings,
    kinds: Kinds,
    client: HttpClient,
    kept: Records,
    later: Later,
    stack: AsyncExitStack,
) -> BuiltinProvider:
    """The provider of built-in tools; nothing of it runs until one is called."""
    _signs(settings)
    workers = Workers(kinds.sandbox, kept=cache_of(settings))
    stack.push_async_callback(workers.close)
    return BuiltinProvider(
        Means(
            settings=settings.tools,
            root=settings.root,
            client=client,
            sandbox=kinds.sandbox,
            require_sandbox=kinds.require_sandbox,
            workers=workers,
            shelf=kept.shelf,
            outputs=kept.outputs,
            journal=kept.journal,
            may=later.may,
            perform=later.perform,
            reload_plugins=later.reload_plugins,
            tell=later.tell,
            protected=kinds.premises.own,
            hidden=kinds.premises.unseen,
            environment=os.environ,
        )
    )


def _signs(settings: Settings) -> None:
    """What agents tell is signed as events are. Where there is no secret yet, they are told so."""
    agent = settings.tools.agent
    if agent.notify_url and os.environ.get(agent.notify_secret_env):
        signing_secret("tools.agent.notify_secret_env", agent.notify_secret_env, os.environ)


def programs_among(specs: Iterable[ToolSpec]) -> list[str]:
    """The built-in tools among these that run programs, and so need a sandbox."""
    rows = table()
    ours = ((one.name, one.config.value().get("builtin")) for one in specs if one.provider == _OURS)
    return sorted(name for name, row in ours if row in rows and rows[row].runs_programs)


def extras_for(names: Iterable[str]) -> list[str]:
    """What these built-in tools need installed."""
    rows = table()
    return sorted({rows[name].extra for name in names if name in rows} - {""})


def keep_appointments(
    provider: BuiltinProvider, hold: Hold, errands: list[Rest], stack: AsyncExitStack
) -> None:
    """What agents have scheduled is run from now on, until the house is told to rest."""
    if provider.means.settings.agent.scheduler:
        rounds = Rounds(provider.means, lambda: hold.why)
        errands.append(rounds.rest)
        stack.push_async_callback(rounds.close)
        upkeep.keep_doing(rounds.run(), stack)
