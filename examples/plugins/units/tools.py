"""What manifest.json names. Other modules of the folder are imported as `from . import other`."""

import json
import pkgutil
from collections.abc import Mapping
from typing import Any

from toolgate.errors import ToolError

# A file of the folder, as it was agreed to: what is written later is not read.
KINDS = json.loads(pkgutil.get_data(__package__ or "", "units.json") or b"{}")


def convert(value: float, unit: str, to: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """`settings` is handed in: what the operator has set, or the defaults of the manifest."""
    kind = next((one for one in KINDS.values() if unit in one), None)
    if kind is None or to not in kind:
        raise ToolError(f"{unit} cannot be converted to {to}. Name two units of one kind.")
    factor, offset = kind[unit]
    base = value * factor + offset
    factor, offset = kind[to]
    found = (base - offset) / factor
    return {"value": float(f"{found:.{settings['digits']}g}"), "unit": to}
