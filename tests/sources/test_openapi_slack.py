"""Slack's document with the overlay of the guide: no token is asked for, and a no is a failure."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from tests.house import ME
from tests.sources.openapi_documents import real
from toolgate import Output, Toolgate
from toolgate.importing import Fetched, Options, Remembered, Selection, imported, written
from toolgate.settings.outward import HttpTools, Net, Providers, Secret
from toolgate.settings.settings import Settings
from toolgate.sources.openapi import overlay

pytestmark = pytest.mark.req("P2")
OVERLAY = Path(__file__).parents[2] / "examples" / "service" / "slack-overlay.yaml"
TOKEN = "xoxb-canary"  # noqa: S105  a canary
Seen = list[tuple[str, str, bytes]]


@asynccontextmanager
async def slack(seen: Seen) -> AsyncGenerator[str]:
    """Answers 200 to everything, as Slack does; a channel is there or not."""

    async def answer(request: web.Request) -> web.Response:
        body = await request.read()
        seen.append((request.raw_path, request.headers.get("Authorization", ""), body))
        if b"nowhere" in body:
            return web.json_response({"ok": False, "error": "channel_not_found"})
        told = {"ok": True, "channel": "C1", "ts": "1.2", "message": {"text": "hi"}}
        return web.json_response(told)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def brought(root: Path, place: str, *, with_overlay: bool) -> None:
    """The tool that says something, as an import writes it."""
    options = Options(
        name="slack",
        server=f"http://{place}/api",
        selection=Selection(operations=["chat_postMessage"]),
    )
    word = overlay.read(OVERLAY.read_bytes(), file="x") if with_overlay else overlay.NOTHING
    found = imported(Fetched(real("slack-3.0"), "slack.yaml"), options, overlay=word)
    file = written(found, Remembered(name="slack"), where="slack.yaml")
    # The answers here are shorter than Slack's.
    text = file.text.partition(b"  output_schema:")[0]
    (root / "tools").mkdir(exist_ok=True)
    (root / "tools" / file.name).write_bytes(text)


@pytest.mark.parametrize("with_overlay", [True, False])
async def test_a_message_is_sent_without_a_token_of_the_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, with_overlay: bool
) -> None:
    seen: Seen = []
    monkeypatch.setenv("SLACK_TOKEN", TOKEN)
    async with slack(seen) as place:
        brought(tmp_path, place, with_overlay=with_overlay)
        secret = Secret(value_env="SLACK_TOKEN", hosts=(place,))
        providers = Providers(http=HttpTools(secrets={"slack_slackauth": secret}))
        settings = Settings(root=tmp_path, net=Net(allow=(place,)), providers=providers)
        async with Toolgate.open(settings) as gate:
            schema = gate.catalog.current.specs["chat_postMessage"].input_schema.value()
            given = {} if with_overlay else {"token": "xoxb-of-the-model"}

            async def say(channel: str) -> Output:
                sent = {"body": {"channel": channel, "text": "hi"}, **given}
                return await gate.call("chat_postMessage", sent, caller=ME)

            said, lost = await say("C1"), await say("nowhere")
    assert said.ok
    assert {one[1] for one in seen} == {f"Bearer {TOKEN}"}
    # Without the overlay the model is asked for a token, and a refusal looks like a success.
    assert ("token" in schema["properties"], lost.ok) == (not with_overlay, not with_overlay)
    if with_overlay:
        assert lost.error is not None
        assert (lost.error.code, "channel_not_found" in lost.error.message) == ("tool_error", True)
