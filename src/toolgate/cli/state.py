"""How a tool stands, in colours."""

from collections.abc import Mapping

STYLES: Mapping[str, str] = {"on": "green", "off": "yellow", "away": "yellow", "unusable": "red"}
