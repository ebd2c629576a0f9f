"""Runs tools of plugins: functions of this process, of the version that a call was granted."""

from toolgate.plugins.offer import HELD, PROVIDER
from toolgate.providers.python import PythonProvider
from toolgate.spec.tool import ToolSpec


class PluginProvider(PythonProvider):
    """As any Python function; but only what a plugin offers, once it is agreed to."""

    def unusable(self, spec: ToolSpec) -> str | None:
        """Why it waits, or what is wrong with it."""
        if spec.origin.kind != PROVIDER:
            return "only a plugin's manifest says which of its functions are tools"
        held = spec.config.value().get(HELD)
        return str(held) if held else super().unusable(spec)
