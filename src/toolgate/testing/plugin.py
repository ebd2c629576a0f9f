"""A plugin's tools, called through a gate of their own: for the tests of whoever writes one."""

import asyncio
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from toolgate.bootstrap import Toolgate
from toolgate.caller import Caller
from toolgate.errors import InvalidRequest
from toolgate.settings.execution import Approvals
from toolgate.settings.settings import Plugins, Settings, Store, Tools

_ME = Caller(tenant="test", agent="test")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


def called(
    folder: Path,
    tool: str,
    args: Mapping[str, Any] = _NOTHING,
    *,
    custom_config: Mapping[str, Any] = _NOTHING,
) -> Any:
    """The result of a call, as an agent gets it; `InvalidRequest` where there is none.

    `folder` is the plugin's; `custom_config` is what an operator would have set. No store is
    written, and nobody has to agree.
    """
    return asyncio.run(_called(folder.absolute(), tool, dict(args), dict(custom_config)))


async def _called(folder: Path, tool: str, args: dict[str, Any], config: dict[str, Any]) -> Any:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        (root / "set").mkdir()
        text = json.dumps({"custom_config": config})
        (root / "set" / f"{folder.name}.json").write_text(text, "utf-8")
        settings = Settings(
            root=root,
            store=Store(url="sqlite:///:memory:"),
            tools=Tools(files=(), plugins=(str(folder.parent),)),
            approvals=Approvals(mode="never"),
            plugins=Plugins(settings="set", trusted=(folder.name,), refresh=0),
        )
        async with Toolgate.open(settings) as gate:
            rows = {row["name"]: row for row in gate.plugins.rows()}
            problem = rows[folder.name]["problem"] if folder.name in rows else "there is no plugin"
            if problem:
                raise InvalidRequest(f"The plugin {folder.name!r} cannot be used: {problem}.")
            output = await gate.call(tool, args, caller=_ME)
            if output.status != "success":
                raise InvalidRequest(f"{tool!r} ended as {output.status}: {output.error}")
            return output.data
