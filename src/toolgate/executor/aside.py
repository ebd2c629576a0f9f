"""A large output, as its caller gets it: its head, and where the rest can be read."""

from typing import Any

import msgspec

from toolgate.call import Output


class Aside(dict[str, Any]):
    """Stands for an output inside the chain, which may still need the whole of it."""

    def __init__(self, told: dict[str, Any], whole: Any) -> None:
        super().__init__(told)
        self.whole = whole


def whole(output: Output) -> Any:
    """All that the tool returned, for links that look into results."""
    data = output.data
    return data.whole if type(data) is Aside else data


def told(output: Output) -> Output:
    """The output as it leaves the chain, without what stands behind its head."""
    data = output.data
    return msgspec.structs.replace(output, data=dict(data)) if type(data) is Aside else output
