"""One plugin as a source of tools: what is live of it, and what waits or is broken."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from toolgate import clock
from toolgate.catalog.plugins import SOURCE
from toolgate.errors import ToolgateError
from toolgate.executor.provider import Provider
from toolgate.plugins import manifest as manifests
from toolgate.plugins import modules, offer, portable, record
from toolgate.plugins.copies import copied
from toolgate.plugins.manifest import Manifest
from toolgate.plugins.needs import missing
from toolgate.plugins.package import Changing, Package, Refused, Stamp, stamp, taken
from toolgate.plugins.portable import Found, Places, Portable
from toolgate.plugins.setup import Setup, read_setup
from toolgate.providers.threads import NotBegun, Threads
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.tenancy import Tenancy

log = logging.getLogger("toolgate")
# Seconds that a plugin's modules may take to load.
_PATIENCE = 30.0
# A version that was replaced is kept for calls that were granted on it: so many, or so long.
_KEPT = 16
_KEPT_NS = 3_600 * 10**9
_NO_SERVERS = Found({})
_NO_PROVIDERS: Mapping[str, Provider] = MappingProxyType({})
_BY = "toolgate"


class State(StrEnum):
    """How a plugin is."""

    LIVE = "live"
    WAITING = "waiting"
    BROKEN = "broken"
    OFF = "off"


class Around(NamedTuple):
    """What a plugin stands in: whose word holds, and what there is beside it."""

    tenancy: Tenancy
    threads: Threads
    trusted: Collection[str]
    # Of a plugin, the tools of everybody else: each by whose it is.
    taken: Callable[[str], Mapping[str, str]]
    # Of a kind and a plugin, who else runs that kind.
    holder: Callable[[str, str], str]


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """One that was read: what it says of itself, and what it would offer."""

    package: Package
    manifest: Manifest | None
    portable: Portable | None
    setup: Setup
    code: str = ""
    specs: tuple[ToolSpec, ...] = ()
    found: Found = _NO_SERVERS
    providers: Mapping[str, Provider] = _NO_PROVIDERS

    @property
    def number(self) -> str:
        """The version as its author counts."""
        own = self.manifest or self.portable
        return "" if own is None else own.version

    @property
    def description(self) -> str:
        """What it is for."""
        own = self.manifest or self.portable
        return "" if own is None else own.description


class Plugin:
    """The last version that loaded stays live until a newer one is agreed to and loads too."""

    required = False
    # The house is well without it.
    foreign = True

    def __init__(self, root: Path, settings: Path, data: Path, around: Around) -> None:
        """`settings` is its settings file, `data` the folder where its programs keep things."""
        self.plugin = root.name
        self.name = f"{SOURCE}{root.name}"
        self.state = State.BROKEN
        self.problem = ""
        self.live: Version | None = None
        # What was read last, live or not.
        self.newest: Version | None = None
        self.root = root
        self._settings = settings
        self._data = data
        self._around = around
        self._seen: tuple[Stamp, frozenset[str]] | None = None
        # As the settings file was read last.
        self._set: Setup | None = None
        self._held: tuple[ToolSpec, ...] = ()
        self._old: deque[tuple[str, int]] = deque()

    async def load(self) -> Sequence[ToolSpec]:
        """What it offers now. Nothing is looked at for that."""
        return self.offered

    @property
    def offered(self) -> tuple[ToolSpec, ...]:
        """The live tools; where none are, those that wait, by name."""
        return self._held if self.live is None else self.live.specs

    @property
    def agreed(self) -> frozenset[str]:
        """The fingerprints that an operator has agreed to."""
        pins = self._around.tenancy.world.servers.pins
        return frozenset(pins.get(f"{record.PREFIX}{self.plugin}", {}).values())

    async def is_changed(self) -> bool:
        """Whether its files or its settings are others than when it was last looked at."""
        return self._seen is None or self._seen[0] != await asyncio.to_thread(self._stamp)

    async def look(self, *, again: bool = False) -> bool:
        """Take over what is new; whether anything was looked at. `again`: also what is broken."""
        now = await asyncio.to_thread(self._stamp), self.agreed
        if now == self._seen and not (again and self.state is State.BROKEN):
            return False
        self._seen = now
        try:
            await self._judge()
        except Changing as error:
            self._seen = None
            await self._broken(str(error))
        except Refused as error:
            await self._broken(str(error))
        except Exception as error:
            # One folder must not keep the house from opening, whatever is in it.
            log.debug("plugin %s cannot be looked at", self.plugin, exc_info=error)
            await self._broken(f"it cannot be looked at ({type(error).__name__})")
        return True

    def close(self) -> None:
        """Its code is not needed any more."""
        if self.live is not None:
            modules.leave(self.live.code)
        for code, _when in self._old:
            modules.leave(code)
        self.live = None
        self._old.clear()

    async def _judge(self) -> None:
        self._held = ()
        self._set = None
        self._set = await asyncio.to_thread(read_setup, self._settings)
        version = await asyncio.to_thread(self._read, self._set)
        self.newest = version
        if not _is_enabled(version):
            self._replace(None)
            self.state, self.problem = State.OFF, ""
            return
        package = version.package
        if self.live is not None and _is_same(self.live, version):
            self.newest, self.state, self.problem = self.live, State.LIVE, _notes(self.live)
            return
        specs, load = self._offers(version)
        self._refuse_names(version, specs)
        is_agreed = package.fingerprint in self.agreed
        if not is_agreed and not self._is_trusted():
            await self._wait(specs)
            return
        try:
            version = await self._usable(version, specs, load)
        except Refused as error:
            self._hold(specs, f"its plugin cannot be used: {error}")
            raise
        self._replace(version)
        self.newest = version
        self.state, self.problem = State.LIVE, _notes(version)
        if not is_agreed:
            await self._record(version)

    def _offers(self, version: Version) -> tuple[tuple[ToolSpec, ...], offer.Load]:
        """Its tools under its settings, and what loads their code."""
        if version.manifest is None:
            return (), _nothing
        package = version.package
        code = modules.package_of(self.plugin, package.fingerprint)
        return offer.specs_of(version.manifest, version.setup, package, code)

    async def _usable(
        self, version: Version, specs: tuple[ToolSpec, ...], load: offer.Load
    ) -> Version:
        """The version with its code loaded and its servers read, or `Refused`."""
        self._refuse_missing(version)
        package, found = version.package, _NO_SERVERS
        providers = await self._loaded(package, load)
        if version.portable is not None:
            found = await asyncio.to_thread(
                portable.read_servers,
                package,
                partial(self._places, package),
                version.setup.server_overrides,
            )
        code = modules.package_of(self.plugin, package.fingerprint)
        return msgspec.structs.replace(
            version, code=code, specs=specs, found=found, providers=providers
        )

    async def _follow(self) -> str:
        """Let what the operator sets hold for the live version; why it cannot, or nothing.

        Code waits for somebody, settings do not: a tool that is switched off is off at once, also
        while a newer version waits or is broken.
        """
        live, now = self.live, self._set
        if live is None or now is None or live.setup == now:
            return ""
        meant = msgspec.structs.replace(live, setup=now)
        if not _is_enabled(meant):
            self._replace(None)
            return ""
        try:
            self._replace(await self._usable(meant, *self._offers(meant)))
        except Refused as error:
            return f"; it keeps its settings of before: {error}"
        except Exception as error:
            # As for a new version: it is wrong alone.
            log.debug("plugin %s cannot take its settings", self.plugin, exc_info=error)
            return f"; it keeps its settings of before ({type(error).__name__})"
        return ""

    def _read(self, setup: Setup) -> Version:
        if not manifests.NAME.match(self.plugin):
            raise Refused("its folder has no name as plugins have: letters, digits, _ . and -")
        package = taken(self.root)
        own, other = package.files.get(manifests.FILE), package.files.get(portable.FILE)
        if own is None and other is None:
            raise Refused(f"it has no {manifests.FILE} and no {portable.FILE}")
        return Version(
            package=package,
            manifest=None if own is None else manifests.read_manifest(own, self.plugin),
            portable=None if other is None else portable.read_portable(other, self.plugin),
            setup=setup,
        )

    def _stamp(self) -> Stamp:
        try:
            found = self._settings.stat()
            own = ("", found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
        except OSError:
            own = ("", 0, 0, 0, 0)
        return (own, *stamp(self.root))

    def _is_trusted(self) -> bool:
        return not {self.plugin, "*"}.isdisjoint(self._around.trusted)

    def _refuse_names(self, version: Version, specs: Sequence[ToolSpec]) -> None:
        for kind in version.manifest.providers if version.manifest else ():
            whose = self._around.holder(kind, self.plugin)
            if whose:
                raise Refused(f"its provider {kind!r} is called as {whose}; rename it")
        others = self._around.taken(self.plugin)
        for spec in specs:
            if spec.name in others:
                raise Refused(
                    f"its tool {spec.name!r} is called as {others[spec.name]} is; rename it"
                )

    def _refuse_missing(self, version: Version) -> None:
        lacks = missing(version.manifest.dependencies) if version.manifest else []
        if lacks:
            listed = ", ".join(lacks)
            raise Refused(f"it needs {listed}, not installed here; install that, and reload it")

    async def _loaded(self, package: Package, load: offer.Load) -> Mapping[str, Provider]:
        code = modules.enter(self.plugin, package)
        try:
            async with asyncio.timeout(_PATIENCE):
                return await self._around.threads.run(load, of=self.plugin)
        except TimeoutError:
            modules.leave(code)
            raise Refused(f"it was not loaded within {_PATIENCE:g} seconds") from None
        except NotBegun:
            modules.leave(code)
            raise Refused("versions before it are still loading; restart, or mend them") from None
        except (Exception, SystemExit) as error:  # noqa: BLE001  a module can raise anything
            modules.leave(code)
            raise Refused(offer.told(error, package)) from None
        except BaseException:
            modules.leave(code)
            raise

    def _places(self, package: Package) -> Places:
        """What was agreed to is what runs, also when a program is started anew much later."""
        self._data.mkdir(parents=True, exist_ok=True)
        return Places(code=copied(package, self._data.parent), data=self._data.resolve())

    async def _wait(self, specs: Sequence[ToolSpec]) -> None:
        kept = await self._follow()
        what = "a newer version" if self.live else "it"
        stays = f"; the one before stays live{kept}" if self.live else ""
        look = f"look at it: toolgate plugins show {self.plugin}"
        self.state, self.problem = State.WAITING, f"{what} waits for an operator{stays}; {look}"
        self._hold(specs, f"its plugin waits for an operator; {look}")

    def _hold(self, specs: Sequence[ToolSpec], reason: str) -> None:
        """Of a plugin that nobody has agreed to, nothing is in the catalog: it takes no name."""
        if not self.agreed and not self._is_trusted():
            return
        self._held = tuple(offer.held(spec.name, self.plugin, reason) for spec in specs)

    async def _broken(self, why: str) -> None:
        kept = await self._follow()
        stays = f"; the version before stays live{kept}" if self.live else ""
        before, told = self.problem, f"{why}{stays}"
        self.state, self.problem = State.BROKEN, told
        if told != before:
            log.warning("plugin %s: %s", self.plugin, told)

    def _replace(self, version: Version | None) -> None:
        """Calls that were granted on the old one finish on it."""
        now = clock.monotonic_ns()
        if self.live is not None:
            self._old.append((self.live.code, now))
        self.live = version
        while len(self._old) > _KEPT and now - self._old[0][1] > _KEPT_NS:
            modules.leave(self._old.popleft()[0])

    async def _record(self, version: Version) -> None:
        """What is trusted is on record too."""
        pins = record.last_of(version.package, version.number)
        by = self._around.tenancy.by(_BY, "trusted by the settings")
        try:
            await by.pin_tools(f"{record.PREFIX}{self.plugin}", pins)
        except ToolgateError as error:
            log.warning("plugin %s is not on record: %s", self.plugin, error)
        if self._seen is not None:
            self._seen = self._seen[0], self.agreed


def _is_enabled(version: Version) -> bool:
    if version.setup.enabled is not None:
        return version.setup.enabled
    return version.manifest is None or version.manifest.enabled


def _is_same(live: Version, version: Version) -> bool:
    """Whether it is the very one that is live: put back, or agreed to once more."""
    same = live.package.fingerprint == version.package.fingerprint
    return same and live.setup == version.setup


def _notes(version: Version) -> str:
    own = () if version.portable is None else version.portable.notes
    return "; ".join((*own, *version.found.notes))


def _nothing() -> Mapping[str, Provider]:
    """A plugin without code of ours."""
    return _NO_PROVIDERS
