"""Spans, as a real receiver gets them; and nothing where nobody traces."""

import subprocess
import sys
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.house import ME
from tests.telemetry.collector import Collector, told
from toolgate import ToolError, Toolgate, tool
from toolgate.errors import InvalidArguments, ToolNotFound
from toolgate.executor.trace.meter import Meter
from toolgate.settings.execution import Telemetry
from toolgate.settings.settings import Settings
from toolgate.telemetry import tracing
from toolgate.telemetry.otlp import Otlp

pytestmark = pytest.mark.req("O1")
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@tool(effect="irreversible")
def send(word: str) -> str:
    """Send something."""
    if word == "fail":
        raise ToolError("canary-1")
    return word


def tracing_to(collector: Collector, root: Path) -> Settings:
    return Settings(root=root, telemetry=Telemetry(traces=collector.url))


async def test_a_call_is_a_span_with_one_for_the_gate_and_one_for_the_provider(
    tmp_path: Path,
) -> None:
    with Collector() as collector:
        async with Toolgate.open(tracing_to(collector, tmp_path)) as gate:
            gate.add(send)
            output = await gate.call("send", {"word": "canary-2"}, caller=ME)
        [call] = collector.named("toolgate.call")
        assert told(call) == {
            "toolgate.tool": "send",
            "toolgate.tenant": "acme",
            "toolgate.agent": "billing",
            "toolgate.status": "success",
            "toolgate.call_id": output.call_id,
            "toolgate.cached": False,
        }
        [decided] = collector.named("toolgate.gate")
        [provided] = collector.named("toolgate.provider")
        assert decided.parent_span_id == provided.parent_span_id == call.span_id
        assert decided.trace_id == provided.trace_id == call.trace_id
        assert told(provided) == {
            "toolgate.tool": "send",
            "toolgate.provider": "python",
            "toolgate.effect": "irreversible",
            "toolgate.call_id": output.call_id,
        }
        assert "tool_execution_total" in collector.numbers
        assert "tool_execution_duration_seconds_sum" in collector.numbers
        assert b"canary" not in collector.raw


async def test_an_error_is_told_by_its_code_and_never_by_its_words(tmp_path: Path) -> None:
    with Collector() as collector:
        async with Toolgate.open(tracing_to(collector, tmp_path)) as gate:
            gate.add(send)
            await gate.call("send", {"word": "fail"}, caller=ME)
            with pytest.raises(InvalidArguments):
                await gate.call("send", {"word": 7, "canary-3": 1}, caller=ME)
            with pytest.raises(ToolNotFound):
                await gate.call("canary-4" * 100, {}, caller=ME)
        failed, refused, missing = collector.named("toolgate.call")
        assert told(failed)["toolgate.status"] == "error"
        assert told(refused)["error.type"] == "invalid_arguments"
        assert told(missing)["error.type"] == "tool_not_found"
        assert len(told(missing)["toolgate.tool"]) <= 200
        [*_, provided] = collector.named("toolgate.provider")
        assert told(provided)["error.type"] == "tool_error"
        assert b"canary-1" not in collector.raw
        assert b"canary-3" not in collector.raw
        assert all(not span.events for span in collector.spans), "no exception is recorded"


@pytest.mark.parametrize("parent", [PARENT, "00-forged", ""], ids=["good", "forged", "none"])
async def test_a_traceparent_is_honoured(tmp_path: Path, parent: str) -> None:
    with Collector() as collector:
        async with Toolgate.open(tracing_to(collector, tmp_path)) as gate:
            assert gate.watch.spans is not None
            with gate.watch.spans.continued({"traceparent": parent}):
                await gate.call("echo", {"text": "x"}, caller=ME)
        [call] = collector.named("toolgate.call")
        is_theirs = call.trace_id.hex() == PARENT.split("-")[1]
        assert is_theirs is (parent == PARENT)
        assert call.parent_span_id.hex() == (PARENT.split("-")[2] if is_theirs else "")


async def test_the_tracer_of_the_program_around_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = InMemorySpanExporter()
    theirs = TracerProvider(shutdown_on_exit=False)
    theirs.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: theirs)
    async with Toolgate.open(Settings(root=tmp_path)) as gate:
        with theirs.get_tracer("app").start_as_current_span("theirs"):
            await gate.call("echo", {"text": "x"}, caller=ME)
    names = [span.name for span in kept.get_finished_spans()]
    assert names == ["toolgate.gate", "toolgate.provider", "toolgate.call", "theirs"]


async def test_without_a_tracer_nothing_of_it_is_there(tmp_path: Path) -> None:
    assert tracing.embedding() is None
    async with Toolgate.open(Settings(root=tmp_path)) as gate:
        assert gate.watch.spans is None


def test_without_a_tracer_its_packages_are_not_even_loaded(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys; from pathlib import Path; from toolgate import Toolgate\n"
        "from toolgate.settings.settings import Settings\n"
        "async def main():\n"
        "    async with Toolgate.open(Settings(root=Path(sys.argv[1]))): pass\n"
        "asyncio.run(main())\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)


async def test_a_receiver_that_is_away_fails_no_call(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Collector() as collector:
        address = collector.url
    otlp = Otlp(address, Meter())
    with otlp.spans.span("toolgate.call", {"tool": "echo"}) as span:
        span.tell(status="success")
    await otlp.close()
    assert "canary" not in caplog.text
