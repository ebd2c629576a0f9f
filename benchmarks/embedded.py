"""The one place where a benchmark opens toolgate as a library, with everything it comes with."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from toolgate import Call, Caller, Toolgate, ToolSpec
from toolgate.executor.provider import Provider
from toolgate.settings.settings import Settings, Store

CALLER = Caller(tenant="acme", agent="billing", user="ann")


class Echo:
    """A provider that can run any spec, so that a catalog's own cost is all that is seen."""

    def unusable(self, spec: ToolSpec) -> str | None:  # noqa: ARG002 - a port's method
        return None

    async def run(self, call: Call) -> Any:
        return call.args


def open_gate(
    folder: Path, providers: Mapping[str, Provider] | None = None
) -> AbstractAsyncContextManager[Toolgate]:
    """Embedded defaults, with the SQLite store on disk in `folder`."""
    settings = Settings(store=Store(url=f"sqlite:///{folder / 'toolgate.db'}"), root=folder)
    return Toolgate.open(settings, providers=providers)
