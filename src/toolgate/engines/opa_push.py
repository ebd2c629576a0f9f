"""Bringing a policy to an OPA server, so that it has the whole of it or decides nothing.

The gate's own module is removed first and put last: as long as it is away, every question is
answered with nothing, which is a no. A manifest among the server's data says what is ours, so that
what has gone from the policy goes from the server, and nobody else's is touched.
"""

import hashlib
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, cast

from toolgate.engines.bundle import Bundle
from toolgate.engines.modules import GATE, PREFIX
from toolgate.engines.opa_server import MISSING, OpaServer, Refused

MANIFEST = "toolgate_manifest"
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*\Z")


def module_id(file: str) -> str:
    """A name on the server that no file's name can bend."""
    name = file.removeprefix(PREFIX)
    if file.startswith(PREFIX):
        return f"toolgate/own.{name}"
    if _PLAIN.match(name):
        return f"toolgate/file.{name}"
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", name)[:64]
    return f"toolgate/file.{plain}.{hashlib.sha256(name.encode()).hexdigest()[:16]}"


async def push(server: OpaServer, bundle: Bundle) -> None:
    """Make the server's policy this one, and read it back. `Refused` where it cannot be."""
    modules = {module_id(file): text for file, text in bundle.modules.items()}
    had = await _manifest(server)
    if await _is_there(server, modules, bundle):
        stale = set(had["modules"]) - set(modules) | set(had["documents"]) - set(bundle.data)
        if not stale:
            return
    await _drop(server, [module_id(f"{PREFIX}{GATE}")])
    both = {
        "modules": sorted({*had["modules"], *modules}),
        "documents": sorted({*had["documents"], *bundle.data}),
    }
    await server.put_document(MANIFEST, both)
    await _drop(server, [name for name in reversed(both["modules"]) if name in had["modules"]])
    for name in had["documents"]:
        if name not in bundle.data:
            await server.drop_document(name)
    for name, value in bundle.data.items():
        await server.put_document(name, value)
    await _put(server, modules, {module_id(file): file for file in bundle.modules})
    await server.put_document(
        MANIFEST, {"modules": sorted(modules), "documents": sorted(bundle.data)}
    )
    if not await _is_there(server, modules, bundle):
        raise Refused(["the policy server took the policy, but does not have it when asked"])


async def _manifest(server: OpaServer) -> dict[str, list[str]]:
    found = await server.document(MANIFEST)
    parts = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    return {part: _names(parts.get(part)) for part in ("modules", "documents")}


def _names(value: Any) -> list[str]:
    """Only names that we could have given: others are not ours to remove."""
    named = cast("list[Any]", value) if isinstance(value, list) else []
    return [
        name
        for name in named
        if isinstance(name, str) and _PLAIN.match(name.removeprefix("toolgate/"))
    ]


async def _is_there(server: OpaServer, modules: dict[str, str], bundle: Bundle) -> bool:
    for name, text in reversed(modules.items()):
        if await server.module(name) != text:
            return False
    for name, value in bundle.data.items():
        found = await server.document(name)
        if found is MISSING or found != value:
            return False
    return True


async def _put(server: OpaServer, modules: dict[str, str], files: dict[str, str]) -> None:
    async def put(name: str) -> None:
        try:
            await server.put_module(name, modules[name])
        except Refused as refused:
            said = [problem.replace(name, files[name]) for problem in refused.problems]
            raise Refused(said) from None

    *others, gate = modules
    await _as_they_go(others, put)
    await put(gate)


async def _drop(server: OpaServer, names: Iterable[str]) -> None:
    await _as_they_go(list(names), server.drop_module)


async def _as_they_go(names: list[str], act: Callable[[str], Awaitable[None]]) -> None:
    """One after the other; what needs one that comes later is tried again after it."""
    while names:
        waiting: list[str] = []
        refused: Refused | None = None
        for name in names:
            try:
                await act(name)
            except Refused as error:
                waiting.append(name)
                refused = refused or error
        if refused is not None and len(waiting) == len(names):
            raise refused
        names = waiting
