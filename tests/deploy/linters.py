"""What `make services` brings to hold deployment files against, and the files themselves."""

import shutil
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import yaml

from tests.servers.process import ROOT, absent, services

DEPLOY = ROOT / "deploy"
_COMPOSE = "check_jsonschema/builtin_schemas/vendor/compose-spec.json"
_KUBERNETES = "kubernetes_validate/kubernetes-json-schema/v{version}.0-local-strict/{name}.json"


def documents(file: Path) -> list[dict[str, Any]]:
    """What a YAML file holds, anchors and merges resolved."""
    return list(yaml.safe_load_all(file.read_text("utf-8")))


def hadolint(dockerfile: str) -> list[str]:
    """The codes of what it finds."""
    brought = services() / "hadolint" / "wheel" / "bin" / "hadolint"
    program = str(brought) if brought.is_file() else shutil.which("hadolint")
    if program is None:
        raise absent("hadolint")
    done = subprocess.run(
        [program, "--format=json", "-"], input=dockerfile.encode(), capture_output=True, check=False
    )
    assert not done.stderr, done.stderr
    return [found["code"] for found in orjson.loads(done.stdout)]


def compose_lint(file: Path) -> list[str]:
    """The rules that a compose file breaks, of those that are not left out with a reason."""
    command = [sys.executable, "-m", "compose_lint", "check", "--format=json", "--strict-config"]
    done = subprocess.run(
        [*command, f"--config={DEPLOY / 'compose' / 'lint.yaml'}", "--no-env", str(file)],
        env={"PYTHONPATH": str(_packed("compose-lint"))},
        capture_output=True,
        check=False,
    )
    assert done.stdout, done.stderr
    return [
        one["rule_id"] for one in orjson.loads(done.stdout)["findings"] if not one["suppressed"]
    ]


def compose_schema() -> dict[str, Any]:
    """The published schema of compose files."""
    with zipfile.ZipFile(_packed("compose-schema")) as wheel:
        return orjson.loads(wheel.read(_COMPOSE))


def kubernetes_schema(version: str, api: str, kind: str) -> dict[str, Any]:
    """The schema of one kind in one version, in which nothing unknown may stand."""
    group, _, of = api.rpartition("/")
    words = [kind, group.partition(".")[0], of]
    own = _kubernetes(version, "-".join(word for word in words if word).lower())
    return {**own, "$defs": _kubernetes(version, "_definitions")["$defs"]}


@cache
def _kubernetes(version: str, name: str) -> dict[str, Any]:
    text = _kubernetes_wheel().read(_KUBERNETES.format(version=version, name=name))
    # What it refers to in the other file, in this one.
    return orjson.loads(text.replace(b"/api/_definitions.json", b""))


@cache
def _kubernetes_wheel() -> zipfile.ZipFile:
    # Its list alone is seventeen thousand names long.
    return zipfile.ZipFile(_packed("kubernetes-schemas"))


def _packed(name: str) -> Path:
    found = sorted((services() / name).glob("*.whl"))
    if not found:
        raise absent(name)
    return found[0]
