"""What is not well is told: by `/readyz`, by the log, and to an admin in words."""

from pathlib import Path
from typing import Any

import pytest

from tests.house import until
from tests.server.serving import Serving
from tests.servers.redis import Redis

REFUSES = 'package toolgate\n\nbanned["echo"] contains "no echo" if true\n'
BROKEN = 'package toolgate\n\nbanned["echo"] contains "no echo" if {\n'
# A port that nobody listens on, and nobody may.
NOBODY = "127.0.0.1:1"


def settings(root: Path, text: str) -> None:
    (root / "toolgate.toml").write_text(text, "utf-8")


def ready(server: Serving) -> tuple[int, str, list[str]]:
    answer = server.get("/readyz")
    return answer.status, answer.body["status"], answer.body["unhealthy_engines"]


def says_hello(server: Serving) -> int:
    key = server.greeting["keys"]["agent"]
    return server.call("echo", {"text": "hello"}, key=key).status


def engines(server: Serving) -> dict[str, dict[str, Any]]:
    told = server.get("/v1/admin/policies", server.greeting["keys"]["admin"]).body["engines"]
    return {one["engine"]: one for one in told}


@pytest.mark.req("G3", "G7")
async def test_a_broken_file_keeps_the_last_good_policy_and_is_told(tmp_path: Path) -> None:
    settings(tmp_path, "[policy]\nrefresh = 0.05\n")
    file = tmp_path / "policies" / "mine.rego"
    file.parent.mkdir()
    with Serving(tmp_path) as server:
        assert (ready(server), says_hello(server)) == ((200, "ready", []), 200)
        file.write_text(REFUSES, "utf-8")
        await until(lambda: says_hello(server) == 404)
        await until(lambda: "the policy is now" in server.log)
        file.write_text(BROKEN, "utf-8")
        await until(lambda: ready(server) == (200, "degraded", ["rego"]))
        assert says_hello(server) == 404, "the last good one stays"
        assert "the policy stays as it was" in server.log
        assert "mine.rego:" in server.log
        told = engines(server)["rego"]
        assert (told["ok"], "mine.rego:" in told["problem"]) == (False, True)
        assert server.get("/healthz").status == 200
        file.unlink()
        await until(lambda: "no Rego file is left" in engines(server)["rego"]["problem"])
        assert (ready(server), says_hello(server)) == ((200, "degraded", ["rego"]), 404)
        assert "no Rego file is left" in server.log
        file.write_text(REFUSES.replace("echo", "other"), "utf-8")
        await until(lambda: ready(server) == (200, "ready", []))
        assert says_hello(server) == 200


@pytest.mark.req("G7")
def test_a_policy_server_that_is_away_refuses_and_is_told(tmp_path: Path) -> None:
    settings(tmp_path, f'[policy]\nengine = "opa"\nurl = "http://{NOBODY}"\n')
    with Serving(tmp_path) as server:
        assert ready(server) == (503, "degraded", ["opa"])
        assert says_hello(server) == 503
        assert engines(server)["opa"]["problem"]
        assert "engine opa is unhealthy" in server.log


@pytest.mark.req("G8")
async def test_a_node_decides_without_what_it_shares(tmp_path: Path) -> None:
    settings(tmp_path, f'[cache]\nurl = "redis://{NOBODY}/0"\n')
    with Serving(tmp_path) as server:
        await until(lambda: ready(server) == (200, "degraded", ["redis"]))
        assert says_hello(server) == 200
        assert engines(server)["redis"]["problem"]


@pytest.mark.req("G8")
async def test_what_is_shared_and_well_is_told_too(tmp_path: Path, redis_server: Redis) -> None:
    settings(tmp_path, f'[cache]\nurl = "{redis_server.url}"\n')
    with Serving(tmp_path) as server:
        await until(lambda: ready(server) == (200, "ready", []))
        assert engines(server).keys() == {"rego", "redis"}
        assert engines(server)["redis"]["ok"] is True


@pytest.mark.req("G3")
def test_a_server_that_only_observes_says_so(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "mine.rego").write_text(REFUSES, "utf-8")
    with Serving(tmp_path) as server:
        assert (server.greeting["mode"], says_hello(server)) == ("enforce", 404)
        keys = server.greeting["keys"]
        assert "only observes" not in server.log
    settings(tmp_path, '[policy]\nmode = "observe"\n')
    with Serving(tmp_path) as server:
        assert server.greeting["mode"] == "observe"
        assert "The policy only observes" in server.log
        assert server.call("echo", {"text": "hello"}, key=keys["agent"]).status == 200
        told = server.get("/v1/tools/echo/explain?agent=assistant", keys["admin"]).body
        assert (told["allowed"], told["observed"]) == (True, True)
