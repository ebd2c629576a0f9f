"""`/v1/admin/plugins`: plugins, what of them waits, and what is agreed to."""

from typing import Any

from toolgate.server.admin.desk import Desk, Signed
from toolgate.server.answers import Shape
from toolgate.server.fields import Nothing


class AgreedPlugin(Signed, kw_only=True):
    """What is agreed to, by the fingerprint that was looked at."""

    fingerprint: str


class Plugin(Shape, kw_only=True):
    """One plugin: how it is, and the fingerprint of the code that is in use."""

    name: str
    state: str
    version: str
    description: str
    tools: int
    fingerprint: str
    problem: str


class Plugins(Shape, kw_only=True):
    """By name."""

    plugins: list[Plugin]


class PluginWaiting(Shape, kw_only=True):
    """A version that waits for an operator, and how it differs from the last one agreed to."""

    fingerprint: str
    version: str
    is_new: bool
    lines: list[str]


class PluginShown(Plugin, kw_only=True):
    """One plugin whole. Of its settings the names, and whether they are set."""

    offers: list[str]
    servers: list[str]
    skills: list[str]
    settings: dict[str, str]
    waiting: PluginWaiting | None


class PluginsReloaded(Shape, kw_only=True):
    """What a look at them changed."""

    loaded: list[str]
    waiting: list[str]
    gone: list[str]
    broken: dict[str, str]


async def list_plugins(desk: Desk, _: Nothing) -> Any:
    """`GET plugins`: every plugin, and how it is."""
    return {"plugins": desk.gate.plugins.rows()}


async def show_plugin(desk: Desk, _: Nothing) -> Any:
    """`GET plugins/{name}`: its tools, and what of it waits, with what is different."""
    [name] = desk.names
    return await desk.gate.plugins.shown(name)


async def approve_plugin(desk: Desk, given: AgreedPlugin) -> Any:
    """`POST plugins/{name}/approve` `{fingerprint}`: agree to what was shown; it is loaded then."""
    [name] = desk.names
    return await desk.gate.plugins.approve(desk.tenancy, name, given.fingerprint)


async def reload_plugins(desk: Desk, _: Signed) -> Any:
    """`POST plugins`: look at all of them, and load what has changed and is agreed to."""
    return (await desk.gate.plugins.reload_changed()).fields()
