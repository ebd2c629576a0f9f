"""A sandbox within an operator's settings: it may be less, and never more."""

from collections.abc import Sequence

from msgspec.structs import replace

from toolgate.sandbox.policy import MEGABYTE, Policy, at_most
from toolgate.sandbox.roots import named
from toolgate.sandbox.sandbox import Finished, Running, Sandbox
from toolgate.settings.outward import Sandbox as Settings


class Governed:
    """Adds what the settings let every program read, and bounds the rest."""

    def __init__(
        self,
        sandbox: Sandbox,
        settings: Settings,
        protected: Sequence[str] = (),
        hidden: Sequence[str] = (),
    ) -> None:
        """`protected`: what no program may write, wherever it lies; `hidden`: nor read."""
        self._sandbox = sandbox
        self._settings = settings
        self._protected = tuple(protected)
        self._hidden = tuple(hidden)

    @property
    def name(self) -> str:
        return self._sandbox.name

    @property
    def refusal(self) -> str:
        """Why nothing can run; nothing where it can."""
        return ""

    async def run(
        self, argv: Sequence[str], policy: Policy, *, stdin: bytes = b"", folder: str = ""
    ) -> Finished:
        return await self._sandbox.run(argv, self._bounded(policy), stdin=stdin, folder=folder)

    async def start(self, argv: Sequence[str], policy: Policy, *, folder: str = "") -> Running:
        return await self._sandbox.start(argv, self._bounded(policy), folder=folder)

    def _bounded(self, policy: Policy) -> Policy:
        bounded = at_most(
            policy,
            memory=self._settings.memory * MEGABYTE,
            processes=self._settings.processes,
        )
        return replace(
            bounded,
            readable=(*named(policy.readable), *named(self._settings.readable)),
            writable=named(policy.writable),
            hosts=named(policy.hosts),
            protected=(*policy.protected, *self._protected),
            hidden=(*policy.hidden, *self._hidden),
        )
