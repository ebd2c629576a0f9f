"""Where a variable is to be named, a secret is refused, and never repeated."""

from pathlib import Path

import pytest

from tests.cli.conftest import Run, write_tools
from toolgate.errors import InvalidRequest
from toolgate.server.admin.servers import checked
from toolgate.settings.part import is_variable

pytestmark = pytest.mark.req("P2", "P7", "V5")
SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"  # noqa: S105  a canary


@pytest.mark.parametrize(
    "given",
    ["MY_TOKEN", "http_proxy", "token2", "_X", "DB2_PASSWORD", "swagger_openapi_3_0_api_key"],
)
def test_names_of_variables_are_taken(given: str) -> None:
    assert is_variable(given)


@pytest.mark.parametrize(
    "given",
    ["", SECRET, "sk-live-abc", "sk_live_51Habcdefghij1234567890", "xoxb-1-a", "Bearer x", "1A",
     "d5f4dcc3b5aa765d61d8327deb882cf99", "A" * 200],
)  # fmt: skip
def test_what_looks_like_a_value_is_not(given: str) -> None:
    assert not is_variable(given)


@pytest.mark.parametrize("option", ["--secret-env", "--header-env"])
@pytest.mark.parametrize("given", [f"TOKEN={SECRET}", SECRET, f"={SECRET}", "TOKEN="])
def test_a_server_is_not_added_with_a_secret_for_a_variable(
    run: Run, option: str, given: str
) -> None:
    at = ("--at", "https://mcp.example") if option == "--header-env" else ()
    program = () if at else ("--", "prog")
    told = run("servers", "add", "mine", option, given, *at, *program)
    assert told.exit_code == 2
    assert "the name of the variable that holds it" in told.stderr
    assert "ghp_" not in told.stdout + told.stderr
    assert "mine" not in run("servers", "list").stdout


@pytest.mark.parametrize("field", ["secrets_env", "headers_env"])
def test_a_server_refuses_it_too_and_does_not_repeat_it(field: str) -> None:
    given = {"url": "https://mcp.example"} if field == "headers_env" else {"command": ("prog",)}
    with pytest.raises(InvalidRequest, match="the name of the variable") as refused:
        checked("mine", given | {field: {"TOKEN": SECRET}})
    assert "ghp_" not in str(refused.value)
    assert checked("mine", given | {field: {"TOKEN": "MY_TOKEN"}})


@pytest.mark.parametrize(
    "section",
    [
        '[providers.http.secrets.a]\nvalue_env = "{}"\nhosts = ["a.example"]\n',
        '[providers.composio]\napi_key_env = "{}"\n',
        '[providers.custom.a]\nuse = "a:b"\nsettings_env = {{key = "{}"}}\n',
        '[mcp.servers.a]\ncommand = "prog"\nsecrets_env = {{KEY = "{}"}}\n',
    ],
)
def test_settings_with_a_secret_for_a_variable_are_refused(
    run: Run, tmp_path: Path, section: str
) -> None:
    file = tmp_path / "toolgate.toml"
    file.write_text(section.format(SECRET), "utf-8")
    told = run("tools", "list")
    assert (told.exit_code, "the name of the variable" in told.stderr) == (1, True)
    assert "ghp_" not in told.stderr
    file.write_text(section.format("MY_TOKEN"), "utf-8")
    assert run("tools", "list").exit_code == 0


def test_what_to_do_follows_where_a_tool_comes_from(run: Run, tmp_path: Path) -> None:
    rows = "tools: [{{name: {}, provider: {}, config: {{url: x}}, effect: pure}}]\n"
    write_tools(tmp_path, rows.format("by_hand", "http"))
    write_tools(tmp_path, rows.format("by_import", "http"), name="shop.openapi.yaml")
    write_tools(tmp_path, rows.format("by_code", "python"), name="code.yaml")
    told = {name: run("explain", name).stdout for name in ("by_hand", "by_import", "by_code")}
    assert "in its definition, or in the settings" in told["by_hand"]
    assert "made from an OpenAPI document" in told["by_import"]
    assert "the module that it names" in told["by_code"]
