"""A house with settings of a test's own, and what its tools answer."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from tests.blank import put_blank
from tests.house import STORE
from toolgate import Caller, Toolgate
from toolgate.call import Output
from toolgate.settings.settings import Settings

ME = Caller(tenant="acme", agent="clerk")


def opened(root: Path, **tools: Any) -> AbstractAsyncContextManager[Toolgate]:
    """Files are below `files`; nobody has to agree to anything."""
    (root / "files").mkdir(exist_ok=True)
    put_blank(root / STORE)
    settings: dict[str, Any] = {
        "root": root,
        "approvals": {"mode": "never"},
        "tools": {"roots": ["files"], **tools},
    }
    return Toolgate.open(Settings.model_validate(settings))


async def told(gate: Toolgate, tool: str, caller: Caller = ME, **args: Any) -> Any:
    """The result of a call that succeeds."""
    output = await gate.call(tool, args, caller=caller)
    assert output.ok, output
    return output.data


async def failed(gate: Toolgate, tool: str, caller: Caller = ME, **args: Any) -> Output:
    """The answer to a call that does not."""
    output = await gate.call(tool, args, caller=caller)
    assert output.error is not None, output
    return output
