"""The first words with a server: which revision it speaks, and what it has."""

from collections.abc import Mapping
from typing import Any, cast

from toolgate import protocol
from toolgate.protocol import HEADER_MISMATCH, UNSUPPORTED_VERSION
from toolgate.upstreams import revision
from toolgate.upstreams.failures import AwayError
from toolgate.upstreams.message import FaultError, Json
from toolgate.upstreams.wire import Welcome, Wire

DISCOVER = "server/discover"
# Only a server of the newer revision has these faults.
_NEWER = frozenset({UNSUPPORTED_VERSION, HEADER_MISMATCH})


async def greeted(
    wire: Wire,
    *,
    seconds: float,
    patience: float,
    asks: frozenset[str],
    is_modern: bool | None,
) -> Welcome:
    """Speak to it first. `is_modern` is what it was found to be before, where that is known.

    The newer revision is tried first; a server that says nothing to it for `patience` seconds is
    asked the older way. Whatever is no sign of it leads to the older handshake.
    """
    wire.adopt(_unknown(is_modern=True))
    if is_modern is not False:
        welcome = await _discovered(wire, patience)
        if welcome is not None:
            wire.adopt(welcome)
            return welcome
    try:
        welcome = await _initialized(wire, seconds, asks=asks)
    except FaultError as error:
        if error.fault.code not in _NEWER:
            raise
        # It speaks the newer one after all: its first answer came too late, or it has changed.
        wire.adopt(_unknown(is_modern=True))
        again = await _discovered(wire, seconds)
        if again is None:
            raise
        welcome = again
    wire.adopt(welcome)
    if not welcome.is_modern:
        await wire.tell("notifications/initialized")
    return welcome


async def _discovered(wire: Wire, seconds: float, *, again: bool = True) -> Welcome | None:
    """What a server of the newer revision says; `None` where it seems to be none."""
    try:
        said = await wire.ask(DISCOVER, {}, seconds=seconds)
    except TimeoutError:
        return None
    except FaultError as error:
        supported = _texts(_mapping(error.fault.data).get("supported"))
        if error.fault.code == UNSUPPORTED_VERSION and supported:
            if protocol.MODERN in supported and again:
                # It names what was offered: it has changed its mind, or had not begun yet.
                return await _discovered(wire, seconds, again=False)
            _check_common(supported)
        return None
    versions = _texts(said.get("supportedVersions"))
    if protocol.MODERN not in versions:
        if versions:
            _check_common(versions)
        return None
    info = _mapping(said.get("serverInfo")) or _mapping(
        _mapping(said.get("_meta")).get(protocol.SERVER)
    )
    return Welcome(
        version=protocol.MODERN,
        is_modern=True,
        capabilities=_mapping(said.get("capabilities")),
        info=info,
        instructions=_text(said.get("instructions")),
    )


async def _initialized(wire: Wire, seconds: float, *, asks: frozenset[str]) -> Welcome:
    wire.adopt(_unknown(is_modern=False))
    said = await wire.ask(
        "initialize",
        {
            "protocolVersion": protocol.LEGACY,
            "capabilities": revision.capabilities(asks),
            "clientInfo": dict(protocol.INFO),
        },
        seconds=seconds,
    )
    version = _text(said.get("protocolVersion"))
    if version not in protocol.HANDSHAKE:
        raise AwayError(f"it speaks a revision of MCP that is not known here ({version[:40]!r}).")
    return Welcome(
        version=version,
        is_modern=False,
        capabilities=_mapping(said.get("capabilities")),
        info=_mapping(said.get("serverInfo")),
        instructions=_text(said.get("instructions")),
    )


def _check_common(versions: list[str]) -> None:
    """A server that speaks only what is not known here cannot be spoken to at all."""
    if frozenset(versions).isdisjoint(protocol.HANDSHAKE):
        shown = ", ".join(versions)[:200]
        raise AwayError(f"it speaks only revisions of MCP that are not known here ({shown}).")


def _unknown(*, is_modern: bool) -> Welcome:
    version = protocol.MODERN if is_modern else ""
    return Welcome(version=version, is_modern=is_modern, capabilities={}, info={})


def _mapping(given: object) -> Mapping[str, Any]:
    return cast("Json", given) if type(given) is dict else {}


def _text(given: object) -> str:
    return given if type(given) is str else ""


def _texts(given: object) -> list[str]:
    if type(given) is not list:
        return []
    return [one for one in cast("list[object]", given) if type(one) is str]
