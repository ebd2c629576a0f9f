"""A provider of one's own: tools that send a line to a server and answer with the line it sends."""

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolgate import Call, Caller, Toolgate
from toolgate.errors import ExecutionFailed, ProviderUnavailable, ToolError
from toolgate.spec.tool import ToolSpec


class LineProvider:
    """`config: {port: 7000}`; the argument `text` is the line."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.host = settings.get("host", "127.0.0.1")

    def unusable(self, spec: ToolSpec) -> str | None:
        """Asked whenever definitions are loaded."""
        config = spec.config.value()
        if set(config) != {"port"} or not isinstance(config["port"], int):
            return "config names no port; write config: {port: 7000}"
        return None

    async def run(self, call: Call) -> Any:
        """Nothing was begun, or it did not do it, or nobody knows: three kinds of errors."""
        try:
            port = call.spec.config.value()["port"]
            reader, writer = await asyncio.open_connection(self.host, port)
        except OSError:
            raise ProviderUnavailable("The line server is away; nothing was sent.") from None
        try:
            writer.write(call.args["text"].encode() + b"\n")
            answer = await reader.readline()
        except OSError:
            raise ExecutionFailed("The connection broke; it may have arrived.") from None
        finally:
            writer.close()
        if answer.startswith(b"no: "):
            raise ToolError(answer[4:].decode().strip())
        return {"line": answer.decode().strip()}


TOOL = """
tools:
  - name: shout
    provider: lines
    config: {{port: {port}}}
    input_schema: {{type: object, properties: {{text: {{type: string}}}}, required: [text]}}
    effect: pure
"""


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write((await reader.readline()).upper())
    writer.close()


async def main() -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "tools.yaml").write_text(TOOL.format(port=server.sockets[0].getsockname()[1]))
        (root / "toolgate.toml").write_text('[tools]\nfiles = ["tools.yaml"]\n')
        providers = {"lines": LineProvider({})}
        async with Toolgate.open(root / "toolgate.toml", providers=providers) as gate:
            me = Caller(tenant="acme", agent="herald")
            print((await gate.call("shout", {"text": "hear ye"}, caller=me)).data)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
