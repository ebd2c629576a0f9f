"""The plugin that `toolgate plugins new` writes: small, whole, and with a test that passes."""

import re

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,38}[a-z0-9])?\Z")

MANIFEST = """\
{
  "schema_version": "1.0",
  "name": "NAME",
  "version": "0.1.0",
  "description": "What these tools are for.",
  "enabled": true,
  "dependencies": [],
  "settings_schema": {
    "greeting": {"type": "string", "default": "Hello"}
  },
  "tools": [
    {
      "name": "TOOL",
      "description": "Greet somebody by name.",
      "module": "tools",
      "function": "greet",
      "category": "text",
      "parameters": {
        "name": {"type": "string", "description": "Who is greeted."}
      },
      "effect": "pure",
      "side_effects": ["read_only"]
    }
  ]
}
"""

TOOLS = '''\
"""The functions that manifest.json names."""

from collections.abc import Mapping
from typing import Any


def greet(name: str, settings: Mapping[str, Any]) -> dict[str, str]:
    """Greet somebody by name. `settings` is what the operator has set, or the defaults."""
    return {"text": f"{settings['greeting']}, {name}!"}
'''

TEST = '''\
"""Calls the tools as an agent would, through a gate of their own."""

from pathlib import Path

from toolgate.testing.plugin import called

HERE = Path(__file__).parent


def test_somebody_is_greeted_by_name() -> None:
    assert called(HERE, "TOOL", {"name": "Ada"}) == {"text": "Hello, Ada!"}


def test_the_greeting_can_be_set() -> None:
    said = called(HERE, "TOOL", {"name": "Ada"}, custom_config={"greeting": "Welcome"})
    assert said == {"text": "Welcome, Ada!"}
'''


def is_name(name: str) -> bool:
    """Whether a new plugin may be called this."""
    return _NAME.match(name) is not None


def tool_name(name: str) -> str:
    """What its first tool is called."""
    stem = re.sub(r"\W", "_", name)
    return f"greet_by_{stem}"


def files(name: str) -> dict[str, str]:
    """Its files, by their paths in its folder."""
    test = f"test_{re.sub(r'[^a-z0-9]', '_', name)}.py"
    texts = {"manifest.json": MANIFEST, "tools.py": TOOLS, test: TEST}
    tool = tool_name(name)
    return {path: text.replace("NAME", name).replace("TOOL", tool) for path, text in texts.items()}
