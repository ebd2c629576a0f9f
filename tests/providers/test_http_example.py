"""The example of the docs, against a service on loopback: in a program and on the command line."""

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.house import ME
from tests.providers.http_tools import VALUE
from tests.providers.service import Answer, Seen, Service, answer, service
from tests.server.serving import COMMAND
from toolgate import Toolgate

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "service"
HOST = "desk.example.com"
TICKETS = [{"id": "T-1", "title": "It is slow"}]


def desk(seen: Seen) -> Answer:
    if seen.headers.get("authorization") != f"Bearer {VALUE}":
        return answer({"title": "Who are you?"}, 401)
    if seen.method == "GET":
        return answer({"data": {"items": TICKETS}})
    return answer({"comment": {"id": 7, "key": seen.headers["idempotency-key"]}}, 201)


def copied(root: Path, far: Service) -> Path:
    """The example with the service's address, which an operator lets it reach."""
    shutil.copytree(EXAMPLE, root, dirs_exist_ok=True)
    for file in (root / "toolgate.toml", root / "tools" / "desk.yaml"):
        text = file.read_text("utf-8")
        file.write_text(text.replace(f"https://{HOST}", far.url).replace(HOST, far.place), "utf-8")
    settings = root / "toolgate.toml"
    more = f'\n[net]\nallow = ["{far.place}"]\n'
    settings.write_text(settings.read_text("utf-8") + more, "utf-8")
    return settings


async def printed(root: Path, tool: str, args: dict[str, Any]) -> tuple[int, bytes]:
    given = (*COMMAND, "call", tool, "--args", orjson.dumps(args).decode(), "--json")
    process = await asyncio.create_subprocess_exec(
        *given,
        cwd=root,
        env={**os.environ, "DESK_TOKEN": VALUE, "NO_COLOR": "1"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    told, _ = await process.communicate()
    return process.returncode or 0, told


@pytest.mark.req("P2", "C2")
async def test_the_example_runs_in_a_program_and_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with service() as far:
        far.answers = desk
        settings = copied(tmp_path, far)
        monkeypatch.setenv("DESK_TOKEN", VALUE)
        async with Toolgate.open(settings) as gate:
            assert not gate.catalog.current.unusable
            args = {"text": "slow & old", "states": ["open", "closed"]}
            found = await gate.call("find_tickets", args, caller=ME)
            assert found.data == TICKETS
            assert far.seen[-1].target == "/v1/tickets?q=slow%20%26%20old&state=open&state=closed"
            comment = {"ticket": "T-1 #2", "text": "We look."}
            written = await gate.call("comment_on_ticket", comment, caller=ME)
            assert written.ok
            seen = far.seen[-1]
            assert seen.target == "/v1/tickets/T-1%20%232/comments"
            assert seen.json == {"comment": {"text": "We look.", "public": True}}
            assert seen.headers["x-source"] == "toolgate"
            assert written.data["comment"]["key"] == seen.headers["idempotency-key"]
        code, told = await printed(tmp_path, "find_tickets", {"text": "slow"})
        assert (code, orjson.loads(told)["data"]) == (0, TICKETS)
        far.say(answer({"title": "Closed for today", "token": VALUE}, 403))
        code, told = await printed(tmp_path, "find_tickets", {"text": "slow"})
        assert code != 0
        assert b"Closed for today" in told
        assert VALUE.encode() not in told


async def test_without_its_secret_the_example_says_what_is_missing(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    async with Toolgate.open(tmp_path / "toolgate.toml") as gate:
        told = gate.catalog.current.unusable["find_tickets"]
    assert told == (
        "config.auth.secret names the secret 'desk', whose variable DESK_TOKEN is not set"
    )
