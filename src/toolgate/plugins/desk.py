"""What an operator sees of plugins, and agrees to."""

from typing import Any

from toolgate.catalog.plugins import Reloaded
from toolgate.errors import InvalidRequest
from toolgate.plugins import portable, record
from toolgate.plugins.keeper import Keeper
from toolgate.plugins.package import Refused
from toolgate.plugins.plugin import Plugin, State, Version
from toolgate.plugins.setup import settings_of
from toolgate.tenancy.names import nearest
from toolgate.tenancy.tenancy import Tenancy
from toolgate.upstreams.suspicion import shown

_MOST_DESCRIPTION = 500
_TWICE = "another folder has its name, and is left out"


class Desk:
    """The operators' side of the plugins."""

    def __init__(self, keeper: Keeper, tenancy: Tenancy) -> None:
        self._keeper = keeper
        self._tenancy = tenancy

    def rows(self) -> list[dict[str, Any]]:
        """Every plugin, live or not, by name."""
        rows = [_row(self._keeper.plugins[name]) for name in sorted(self._keeper.plugins)]
        for row in rows:
            if row["name"] in self._keeper.twice:
                row["problem"] = "; ".join(filter(None, (row["problem"], _TWICE)))
        return rows

    def left(self) -> list[str]:
        """Those that are not live here, though some version of them was agreed to.

        A process that has run since then may still have that one in use.
        """
        plugins = self._keeper.plugins
        return [name for name in sorted(plugins) if _is_left(plugins[name])]

    async def shown(self, name: str) -> dict[str, Any]:
        """One plugin as it is: its tools, and what of it waits, with what is different."""
        plugin = self._plugin(name)
        await self._keeper.look()
        version = plugin.live or plugin.newest
        waiting: dict[str, Any] | None = None
        if plugin.state is State.WAITING and plugin.newest is not None:
            waiting = await self._waiting(plugin, plugin.newest)
        return _row(plugin) | {
            "offers": _offers(plugin),
            "servers": [] if version is None else sorted(version.found.servers),
            "skills": [] if version is None else portable.skills(version.package),
            "settings": {} if version is None else _settings(version),
            "waiting": waiting,
        }

    async def approve(self, by: Tenancy, name: str, fingerprint: str) -> dict[str, Any]:
        """Agree to a plugin as it was shown; what has changed since is not what was looked at."""
        plugin = self._plugin(name)
        await self._keeper.look()
        newest = plugin.newest
        if plugin.state is not State.WAITING or newest is None:
            raise InvalidRequest(
                f"Nothing of plugin {name!r} waits for anybody; nothing was changed."
                + (f" It cannot be used: {plugin.problem}." if plugin.problem else "")
            )
        if newest.package.fingerprint != fingerprint:
            raise InvalidRequest(
                f"The plugin {name!r} has changed since it was looked at; nothing was changed. "
                f"Look again: toolgate plugins show {name}"
            )
        pins = record.pins_of(newest.package, newest.number)
        await by.pin_tools(f"{record.PREFIX}{name}", pins)
        await self._keeper.look()
        return _row(plugin)

    async def check_for_changes(self) -> list[str]:
        """The plugins whose files or settings are others than when they were last looked at."""
        return await self._keeper.changes()

    async def reload_changed(self) -> Reloaded:
        """Look at all of them, and load what has changed and is agreed to."""
        return await self._keeper.look(again=True)

    def _plugin(self, name: str) -> Plugin:
        found = self._keeper.plugins.get(name)
        if found is None:
            raise InvalidRequest(
                f"There is no plugin {name[:80]!r}." + nearest(name, self._keeper.plugins)
            )
        return found

    async def _waiting(self, plugin: Plugin, newest: Version) -> dict[str, Any]:
        agreed = await self._tenancy.pinned(f"{record.PREFIX}{plugin.plugin}")
        last = agreed.get(record.LAST)
        return {
            "fingerprint": newest.package.fingerprint,
            "version": shown(newest.number),
            "is_new": last is None,
            "lines": record.differences(last, newest.package),
        }


def _is_left(plugin: Plugin) -> bool:
    return plugin.live is None and plugin.state is not State.OFF and bool(plugin.agreed)


def _offers(plugin: Plugin) -> list[str]:
    """Its tools; of one that is not live, those that it would have."""
    if plugin.live is not None or plugin.newest is None:
        return [spec.name for spec in plugin.offered]
    manifest = plugin.newest.manifest
    return [] if manifest is None else [shown(name) for name in manifest.names]


def _row(plugin: Plugin) -> dict[str, Any]:
    version = plugin.live or plugin.newest
    return {
        "name": plugin.plugin,
        "state": str(plugin.state),
        "version": "" if version is None else shown(version.number),
        "description": "" if version is None else shown(version.description, _MOST_DESCRIPTION),
        "tools": 0 if plugin.live is None else len(plugin.live.specs),
        "fingerprint": "" if plugin.live is None else plugin.live.package.fingerprint,
        "problem": plugin.problem,
    }


def _settings(version: Version) -> dict[str, str]:
    """Which settings there are and whether the operator has set them; never their values."""
    if version.manifest is None:
        return {}
    try:
        known = settings_of(version.manifest, version.setup, "")
    except Refused:
        return {}
    return {name: "set" if name in version.setup.custom_config else "default" for name in known}
