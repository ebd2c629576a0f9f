"""Which sandbox programs run in: the first that holds when it is tried; else nothing runs."""

from collections.abc import Callable, Mapping, Sequence

from toolgate.errors import ProviderUnavailable
from toolgate.net.guard import Guard
from toolgate.sandbox import bubblewrap, container, gvisor
from toolgate.sandbox.governed import Governed
from toolgate.sandbox.kind import Kind
from toolgate.sandbox.policy import Policy
from toolgate.sandbox.probing import weakness
from toolgate.sandbox.programs import Programs
from toolgate.sandbox.sandbox import Finished, Running
from toolgate.settings.outward import Sandbox as Settings

# By the name in the settings.
_KINDS: Mapping[str, Callable[[Settings], Kind | str]] = {
    "bubblewrap": bubblewrap.found,
    "gvisor": gvisor.found,
    "container": container.found,
}
# In the order in which `auto` tries them: a container needs an image that somebody has chosen.
_BY_ITSELF = ("bubblewrap", "gvisor")
# What was looked at and does not keep programs in, whatever is installed.
_DOES_NOT_HOLD = {
    "sandlock": "sandlock 0.9 does not hold: where a path is denied, a link leads a program out of "
    "its folders to write; and it may change modes and dates of what it may only read"
}
# What to do where one does not hold; the reason follows.
_ADVICE = {
    "bubblewrap": "Install a bubblewrap that has --bind-fd",
    "gvisor": 'Mend what gVisor lacks, or set [sandbox] kind = "bubblewrap", which needs no root',
    "container": "Look at the engine and its image",
    "sandlock": 'Set [sandbox] kind = "bubblewrap"',
}
# What was found of each, for as long as this process runs: what is installed later needs a restart.
TRIED: dict[tuple[str, str, str], Kind | str] = {}


class NoSandbox(ProviderUnavailable):
    """None holds here; nothing ran. A moment later there is none either."""

    retryable = False


class Refusing:
    """No sandbox holds here: nothing runs, and whoever asks is told why."""

    # ruff: noqa: ARG002 - whatever it is asked, the answer is the same

    name = "none"

    def __init__(self, refusal: str) -> None:
        self.refusal = refusal

    async def run(
        self, argv: Sequence[str], policy: Policy, *, stdin: bytes = b"", folder: str = ""
    ) -> Finished:
        raise NoSandbox(self.refusal)

    async def start(self, argv: Sequence[str], policy: Policy, *, folder: str = "") -> Running:
        raise NoSandbox(self.refusal)


async def chosen(
    settings: Settings,
    *,
    protected: Sequence[str] = (),
    hidden: Sequence[str] = (),
    guard: Guard | None = None,
) -> Governed | Refusing:
    """The sandbox that the settings name, tried; with `auto` the first of all that holds.

    `protected`: what no program may write, wherever it lies and though it is not there yet.
    `hidden`: folders that none may read either.
    `guard`: where the hosts that a program names may lead.
    """
    reasons: dict[str, str] = {}
    for name in _named(settings):
        found = await _tried(name, settings)
        if not isinstance(found, str):
            return Governed(Programs(found, guard), settings, protected, hidden)
        reasons[name] = found
    return Refusing(_refusal(reasons))


def known_refusal(settings: Settings) -> str:
    """Why none holds, as far as that is known without trying one; empty where one may hold."""
    reasons: dict[str, str] = {}
    for name in _named(settings):
        found = _looked_for(name, settings)
        if not isinstance(found, str):
            return ""
        reasons[name] = found
    return _refusal(reasons)


def _named(settings: Settings) -> Sequence[str]:
    return _BY_ITSELF if settings.kind == "auto" else (settings.kind,)


def _refusal(reasons: Mapping[str, str]) -> str:
    """By the kinds in the order in which they were tried."""
    told = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
    advice = _ADVICE[next(iter(reasons))]
    return f"No sandbox holds on this machine, so no program runs. {advice}. {told}."


async def _tried(name: str, settings: Settings) -> Kind | str:
    found = _looked_for(name, settings)
    key = _key(name, settings)
    if isinstance(found, str) or key in TRIED:
        return found
    TRIED[key] = await weakness(Programs(found), counts=found.counts) or found
    return TRIED[key]


def _looked_for(name: str, settings: Settings) -> Kind | str:
    """What was found of it; where it was not tried yet, whether it is there at all."""
    if name in _DOES_NOT_HOLD:
        return _DOES_NOT_HOLD[name]
    key = _key(name, settings)
    if key in TRIED:
        return TRIED[key]
    found = _KINDS[name](settings)
    if isinstance(found, str):
        TRIED[key] = found
    return found


def _key(name: str, settings: Settings) -> tuple[str, str, str]:
    return name, settings.image, settings.runtime
