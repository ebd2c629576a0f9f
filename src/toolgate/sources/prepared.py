"""A source whose tools need something to be found out before it is known whether they can run."""

from collections.abc import Awaitable, Callable, Sequence

from toolgate.catalog.source import Source
from toolgate.spec.tool import ToolSpec


class PreparedSource:
    """As the source that it stands for."""

    def __init__(
        self, source: Source, prepare: Callable[[Sequence[ToolSpec]], Awaitable[None]]
    ) -> None:
        self._source = source
        self._prepare = prepare

    @property
    def name(self) -> str:
        """Which one it is, in words for an operator."""
        return self._source.name

    @property
    def required(self) -> bool:
        """Whether the first start stops when it fails."""
        return self._source.required

    async def load(self) -> Sequence[ToolSpec]:
        """Its specs, once what they need is known."""
        specs = await self._source.load()
        await self._prepare(specs)
        return specs
