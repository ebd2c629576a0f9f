"""The policy in this process. For one thread: the engine cannot be handed to another.

An evaluation holds the interpreter until it ends; there is no timer that could stop it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import orjson

from toolgate.caller import Action
from toolgate.engines import smoke
from toolgate.engines.bundle import Bundle
from toolgate.engines.interpreter import RegoError
from toolgate.engines.shelf import Shelf
from toolgate.errors import PolicyUnavailable
from toolgate.gate.policy import Health
from toolgate.spec.tool import ToolSpec

_RULES = {
    Action.VIEW.value: smoke.LISTED,
    Action.REQUEST.value: smoke.CALL,
    Action.ENABLE.value: smoke.ALLOW,
}
_LISTS = frozenset({list, set})


class Rego:
    """A policy that decides here."""

    def __init__(self, bundle: Bundle) -> None:
        self._problem = ""
        self._take(bundle)

    @property
    def revision(self) -> str:
        """Names the policy."""
        return self._bundle.revision

    @property
    def reads(self) -> frozenset[str]:
        """Which parts of a single call it looks at."""
        return self._bundle.reads

    async def swap(self, bundle: Bundle) -> None:
        """Decide by another policy from now on."""
        self._take(bundle)
        self._problem = ""

    def note(self, problem: str) -> None:
        """A policy could not be taken; the last good one stays."""
        self._problem = problem

    async def allows(self, document: Mapping[str, Any]) -> bool:
        """Whether this `input` is allowed."""
        rule = _RULES.get(document["action"])
        value = self._ask(rule, document) if rule is not None else None
        if value is not True and value is not False and value is not None:
            raise PolicyUnavailable("The policy says neither true nor false; nothing ran.")
        return value is True

    async def visible(
        self, document: Mapping[str, Any], tools: Sequence[ToolSpec]
    ) -> frozenset[str]:
        """Of these tools, those that may be seen."""
        if not tools:
            return frozenset()
        asked = {**document, "action": Action.VIEW.value}
        if self._bundle.by_name:
            asked["names"] = [spec.name for spec in tools]
        else:
            asked["tools"] = self._shelved(tools)
        names = self._ask(smoke.VISIBLE, asked)
        if type(names) not in _LISTS:
            raise PolicyUnavailable("The policy gives no list of tools; none is shown.")
        return frozenset(cast("list[str]", names))

    async def reasons(self, document: Mapping[str, Any]) -> tuple[str, ...]:
        """Why this `input` is refused."""
        return tuple(sorted(map(str, self._ask(smoke.REASONS, document) or ())))

    def health(self) -> Health:
        """Well, unless a newer policy could not be taken."""
        return Health(
            engine="rego", ok=not self._problem, problem=self._problem, revision=self.revision
        )

    async def close(self) -> None:
        """Nothing is open."""

    def _take(self, bundle: Bundle) -> None:
        self._interpreter = smoke.interpreter_of(bundle)
        self._shelf = Shelf()
        self._bundle = bundle

    def _shelved(self, tools: Sequence[ToolSpec]) -> dict[str, str]:
        keys, changed = self._shelf.keys_of(tools)
        if changed:
            data = {**self._bundle.data, "toolgate_tools": self._shelf.documents}
            self._interpreter.set_data(data)
        return keys

    def _ask(self, rule: str, document: Mapping[str, Any]) -> Any:
        try:
            return self._interpreter.ask(rule, orjson.dumps(document))
        except RegoError as error:
            raise PolicyUnavailable(
                f"The policy cannot be evaluated: {str(error).rstrip('.')}."
            ) from None
