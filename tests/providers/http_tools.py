"""HTTP tools in a gate: definitions, and ways to call them."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson

from toolgate import Toolgate
from toolgate.net.client import HttpClient
from toolgate.net.guard import Guard
from toolgate.providers.http.provider import HttpProvider
from toolgate.settings.outward import HttpTools, Net, Providers, Secret
from toolgate.settings.settings import Settings
from toolgate.spec.reader import read_tool
from toolgate.spec.tool import NOWHERE, ToolSpec

VALUE = "s3cret/with+odd=Letters"
NAMES = ("id", "text", "tags", "limit", "filter", "name", "user", "file", "page", "reference")


def open_schema(*names: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {} for name in names}, **more}


def definition(config: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """A tool with a few arguments of any kind, which only reads unless a test says otherwise."""
    usual = {
        "name": "act",
        "provider": "http",
        "effect": "pure",
        "input_schema": open_schema(*NAMES),
    }
    return usual | {"config": dict(config)} | fields


def spec(config: Mapping[str, Any], **fields: Any) -> ToolSpec:
    return read_tool(definition(config, **fields), origin=NOWHERE)


def secrets(*hosts: str, **named: tuple[str, ...]) -> dict[str, Secret]:
    """The secret `key`, and others, in variables of their names in capitals."""
    given = {"key": hosts, **named}
    return {name: Secret(value_env=name.upper(), hosts=of) for name, of in given.items()}


def provider(given: Mapping[str, Secret] | None = None, **environ: str) -> HttpProvider:
    """One that reaches loopback; its secret has the usual value."""
    settings = HttpTools(secrets=dict(given or {}))
    return HttpProvider(settings, HttpClient(Guard(["127.0.0.0/8"])), environ=environ)


def reason(
    config: Mapping[str, Any], given: Mapping[str, Secret] | None = None, **more: Any
) -> str:
    """Why a config cannot be used; empty where it can."""
    environ = more.pop("environ", {"KEY": VALUE})
    return provider(given, **environ).unusable(spec(config, **more)) or ""


def write(root: Path, *tools: Mapping[str, Any]) -> None:
    """The tool file of a gate."""
    folder = root / "tools"
    folder.mkdir(exist_ok=True)
    (folder / "service.json").write_bytes(orjson.dumps({"tools": list(tools)}))


@asynccontextmanager
async def gate(
    root: Path,
    *tools: Mapping[str, Any],
    place: str,
    http: HttpTools | None = None,
    extensions: Any = (),
) -> AsyncGenerator[Toolgate]:
    """A gate on these tools, which may reach one place."""
    write(root, *tools)
    settings = Settings(
        root=root, net=Net(allow=(place,)), providers=Providers(http=http or HttpTools())
    )
    async with Toolgate.open(settings, extensions=extensions) as found:
        yield found
