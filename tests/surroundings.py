"""What examples of other people's frameworks find around them: a model, a shop, an interpreter."""

import asyncio
import shutil
import sys
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.server.serving import Serving
from tests.servers import anthropic_api, legacy, openai_api
from tests.servers.model import KEY, Model, Use
from toolgate import Toolgate, configuration
from toolgate.tenancy.keys import Role

_FIND = Use("find_order", {"customer": "bob"})
_SHIP = Use("ship_order", {"order": "order-of-bob"})
_REFUND = Use("refund", {"order": "order-of-bob"})
# What the model does in those that speak to one.
_TALKS = {
    "openai_loop": (_FIND, _SHIP),
    "anthropic_loop": (_REFUND,),
    "openai_agents": (_FIND, _SHIP),
}
_SERVED = frozenset({"openai_agents", "pydantic_ai_agent", "langchain_tools"})
_LEGACY = frozenset({"langchain_tools"})


class Around(NamedTuple):
    """With what, and with which variables, an example is run."""

    python: str
    environment: Mapping[str, str]


@contextmanager
def around(example: Path, place: Path) -> Generator[Around]:
    """As long as it runs; `place` is a folder for the shop. `AbsentError` where a part is not here.

    What is said to the model is wrong if the example ends with an error of its client.
    """
    name = example.stem
    python = str(legacy.interpreter()) if name in _LEGACY else sys.executable
    environment: dict[str, str] = {}
    with ExitStack() as stack:
        if name in _TALKS:
            apis = openai_api.APIS | anthropic_api.APIS
            url = stack.enter_context(Model(apis, *_TALKS[name])).url
            environment |= {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": KEY}
            environment |= {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY}
        if name in _SERVED:
            shop = place / "shop"
            shutil.copytree(example.parent / "shop", shop, ignore=_made)
            environment["TOOLGATE_KEY"] = asyncio.run(_opened(shop))
            server = stack.enter_context(Serving(shop))
            environment["TOOLGATE_URL"] = server.greeting["url"]
        yield Around(python, environment)


_made = shutil.ignore_patterns(".toolgate", "__pycache__")


async def _opened(shop: Path) -> str:
    """An agent that works for Ann, and its key."""
    settings = configuration.load(shop / "toolgate.toml", {})
    async with Toolgate.open(settings) as gate:
        await gate.tenancy.set_agent("acme", "support")
        fresh = await gate.tenancy.add_key(Role.AGENT, tenant="acme", agent="support", user="ann")
    return fresh.secret
