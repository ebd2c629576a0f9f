"""What runs each kind of tool, as the settings say; made when the first tool is of that kind."""

import os
from collections.abc import Container, Iterable, Mapping

from toolgate.catalog.source import Source
from toolgate.executor.provider import Provider
from toolgate.ground import Ground
from toolgate.plugins.brought import Brought
from toolgate.premises import Premises, premises, room, stored
from toolgate.providers.composio.client import Client
from toolgate.providers.composio.provider import ComposioProvider
from toolgate.providers.plugged import PluggedProviders
from toolgate.providers.shell.places import Surroundings
from toolgate.providers.shell.provider import Chosen, ShellProvider
from toolgate.providers.shell.secret import Secrets
from toolgate.settings.settings import Settings
from toolgate.sources.composio import ComposioSource
from toolgate.spec.tool import ToolSpec


class Kinds:
    """Providers that most gates do not need, found by name."""

    def __init__(self, settings: Settings, handed: Container[str] = ()) -> None:
        """`handed`: the kinds that a program brings itself."""
        self._settings = settings
        self.brought = Brought(
            lambda kind: kind in handed or self._plugged.find(kind) is not None,
        )
        self.premises = premises(settings)
        self._plugged = PluggedProviders(settings.providers.custom, os.environ)
        secrets = Secrets(settings.providers.shell.secrets, os.environ)
        self._shell = ShellProvider(_around(settings, self.premises), self.sandbox, secrets)
        named = settings.providers.composio
        key = os.environ.get(named.api_key_env, "") if named.api_key_env else ""
        self._actions = Client(key, named.url) if key else None
        self._composio = ComposioProvider(
            self._actions, key=key, pattern=named.entity, variable=named.api_key_env
        )

    def find(self, kind: str) -> Provider | None:
        """What runs tools of this kind, or nothing."""
        own: Mapping[str, Provider] = {"composio": self._composio, "shell": self._shell}
        return own.get(kind) or self._plugged.find(kind) or self.brought.find(kind)

    def sources(self) -> list[Source]:
        """Tools that come with a kind."""
        named = self._settings.providers.composio
        if not named.toolkits or not named.api_key_env:
            return []
        return [ComposioSource(self._actions, named.toolkits, variable=named.api_key_env)]

    async def prepare(self, specs: Iterable[ToolSpec]) -> None:
        """Find out what these tools need, before it is asked whether they can be used."""
        if any(spec.provider == "shell" for spec in specs):
            await self._shell.prepare()

    async def sandbox(self) -> Chosen:
        """What programs run in, of whichever kind of tool."""
        from toolgate.net.guard import Guard  # noqa: PLC0415  only where programs run
        from toolgate.sandbox.choosing import chosen  # noqa: PLC0415

        return await chosen(
            self._settings.sandbox,
            protected=tuple(map(str, self.premises.own)),
            hidden=self._hidden(),
            guard=Guard(self._settings.net.allow),
        )

    def require_sandbox(self) -> None:
        """Refuse where it is known without a try that none holds: nobody is asked in vain."""
        from toolgate.sandbox.choosing import NoSandbox, known_refusal  # noqa: PLC0415  as above

        if why := known_refusal(self._settings.sandbox):
            raise NoSandbox(why)

    async def ground(self) -> Ground:
        """What the house stands on. A sandbox is tried once, by whoever asks first."""
        found = await self.sandbox()
        return Ground(
            free=room(self._settings),
            sandbox=found.name,
            refusal=found.refusal,
            is_named=self._settings.sandbox.kind != "auto",
        )

    def _hidden(self) -> tuple[str, ...]:
        """The store in any case; of the rest, what is there to be hidden."""
        always = stored(self._settings)
        return tuple(str(path) for path in self.premises.secret if path in always or path.is_dir())

    async def close(self) -> None:
        """Nothing runs any more."""
        self._composio.close()
        await self._plugged.close()
        await self.brought.close()


def _around(settings: Settings, found: Premises) -> Surroundings:
    return Surroundings(
        root=settings.root,
        own=found.own,
        secret=found.secret,
        readable=settings.sandbox.readable,
        is_here=settings.sandbox.kind != "container",
    )
