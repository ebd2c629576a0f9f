"""Which sandbox programs run in: the first that holds when it is tried; else nothing runs."""

from collections.abc import Callable, Mapping, Sequence

from toolgate.errors import ProviderUnavailable
from toolgate.sandbox import bubblewrap, gvisor
from toolgate.sandbox.governed import Governed
from toolgate.sandbox.kind import Kind
from toolgate.sandbox.policy import Policy
from toolgate.sandbox.probing import weakness
from toolgate.sandbox.programs import Programs
from toolgate.sandbox.sandbox import Finished, Running
from toolgate.settings.outward import Sandbox as Settings

# By the name in the settings, in the order in which `auto` tries them.
_KINDS: Mapping[str, Callable[[Settings], Kind | str]] = {
    "bubblewrap": bubblewrap.found,
    "gvisor": gvisor.found,
}
# What was found of each, for as long as this process runs: what is installed later needs a restart.
TRIED: dict[tuple[str, str], Kind | str] = {}


class Refusing:
    """No sandbox holds here: nothing runs, and whoever asks is told why."""

    # ruff: noqa: ARG002 - whatever it is asked, the answer is the same

    name = "none"

    def __init__(self, refusal: str) -> None:
        self.refusal = refusal

    async def run(
        self, argv: Sequence[str], policy: Policy, *, stdin: bytes = b"", folder: str = ""
    ) -> Finished:
        raise ProviderUnavailable(self.refusal)

    async def start(self, argv: Sequence[str], policy: Policy, *, folder: str = "") -> Running:
        raise ProviderUnavailable(self.refusal)


async def chosen(settings: Settings, *, protected: Sequence[str] = ()) -> Governed | Refusing:
    """The sandbox that the settings name, tried; with `auto` the first of all that holds.

    `protected`: what no program may write, wherever it lies and though it is not there yet.
    """
    reasons: list[str] = []
    for name in _KINDS if settings.kind == "auto" else (settings.kind,):
        found = await _tried(name, settings)
        if not isinstance(found, str):
            return Governed(Programs(found), settings, protected)
        reasons.append(f"{name}: {found}")
    return Refusing(
        "No sandbox holds on this machine, so no program runs. Install bubblewrap 0.8 or later, or "
        f"see `toolgate doctor`. {'; '.join(reasons)}."
    )


async def _tried(name: str, settings: Settings) -> Kind | str:
    key = (name, settings.image)
    if key not in TRIED:
        found = _KINDS[name](settings) if name in _KINDS else "it is not offered yet"
        if not isinstance(found, str):
            found = await weakness(Programs(found), counts=found.counts) or found
        TRIED[key] = found
    return TRIED[key]
