"""Secrets that commands are handed as variables: whose they are, and out of what they say."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from toolgate.net.hidden import forms, without, without_begun
from toolgate.sandbox.sandbox import Ended, Finished
from toolgate.settings.outward import CommandSecret
from toolgate.spec.secret import LEAST_TEXT


class Secrets:
    """Those of the settings. A value is handed to the tools that its section names alone."""

    def __init__(
        self,
        given: Mapping[str, CommandSecret] = MappingProxyType({}),
        environ: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._given = given
        self._values = {name: environ.get(one.value_env, "") for name, one in given.items()}

    def variables(self, tool: str, wanted: Mapping[str, str]) -> dict[str, str]:
        """The values by variable, for this tool; `ValueError` says why not."""
        return {variable: self._value(tool, name) for variable, name in wanted.items()}

    def _value(self, tool: str, name: str) -> str:
        secret = self._given.get(name)
        if secret is None:
            raise ValueError(
                f"names the secret {name[:60]!r}, which the settings lack; write "
                "[providers.shell.secrets.NAME] with value_env and tools"
            )
        if tool not in secret.tools:
            raise ValueError(
                f"names the secret {name!r}, which is not this tool's; if it may have it, add "
                f"{tool!r} to tools of [providers.shell.secrets.{name}]"
            )
        value = self._values[name]
        if len(value) < LEAST_TEXT or "\0" in value:
            raise ValueError(
                f"names the secret {name!r}, whose variable {secret.value_env} is not set, or is "
                "too short to be known again in what a program says"
            )
        return value


def hidden_of(values: Mapping[str, str]) -> tuple[bytes, ...]:
    """How what a program is handed in secret may stand in what it says."""
    if not values:
        return ()
    # A key of several lines is told line by line as well.
    lines = (one for value in values.values() for one in value.splitlines())
    return forms({*values.values(), *(one for one in lines if len(one) > 2 * LEAST_TEXT)})


def covered(finished: Finished, hidden: tuple[bytes, ...]) -> Finished:
    """What a program said, without any of these."""
    if not hidden:
        return finished
    stdout, stderr = without(finished.stdout, hidden), without(finished.stderr, hidden)
    if finished.ended is not Ended.BY_ITSELF:
        # It may have been cut off in the middle of one.
        stdout, stderr = without_begun(stdout, hidden), without_begun(stderr, hidden)
    return msgspec.structs.replace(finished, stdout=stdout, stderr=stderr)
