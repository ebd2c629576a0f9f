"""The hand that makes changes: whose it is, and what a change is checked against."""

import asyncio
import copy
from collections.abc import Callable, Collection, Mapping
from typing import Self

from toolgate.errors import InvalidRequest
from toolgate.tenancy.audit import Actor
from toolgate.tenancy.changes import Change
from toolgate.tenancy.directory import UNSIGNED, Directory, RelationWriter
from toolgate.tenancy.names import nearest, words
from toolgate.tenancy.present import Present
from toolgate.tenancy.uses import Uses
from toolgate.tenancy.world import World

# The names of all tools, or `None` where nobody can tell.
Known = Callable[[], Collection[str] | None]
# All policy modules as they would be; `InvalidPolicy` where they cannot be used.
Check = Callable[[Mapping[str, str]], object]
_MOST_WHO = 200


class Hand:
    """What every verb needs: the world as it is, and a way to change it under a name."""

    def __init__(
        self,
        directory: Directory,
        *,
        known: Known = lambda: None,
        relations: RelationWriter | None = None,
        check: Check | None = None,
    ) -> None:
        """`known` names the tools there are, so that a flag cannot miss its tool by a typo.

        `relations` is where they are kept, if not in the directory; `check` reads policies before
        they are stored.
        """
        self._directory = directory
        self._present = Present(directory)
        self.uses = Uses(directory)
        self._known = known
        self._elsewhere = relations
        self._check = check
        # For changes that are made in several steps.
        self._stepping = asyncio.Lock()
        self._actor = UNSIGNED

    @property
    def world(self) -> World:
        """The world as it was last seen."""
        return self._present.world

    def by(self, who: str, why: str = "") -> Self:
        """The same tenancy; what is changed through it is on record under this name."""
        if not isinstance(who, str) or not who.strip() or len(who) > _MOST_WHO:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidRequest(
                f"Say who makes the change, in at most {_MOST_WHO} characters. Nothing was changed."
            )
        signed = copy.copy(self)
        signed._actor = Actor(words("name of who makes the change", who), words("reason", why))  # noqa: SLF001  our own
        return signed

    def _tool(self, name: str) -> str:
        known = self._known()
        if known is None or name in known:
            return name
        raise InvalidRequest(
            f"There is no tool {name[:80]!r} in the catalog; nothing was changed."
            + nearest(name, known)
        )

    async def _put(self, *changes: Change) -> None:
        await self._present.put(changes, self._actor)
