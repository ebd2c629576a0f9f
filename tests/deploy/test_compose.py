"""The compose file fits its schema and itself, and containers are shut but for what they need."""

import copy
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from scripts.services import SERVICES
from tests.deploy.linters import DEPLOY, compose_lint, compose_schema, documents
from tests.deploy.secrets import made
from tests.servers.fixtures import needed
from toolgate import configuration
from toolgate.cli.main import COMMANDS

FILE = DEPLOY / "compose.yaml"
COMPOSE = documents(FILE)[0]
PARTS: dict[str, dict[str, Any]] = COMPOSE["services"]
Part = dict[str, Any]


def misfits(compose: Any) -> list[str]:
    found = jsonschema_rs.Draft202012Validator(needed(compose_schema)).iter_errors(compose)
    return [error.message for error in found]


def loose(part: Part) -> list[str]:
    """What a container could do without."""
    found = [] if part.get("read_only") else ["may write"]
    found += [] if part.get("cap_drop") == ["ALL"] and "cap_add" not in part else ["capabilities"]
    found += [] if "no-new-privileges:true" in part.get("security_opt", ()) else ["may gain rights"]
    found += [f"no {bound}" for bound in ("mem_limit", "cpus", "pids_limit") if bound not in part]
    found += [f"port {port}" for port in part.get("ports", ()) if not port.startswith("127.0.0.1:")]
    # Our own image says itself as whom it runs.
    found += [] if "user" in part or "build" in part else ["runs as root"]
    found += [
        f"writes {one}" for one in part.get("volumes", ()) if one[0] == "." and one[-3:] != ":ro"
    ]
    return found


def test_the_compose_file_fits_its_schema() -> None:
    assert misfits(COMPOSE) == []
    wrong = copy.deepcopy(COMPOSE)
    wrong["services"]["opa"]["read_onli"] = True
    assert any("read_onli" in one for one in misfits(wrong))


def test_the_compose_file_has_no_known_weakness(tmp_path: Path) -> None:
    # Not where it lies: what is mounted from beside it would be root's own in root's home.
    file = tmp_path / "compose.yaml"
    file.write_bytes(FILE.read_bytes())
    assert needed(lambda: compose_lint(file)) == []
    weak = copy.deepcopy(COMPOSE)
    weak["services"]["opa"] |= {"privileged": True, "environment": {"PASSWORD": "hunter2hunter2"}}
    file.write_text(yaml.safe_dump(weak))
    assert {"CL-0002", "CL-0020"} <= {*compose_lint(file)}


@pytest.mark.parametrize("name", PARTS)
def test_containers_are_shut_but_for_what_they_need(name: str) -> None:
    assert loose(PARTS[name]) == []


_LOOSER: dict[str, Callable[[Part], object]] = {
    "may write": lambda part: part.pop("read_only"),
    "capabilities": lambda part: part.update(cap_add=["SYS_ADMIN"]),
    "may gain rights": lambda part: part.pop("security_opt"),
    "no mem_limit": lambda part: part.pop("mem_limit"),
    "port 5432:5432": lambda part: part.update(ports=["5432:5432"]),
    "runs as root": lambda part: part.pop("user"),
}


@pytest.mark.parametrize("what", _LOOSER)
def test_a_container_that_is_open_is_found(what: str) -> None:
    part = copy.deepcopy(PARTS["postgres"])
    _LOOSER[what](part)
    assert loose(part) == [what]


def test_what_a_container_names_is_there() -> None:
    for name, part in PARTS.items():
        for other, how in part.get("depends_on", {}).items():
            assert other in PARTS, name
            has_health = "test" in PARTS[other].get("healthcheck", {})
            assert has_health == (how["condition"] == "service_healthy"), (name, other)
        assert {*part["networks"]} <= {*COMPOSE["networks"]}
        for one in part.get("volumes", ()):
            source = one.partition(":")[0]
            is_there = (
                (DEPLOY / source).is_file() if source[0] == "." else source in COMPOSE["volumes"]
            )
            assert is_there, (name, one)


def test_only_toolgate_is_where_callers_are() -> None:
    assert {name for name, part in PARTS.items() if "front" in part["networks"]} == {
        "toolgate",
        "worker",
    }
    assert COMPOSE["networks"]["engines"] == {"internal": True}
    assert {name for name, part in PARTS.items() if "ports" in part} == {"toolgate"}


def test_the_servers_are_those_that_the_tests_start() -> None:
    tags = {name: part["image"].partition(":")[2] for name, part in PARTS.items()}
    assert tags["kafka"] == SERVICES["kafka"].version
    assert tags["opa"] == f"{SERVICES['opa'].version}-static"
    assert tags["spicedb"] == tags["relations"] == f"v{SERVICES['spicedb'].version}"
    assert SERVICES["postgres"].version.startswith(tags["postgres"].removesuffix("-bookworm"))
    assert SERVICES["redis"].version.startswith(tags["valkey"])


def test_what_our_image_is_told_is_a_command() -> None:
    told = {name: part["command"][0] for name, part in PARTS.items() if "build" in part}
    assert told == {"toolgate": "serve", "worker": "worker", "tables": "migrate"}
    assert {*told.values()} <= {*COMMANDS}


def test_secrets_are_made_once_and_for_nobody_else(tmp_path: Path) -> None:
    found = made(tmp_path)
    named = {Path(one).stem for part in PARTS.values() for one in part.get("env_file", ())}
    assert named == {*found}
    folder = tmp_path / "deploy" / "secrets"
    assert {one.stat().st_mode & 0o777 for one in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
    again = subprocess.run(["sh", folder.parent / "secrets.sh"], capture_output=True, check=True)
    assert b"nothing was changed" in again.stdout
    assert made(tmp_path) == found
    # Each password is one of its own, and none is written in a file that is kept.
    words = [found["postgres"][name] for name in found["postgres"]]
    assert len({*words}) == 4
    assert all(len(word) == 48 for word in words)


def test_the_settings_of_the_compose_file_are_settings(tmp_path: Path) -> None:
    settings = configuration.load(DEPLOY / "compose" / "toolgate.toml", made(tmp_path)["toolgate"])
    hosts = {
        one.partition("://")[2].rpartition("@")[2].partition(":")[0]
        for one in (
            settings.store.url,
            settings.cache.url,
            settings.policy.url,
            settings.relations.url,
            settings.queue.url,
        )
    }
    assert hosts == {"postgres", "valkey", "opa", "spicedb", "kafka"} <= {*PARTS}
    grace = PARTS["toolgate"]["stop_grace_period"]
    assert int(grace.removesuffix("s")) > settings.server.drain
