"""Agents made with the A2A project's own SDK, served on loopback in both versions."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette

from tests.house import until


class Clerk(AgentExecutor):
    """Answers at once, by a task, or after it has asked back."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.contexts: list[str] = []

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        text = context.get_user_input()
        self.heard.append(text)
        assert context.message is not None
        assert context.context_id
        assert context.task_id
        self.contexts.append(context.context_id)
        if text.startswith("quick"):
            message = new_text_message(f"At once: {text}", context_id=context.context_id)
            await event_queue.enqueue_event(message)
            return
        if context.current_task is None:
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work()
        if text == "weather":
            await updater.requires_input(updater.new_agent_message([new_text_part("Where?")]))
        elif text == "fail":
            await updater.failed(updater.new_agent_message([new_text_part("It is too hard.")]))
        elif text == "never":
            await asyncio.Event().wait()
        else:
            await updater.add_artifact([new_text_part(f"Result: {text}")])
            await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id
        assert context.context_id
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def card(url: str, version: str) -> AgentCard:
    interface = AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version=version)
    return AgentCard(
        name=f"Clerk {version}",
        description="Answers",
        version="1.0.0",
        supported_interfaces=[interface],
        capabilities=AgentCapabilities(),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="answer", name="Answer", description="Answers", tags=["test"])],
    )


@asynccontextmanager
async def serving() -> AsyncGenerator[tuple[str, Clerk]]:
    """Its address, with `/1.0` and `/0.3` below, and what it heard."""
    clerk = Clerk()
    app = Starlette()
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve())
    try:
        await until(lambda: server.started)
        url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        for version in ("1.0", "0.3"):
            made = card(f"{url}/{version}/rpc", version)
            handler = DefaultRequestHandler(clerk, InMemoryTaskStore(), made)
            path = f"/{version}/.well-known/agent-card.json"
            app.router.routes += create_agent_card_routes(made, card_url=path)
            app.router.routes += create_jsonrpc_routes(
                handler, f"/{version}/rpc", enable_v0_3_compat=True
            )
        yield url, clerk
    finally:
        server.should_exit = True
        await running
