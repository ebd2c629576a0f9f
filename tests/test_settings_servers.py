"""Settings of MCP servers: from a file, or from the environment, where passwords belong."""

from pathlib import Path

import pytest

from tests.test_settings import problems
from toolgate.configuration import load


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "toolgate.toml"


def test_a_server_can_come_from_the_environment(file: Path) -> None:
    file.touch()
    variables = {
        "TOOLGATE_MCP__SERVERS__A__URL": "http://u:p@h/mcp",
        "TOOLGATE_MCP__SERVERS__A__HEADERS_ENV__X-Key": "TOOLGATE_MCP_KEY",
        "TOOLGATE_MCP_KEY": "k",
        "TOOLGATE_MCP__SERVERS__A__TIMEOUT": "2.5",
    }
    server = load(file, variables).mcp.servers["a"]
    assert (server.url, server.timeout) == ("http://u:p@h/mcp", 2.5)
    assert server.headers_env == {"X-Key": "TOOLGATE_MCP_KEY"}


def test_a_password_in_the_address_of_a_server_is_not_written_in_the_file(file: Path) -> None:
    [told] = problems(file, '[mcp.servers.a]\nurl = "https://u:p@h/mcp"')
    assert told == (
        "LINE 2: mcp.servers.a.url holds a password; leave it out here and set "
        "TOOLGATE_MCP__SERVERS__A__URL"
    )


@pytest.mark.parametrize("text", ["", 'url = "http://h"\ncommand = ["x"]'], ids=["neither", "both"])
def test_a_server_has_a_command_or_an_address(file: Path, text: str) -> None:
    [told] = problems(file, f"[mcp.servers.a]\n{text}\ntimeout = 1")
    assert told.endswith("mcp.servers.a: a server has a command or a url, and not both")
