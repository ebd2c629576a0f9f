"""The seam below a sandbox: what a kind of it has to be able to do, which is to begin a program."""

from collections.abc import Sequence
from typing import Protocol

from toolgate.sandbox.child import Child
from toolgate.sandbox.egress.proxy import Proxy
from toolgate.sandbox.pipes import Descriptors
from toolgate.sandbox.policy import Policy


class Begun(Protocol):
    """A program that is being started."""

    @property
    def child(self) -> Child:
        """What ends it."""
        ...

    async def ready(self) -> None:
        """Bind its limits and let it go. `ProviderUnavailable` where it cannot be."""
        ...

    def never_ran(self) -> bool:
        """Of one that is over by itself: whether the program's first instruction never came."""
        ...


class Kind(Protocol):
    """One way to keep programs in."""

    @property
    def name(self) -> str: ...

    @property
    def counts(self) -> bool:
        """Whether one process too many is refused; else everything is ended by it."""
        ...

    @property
    def reaches(self) -> bool:
        """Whether a program can be given a proxy, and with it the hosts of its policy."""
        ...

    def begin(
        self,
        argv: Sequence[str],
        policy: Policy,
        folder: str,
        opened: Descriptors,
        streams: tuple[int, int, int],
        proxy: Proxy | None = None,
    ) -> Begun:
        """Start it on these streams, without waiting; `opened` closes what it opens for that.

        `proxy` is the only way out of it, and is closed at its end; without one there is none.
        `ProviderUnavailable` where this cannot be kept in.
        """
        ...
