"""Real documents beside the checkout, and small ones that tests write themselves."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from toolgate.sources.openapi import reading
from toolgate.sources.openapi.opened import open_document
from toolgate.sources.openapi.options import Options
from toolgate.sources.openapi.report import Imported

REAL = Path(__file__).parents[3] / "shared" / "data" / "openapi"
ADDRESS = "https://docs.example.com/openapi.yaml"


def real(name: str) -> bytes:
    """One of the real documents; where they are absent, the test is skipped."""
    path = REAL / f"{name}.yaml.gz"
    if not path.is_file():
        pytest.skip("skipped: no ../shared/data beside this checkout")
    return gzip.decompress(path.read_bytes())


def taken(raw: bytes | dict[str, Any], options: Options | None = None, **more: Any) -> Imported:
    """A document's tools and report."""
    text = raw if isinstance(raw, bytes) else json.dumps(raw).encode()
    opened = open_document(text, file="api.yaml")
    return reading.read(opened, options or Options(address=ADDRESS), file="api.yaml", **more)


def document(paths: dict[str, Any], version: str = "3.0.3", **more: Any) -> dict[str, Any]:
    """A small document with these paths."""
    return {
        "openapi": version,
        "info": {"title": "Small", "version": "1"},
        "servers": [{"url": "https://api.example.com/v1"}],
        "paths": paths,
        **more,
    }


def tools(found: Imported) -> dict[str, dict[str, Any]]:
    """By name."""
    return {tool["name"]: tool for tool in found.tools}


def schema(found: Imported, name: str) -> dict[str, Any]:
    """The arguments' schema of a tool."""
    return tools(found)[name]["input_schema"]
