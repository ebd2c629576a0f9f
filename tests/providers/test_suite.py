"""The suite that authors of providers run: kept by an example, by ours, and by no careless one."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from examples.suite.line_provider_suite import TestLines
from tests.providers.programs import with_bubblewrap
from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.executor.provider import Provider
from toolgate.providers.python import PythonProvider
from toolgate.providers.shell.places import Surroundings
from toolgate.providers.shell.provider import ShellProvider
from toolgate.sandbox.choosing import chosen
from toolgate.settings.outward import Sandbox
from toolgate.spec.tool import ToolSpec
from toolgate.testing.provider import ProviderSuite, Sample

pytestmark = pytest.mark.req("P7")
__all__ = ["TestLines"]
ROOT = Path(__file__).resolve().parents[2]
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def says(text: str) -> str:
    return text


async def fails(text: str) -> str:
    raise ValueError(text + "the key is hunter2hunter2")


async def sleeps(text: str) -> str:
    await asyncio.sleep(60)
    return text


class TestPython(ProviderSuite):
    kind = "python"
    secret = "hunter2hunter2"  # noqa: S105  it is none

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Provider]:
        provider = PythonProvider()
        yield provider
        provider.close()

    def says(self, text: str) -> Sample:
        return self._sample("says", text)

    def wrong(self) -> Sequence[Sample]:
        return [Sample(config={}), self._sample("nowhere", "x")]

    def fails(self) -> Sample | None:
        return self._sample("fails", "x")

    def slow(self) -> Sample | None:
        return self._sample("sleeps", "x")

    def absent(self) -> Sample | None:
        return None

    @staticmethod
    def _sample(function: str, text: str) -> Sample:
        config = {"module": __name__, "function": function}
        return Sample(config=config, args={"text": text}, input_schema=TEXT)


class TestShell(ProviderSuite):
    kind = "shell"

    @pytest.fixture(autouse=True)
    def _in_sandbox(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        with_bubblewrap(monkeypatch)
        self.root = tmp_path

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Provider]:
        yield ShellProvider(Surroundings(root=self.root), lambda: chosen(Sandbox()))

    def says(self, text: str) -> Sample:
        return self._sample(["echo", "{text}"], text)

    def wrong(self) -> Sequence[Sample]:
        return [Sample(config={}), self._sample(["no-such-program"], "x")]

    def fails(self) -> Sample | None:
        return self._sample(["ls", "{text}"], "/nowhere")

    def slow(self) -> Sample | None:
        return self._sample(["sleep", "{text}"], "60")

    def absent(self) -> Sample | None:
        return self._sample(["ls", "{text}"], "-a dash")

    def unfit(self) -> Sample | None:
        return self._sample(["ls", "{text}"], "--color")

    @staticmethod
    def _sample(argv: list[str], text: str) -> Sample:
        return Sample(config={"argv": argv}, args={"text": text}, input_schema=TEXT)


class Careless:
    """Takes everything, mixes calls up, tells its key, and never says that nothing began."""

    def __init__(self) -> None:
        self.last = ""

    def unusable(self, spec: ToolSpec) -> str | None:
        return None

    async def run(self, call: Call) -> Any:
        self.last = call.args["text"]
        if self.last == "fail":
            raise ToolError("failed with key hunter2hunter2")
        if self.last == "absent":
            raise OSError
        if self.last == "slow":
            return "at once"
        await asyncio.sleep(0)
        return self.last


class CarelessSuite(ProviderSuite):
    kind = "careless"
    secret = "hunter2hunter2"  # noqa: S105  it is none

    def opened(self) -> AbstractAsyncContextManager[Provider]:
        return self._opened()

    @asynccontextmanager
    async def _opened(self) -> AsyncGenerator[Provider]:
        self.left = asyncio.create_task(asyncio.sleep(600))
        yield Careless()

    def says(self, text: str) -> Sample:
        return Sample(config={}, args={"text": text}, input_schema=TEXT)

    def wrong(self) -> Sequence[Sample]:
        return [self.says("x")]

    def fails(self) -> Sample | None:
        return self.says("fail")

    def slow(self) -> Sample | None:
        return self.says("slow")

    def absent(self) -> Sample | None:
        return self.says("absent")

    def unfit(self) -> Sample | None:
        return self.says("unfit")


@pytest.mark.parametrize(
    ("promise", "said"),
    [
        ("a_wrong_definition_is_refused_before_any_call", "is taken"),
        ("calls_at_once_do_not_cross", "was answered with"),
        ("a_call_ends_with_its_time_and_is_not_known_to_have_failed", "ended with a result"),
        ("a_call_that_is_cancelled_ends_and_others_go_on", "goes on"),
        ("where_nothing_was_begun_it_says_so", "nothing was begun"),
        ("what_it_refuses_by_its_own_rules_nobody_is_asked_about", "approval_pending"),
        ("a_failure_is_told_in_words_without_secrets", "tells a secret"),
        ("what_it_opened_is_closed", "leaves 1 tasks"),
    ],
)
def test_a_careless_provider_is_found_out(promise: str, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        getattr(CarelessSuite(), f"test_{promise}")()


def test_the_suite_of_the_example_is_run_as_its_page_says_without_our_plugins() -> None:
    """Who has pytest alone has none of what our own tests are set up with."""
    done = subprocess.run(
        (sys.executable, "-m", "pytest", "-q", "examples/suite/line_provider_suite.py"),
        cwd=ROOT,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, " passed" in done.stdout) == (0, True), done.stdout + done.stderr
