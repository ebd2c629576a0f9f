"""The house opened although something in it cannot be read: who administers it still can."""

import os
from contextlib import AsyncExitStack
from typing import NamedTuple

from toolgate.bootstrap import Toolgate
from toolgate.errors import CatalogError, InvalidPolicy, ToolgateError
from toolgate.settings.settings import Settings

# Where no policies are: it is there, and no folder.
_NOWHERE = os.devnull


class Opened(NamedTuple):
    """The gate, and what it was opened without."""

    gate: Toolgate
    problems: tuple[ToolgateError, ...]

    @property
    def has_definitions(self) -> bool:
        """Whether the tool definitions could be read."""
        return not any(isinstance(one, CatalogError) for one in self.problems)


async def open_despite(
    settings: Settings, stack: AsyncExitStack, *, definitions: bool = False
) -> Opened:
    """The same store; without definitions, or without policies, where those cannot be used.

    `definitions`: those are needed, and an error in them stays one.
    """
    problems: list[ToolgateError] = []
    while True:
        try:
            gate = await stack.enter_async_context(
                Toolgate.open(settings, servers=False, scheduled=False, queued=False)
            )
        except CatalogError as error:
            if definitions or not (settings.tools.files or settings.tools.urls):
                raise
            settings = _without_definitions(settings)
            problems.append(error)
        except InvalidPolicy as error:
            if settings.policy.path == _NOWHERE:
                raise
            settings = _without_policies(settings)
            problems.append(error)
        else:
            return Opened(gate, tuple(problems))


def _without_definitions(settings: Settings) -> Settings:
    tools = settings.tools.model_copy(update={"files": (), "urls": ()})
    return settings.model_copy(update={"tools": tools})


def _without_policies(settings: Settings) -> Settings:
    """In this process: a server that others ask keeps the policy it has."""
    given = {"path": _NOWHERE, "engine": "rego", "bundled": True}
    return settings.model_copy(update={"policy": settings.policy.model_copy(update=given)})
