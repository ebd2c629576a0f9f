"""A server that other machines can reach starts only where somebody has a key for it."""

import subprocess
from pathlib import Path

import orjson
import pytest

from tests.house import open_gate
from tests.server.serving import COMMAND, Serving
from toolgate.tenancy.keys import Role

pytestmark = pytest.mark.req("V3")
BEYOND = '[server]\nhost = "0.0.0.0"\npublic_url = "https://tools.example"\n'


def refused(root: Path, said: str) -> dict[str, str]:
    (root / "toolgate.toml").write_text(said, "utf-8")
    ended = subprocess.run(
        [*COMMAND, "serve", "--config", "toolgate.toml", "--port", "0", "--json"],
        cwd=root,
        capture_output=True,
        timeout=50,
        check=False,
    )
    assert ended.returncode == 1, ended.stdout
    return orjson.loads(ended.stdout)["error"]


def test_beyond_this_machine_without_a_public_address_it_does_not_start(tmp_path: Path) -> None:
    assert "public_url" in str(refused(tmp_path, '[server]\nhost = "0.0.0.0"\n'))


async def test_beyond_this_machine_without_a_key_it_does_not_start(tmp_path: Path) -> None:
    told = refused(tmp_path, BEYOND)
    assert told["code"] == "no_keys"
    assert "toolgate keys add" in told["message"]
    async with open_gate(tmp_path) as gate:
        assert not gate.tenancy.world.keys, "none was made, and none shown"
        await gate.tenancy.add_tenant("acme")
        revoked = await gate.tenancy.add_key(Role.ADMIN, tenant="acme")
        await gate.tenancy.revoke_key(revoked.key.id)
        ended = await gate.tenancy.add_key(Role.ADMIN, tenant="acme")
        after = await gate.tenancy.rotate_key(ended.key.id, overlap="0")
        await gate.tenancy.revoke_key(after.key.id)
    assert refused(tmp_path, BEYOND)["code"] == "no_keys", "these open nothing"


async def test_with_a_key_it_starts(tmp_path: Path) -> None:
    async with open_gate(tmp_path) as gate:
        await gate.tenancy.add_tenant("acme")
        await gate.tenancy.add_key(Role.ADMIN, tenant="acme")
    (tmp_path / "toolgate.toml").write_text(BEYOND, "utf-8")
    with Serving(tmp_path, "--config", "toolgate.toml") as server:
        assert server.greeting["keys"] is None
