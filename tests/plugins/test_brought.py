"""Kinds of tools that a plugin brings: agreed to as its tools are, and nobody else's."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from examples.suite import line_provider_suite
from tests.house import ME
from tests.plugins.folders import agree, opened, row, settle, write
from toolgate import Toolgate
from toolgate.executor.provider import Provider
from toolgate.plugins import modules, offer
from toolgate.plugins.brought import Brought
from toolgate.plugins.manifest import read_manifest
from toolgate.plugins.package import taken
from toolgate.plugins.setup import NOTHING
from toolgate.settings.outward import CustomProvider, Providers
from toolgate.settings.settings import Tools
from toolgate.spec.reader import read_tool
from toolgate.spec.tool import Origin

pytestmark = pytest.mark.req("P7", "U1")
ROOT = Path(__file__).resolve().parents[2]
KIND = {"echo": {"module": "tools", "function": "Echo"}}
SCHEMA = {"greeting": {"type": "string", "default": "hello"}}
CODE = """\
import asyncio

from tests.plugins import test_brought


class Echo:
    def __init__(self, *given):
        self.given = given
        (self.settings,) = given

    def unusable(self, spec):
        return None if "to" in spec.config.value() else "write config: {{to: NAME}}"

    async def run(self, call):
        if call.args.get("slow"):
            test_brought.REACHED.set()
            await test_brought.GOES_ON.wait()
        said = f"{{self.settings['greeting']}} {{call.spec.config.value()['to']}}"
        given = [type(one).__name__ for one in self.given]
        return {{"said": said, "version": {version}, "given": given}}

    def close(self):
        test_brought.CLOSED.append({version})
"""
TOOL = """
tools:
  - name: greet
    provider: echo
    config: {to: Ann}
    input_schema: {type: object, properties: {slow: {type: boolean}}}
    effect: pure
"""
REACHED = asyncio.Event()
GOES_ON = asyncio.Event()
CLOSED: list[int] = []


def brings(root: Path, name: str = "teller", *, version: int = 1, **more: Any) -> Path:
    said: dict[str, Any] = {"tools": [], "providers": KIND, "settings_schema": SCHEMA}
    said |= {"code": CODE.format(version=version)} | more
    (root / "tools.yaml").write_text(TOOL, "utf-8")
    return write(root, name, version=version, **said)


def house(root: Path, *trusted: str, **more: Any) -> AbstractAsyncContextManager[Toolgate]:
    return opened(root, *trusted, tools=Tools(files=("tools.yaml",)), **more)


async def greeted(gate: Toolgate, **args: Any) -> Any:
    output = await gate.call("greet", args, caller=ME)
    assert output.ok, output
    return output.data


async def test_a_plugins_kind_runs_tools_of_files_once_it_is_agreed_to(tmp_path: Path) -> None:
    CLOSED.clear()
    brings(tmp_path)
    settle(tmp_path, custom_config={"greeting": "ahoy"})
    async with house(tmp_path) as gate:
        assert "no provider 'echo'" in gate.catalog.current.unusable["greet"]
        await agree(gate)
        # It is handed its settings, and nothing of the house.
        assert await greeted(gate) == {
            "said": "ahoy Ann",
            "version": 1,
            "given": ["mappingproxy"],
        }
        assert CLOSED == []
    assert CLOSED == [1]


async def test_a_call_ends_on_the_version_that_it_began_on(tmp_path: Path) -> None:
    CLOSED.clear()
    REACHED.clear()
    GOES_ON.clear()
    brings(tmp_path)
    async with house(tmp_path, "teller") as gate:
        begun = asyncio.create_task(greeted(gate, slow=True))
        await REACHED.wait()
        brings(tmp_path, version=2)
        assert (await gate.plugins.reload_changed()).loaded == ("teller",)
        assert (await greeted(gate))["version"] == 2
        assert CLOSED == []
        GOES_ON.set()
        assert (await begun)["version"] == 1
        # Settings that do not fit leave the live one be.
        settle(tmp_path, custom_config={"greeting": 3})
        await gate.plugins.reload_changed()
        assert (await greeted(gate))["version"] == 2
        settle(tmp_path, enabled=False)
        await gate.plugins.reload_changed()
        assert "is not live" in gate.catalog.current.unusable["greet"]
    assert CLOSED == [1, 2]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"providers": {"shell": KIND["echo"]}}, "one of toolgate's"),
        ({"providers": {"Echo it": KIND["echo"]}}, "no name in small letters"),
        ({"providers": {"echo": {"module": "os", "function": "system"}}}, "not in the plugin's"),
        ({"providers": {"echo": {"module": "tools", "function": "Nobody"}}}, "has no function"),
        ({"providers": {"echo": {"module": "tools"}}}, "does not fit"),
        ({"providers": {"named": KIND["echo"]}}, "the settings, a package or the program"),
        ({"code": "Echo = dict\n"}, "has no unusable"),
        ({"code": "def Echo(settings):\n    raise KeyError\n"}, "KeyError"),
    ],
)
async def test_a_kind_that_cannot_be_is_refused_alone(
    tmp_path: Path, more: dict[str, Any], said: str
) -> None:
    brings(tmp_path, **more)
    write(tmp_path, "other")
    custom = {"named": CustomProvider(use="nowhere:Nothing")}
    async with house(tmp_path, "*", providers=Providers(custom=custom)) as gate:
        assert row(gate)["state"] == "broken"
        assert said in row(gate)["problem"]
        assert row(gate, "other")["state"] == "live"


async def test_a_kind_is_one_plugins_alone(tmp_path: Path) -> None:
    brings(tmp_path, "first")
    brings(tmp_path, "second", version=2)
    async with house(tmp_path, "*") as gate:
        assert "called as one of first" in row(gate, "second")["problem"]
        assert (await greeted(gate))["version"] == 1


class TestBroughtLines(line_provider_suite.TestLines):
    """The example's provider as a plugin, held against the suite."""

    @pytest.fixture(autouse=True)
    def _in_folder(self, tmp_path: Path) -> None:
        code = (ROOT / "examples/line_provider.py").read_text("utf-8")
        kinds = {"lines": {"module": "tools", "function": "LineProvider"}}
        self.folder = write(tmp_path, "lines", code=code, tools=[], providers=kinds)

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Provider]:
        package = taken(self.folder)
        manifest = read_manifest((self.folder / "manifest.json").read_bytes(), "lines")
        code = modules.enter("lines", package)
        _specs, load = offer.specs_of(manifest, NOTHING, package, code)
        brought = Brought()
        brought.take("lines", load())
        found = brought.find("lines")
        assert found is not None
        # Nobody from elsewhere has tools of it, which no setting could allow.
        far = read_tool({"name": "far", "provider": "lines"}, origin=Origin("http", "elsewhere"))
        assert "not from this machine" in (found.unusable(far) or "")
        async with super().opened():
            yield found
        await brought.close()
        modules.leave(code)
