"""All plugins of the house: found in their folders, looked at again and again."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from toolgate.catalog.catalog import Catalog
from toolgate.catalog.plugins import Reloaded
from toolgate.errors import CatalogError, ToolgateError
from toolgate.plugins import manifest, portable
from toolgate.plugins.brought import Brought
from toolgate.plugins.offer import PROVIDER
from toolgate.plugins.plugin import Around, Plugin, State
from toolgate.providers.threads import Threads
from toolgate.settings.outward import McpServer
from toolgate.tenancy.tenancy import Tenancy
from toolgate.tools.table import table

log = logging.getLogger("toolgate")
# Of plugins that load at a time, and of loads of one plugin that never ended.
_THREADS = 8
_STUCK = 3


async def _nobody() -> None:
    """Nobody has to be told."""


class Keeper:
    """Keeps the catalog in step with the folders. A plugin that is wrong is wrong alone."""

    def __init__(
        self,
        folders: Sequence[Path],
        catalog: Catalog,
        tenancy: Tenancy,
        *,
        settings: Path,
        data: Path,
        brought: Brought,
        trusted: Sequence[str] = (),
    ) -> None:
        """`settings`: the folder of their settings files; `data`: where their programs write."""
        self.plugins: dict[str, Plugin] = {}
        # Folders that have the name of another one.
        self.twice: tuple[str, ...] = ()
        self.on_servers: Callable[[], Awaitable[None]] = _nobody
        self._folders = tuple(folders)
        self._catalog = catalog
        self._settings = settings
        self._data = data
        self._threads = Threads(most=_THREADS, each=_STUCK)
        self._around = Around(tenancy, self._threads, tuple(trusted), self._taken, brought.holder)
        self._brought = brought
        self._looking = asyncio.Lock()

    async def look(self, *, again: bool = False) -> Reloaded:
        """Take over what has changed. `again`: try also what was broken, though nothing changed."""
        async with self._looking:
            servers = self.servers()
            found = await asyncio.to_thread(self._found)
            gone = [one for one in self.plugins if found.get(one) != self.plugins[one].root]
            for name in gone:
                old = self.plugins.pop(name)
                self._brought.take(name, {})
                await self._catalog.drop(old)
                old.close()
            loaded: list[str] = []
            looked: list[str] = []
            for name in sorted(found):
                plugin = self.plugins.get(name) or self._new(name, found[name])
                before = plugin.live
                if not await plugin.look(again=again):
                    continue
                looked.append(name)
                # Before the catalog asks which tools can be used.
                self._brought.take(name, plugin.live.providers if plugin.live else {})
                await self._ask(plugin)
                if plugin.live is not None and plugin.live is not before:
                    loaded.append(name)
            if self.servers() != servers:
                await self.on_servers()
            states = {name: self.plugins[name].state for name in looked}
            return Reloaded(
                loaded=tuple(loaded),
                waiting=tuple(one for one in looked if states[one] is State.WAITING),
                gone=tuple(gone),
                broken={
                    one: self.plugins[one].problem for one in looked if states[one] is State.BROKEN
                },
            )

    async def changes(self) -> list[str]:
        """Those that are new, gone, or others than when they were last looked at."""
        found = await asyncio.to_thread(self._found)
        changed = {*found} ^ {*self.plugins}
        for name, plugin in list(self.plugins.items()):
            if name in found and (found[name] != plugin.root or await plugin.is_changed()):
                changed.add(name)
        return sorted(changed)

    async def run(self, every: float) -> None:
        """Look until the house closes."""
        while True:
            await asyncio.sleep(every)
            try:
                await self.look()
            except ToolgateError as error:
                log.warning("plugins could not be looked at: %s", error)
            except Exception as error:  # noqa: BLE001  one folder must not end the watch over all
                log.error("plugins could not be looked at (%s)", type(error).__name__)  # noqa: TRY400

    def servers(self) -> Mapping[str, McpServer]:
        """The MCP servers that live plugins bring."""
        return {
            name: one
            for plugin in self.plugins.values()
            if plugin.live is not None
            for name, one in plugin.live.found.servers.items()
        }

    def close(self) -> None:
        """No more code is loaded, and what was is not needed."""
        for plugin in self.plugins.values():
            plugin.close()
        self._threads.close()

    def _new(self, name: str, root: Path) -> Plugin:
        settings, data = self._settings / f"{name}.json", self._data / name
        made = self.plugins[name] = Plugin(root, settings, data, self._around)
        return made

    async def _ask(self, plugin: Plugin) -> None:
        try:
            await self._catalog.ask(plugin)
        except CatalogError as error:
            log.warning("the catalog stays as it was: %s", error)

    def _found(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        twice: list[str] = []
        for folder in self._folders:
            try:
                paths = sorted(folder.iterdir())
            except OSError:
                # It may be made later; one that cannot be read has nothing that could be shown.
                continue
            for path in paths:
                name = path.name
                if name[0] in "._" or not _is_plugin(path):
                    continue
                if name in found:
                    twice.append(name)
                else:
                    found[name] = path
        self.twice = tuple(twice)
        return found

    def _taken(self, plugin: str) -> Mapping[str, str]:
        taken = dict.fromkeys(table(), "a built-in tool")
        for spec in self._catalog.current.specs.values():
            if spec.origin.kind != PROVIDER:
                taken.setdefault(spec.name, f"a tool of {spec.origin}")
        for name, other in self.plugins.items():
            if name != plugin:
                taken.update(dict.fromkeys((one.name for one in other.offered), f"one of {name}"))
        return taken


def _is_plugin(path: Path) -> bool:
    return any(os.path.lexists(path / file) for file in (manifest.FILE, portable.FILE))
