"""Settings: read once, checked whole, and every mistake told with its place and the nearest key."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from toolgate import configuration
from toolgate.configuration import LATER, load
from toolgate.errors import SettingsInvalid
from toolgate.settings.settings import SECTIONS, Settings

EXAMPLES = sorted(Path(__file__).parents[1].glob("examples/settings/*.toml"))
SURFACE = {
    "server": {"host", "port", "public_url"},
    "store": {"url"},
    "tools": {"files", "urls", "builtin", "plugins", "roots"},
    "toolbox": {"default_timeout", "default_idempotency_ttl", "max_batch_size"},
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "toolgate.toml"


def problems(file: Path, text: str = "", **environment: str) -> list[str]:
    file.write_text(text, "utf-8")
    with pytest.raises(SettingsInvalid) as raised:
        load(file, environment)
    assert raised.value.message.startswith("The settings cannot be used:\n")
    return [str(problem).replace(f"{file}:", "LINE ") for problem in raised.value.problems]


def test_without_a_file_there_are_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    loaded = load(None, {})
    assert loaded == Settings(root=tmp_path)
    assert (loaded.server.host, loaded.server.port) == ("127.0.0.1", 8700)
    assert loaded.store.url == "sqlite:///.toolgate/toolgate.db"


def test_paths_start_from_the_files_folder(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.touch()
    monkeypatch.chdir(tmp_path.parent)
    assert load(file, {}).path("x") == tmp_path / "x"
    assert load(Path(tmp_path.name) / "toolgate.toml", {}).path("x") == tmp_path / "x"


def test_every_key_of_the_surface_is_taken_or_announced() -> None:
    for section, keys in SURFACE.items():
        known = set(SECTIONS[section].model_fields)
        later = {name for one in LATER if isinstance(one, tuple) for name in one[1:]}
        assert keys <= known | later


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        Settings().server.port = 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[server]\nprot = 1", "LINE 2: server.prot is not a setting; did you mean 'port'?"),
        ("\n\nserver.prot = 1", "LINE 3: server.prot is not a setting; did you mean 'port'?"),
        ('[server]\n"prot" = 1', "LINE 2: server.prot is not a setting; did you mean 'port'?"),
        ("server = {prot = 1}", "LINE 1: server.prot is not a setting; did you mean 'port'?"),
        ("[servr]\nport = 1", "LINE 1: [servr] is not a setting; did you mean 'server'?"),
        ("[servr]\nport = 1\nhost = 2", "LINE 1: [servr] is not a setting; did you mean 'server'?"),
        ("\nservr.port = 1", "LINE 2: [servr] is not a setting; did you mean 'server'?"),
        (
            "port = 1",
            f"LINE 1: port is not a setting; known here: {', '.join(SECTIONS)}",
        ),
        (
            'root = "/"',
            f"LINE 1: root is not a setting; known here: {', '.join(SECTIONS)}",
        ),
        (
            "[store]\nzzz = 1",
            (
                "LINE 2: store.zzz is not a setting; known here: url, connections, migrate_url, "
                "witness, row_security"
            ),
        ),
        (
            '[server]\nport = "x"',
            "LINE 2: server.port: input should be a valid integer (it is 'x')",
        ),
        (
            "[server]\nport = 70000",
            "LINE 2: server.port: input should be less than or equal to 65535 (it is 70000)",
        ),
        (
            "[server]\nport = true",
            "LINE 2: server.port: input should be a valid integer (it is True)",
        ),
        ("[server]\nhost = 3", "LINE 2: server.host: input should be a valid string (it is 3)"),
        (
            "[toolbox]\ndefault_timeout = 0",
            "LINE 2: toolbox.default_timeout: input should be greater than 0 (it is 0)",
        ),
        (
            "[toolbox]\ndefault_timeout = 60\ndefault_idempotency_ttl = 59",
            "LINE 1: toolbox: default_idempotency_ttl is at least default_timeout, which is 60",
        ),
        (
            "[queue]\nlease = 5\nexpires = 172800",
            (
                "LINE 3: queue.expires is 172800, but toolbox.default_idempotency_ttl is 86400: a "
                "call that is brought twice by then would run twice; raise the latter, or lower "
                "the former"
            ),
        ),
        (
            "[toolbox]\ndefault_idempotency_ttl = 60",
            (
                "LINE  queue.expires is 3600, but toolbox.default_idempotency_ttl is 60: a call "
                "that is brought twice by then would run twice; raise the latter, or lower the "
                "former"
            ),
        ),
        (
            '[store]\nurl = "mysql://u@h/db"',
            "LINE 2: store.url: write sqlite:///PATH or postgresql://USER:PASSWORD@HOST/NAME",
        ),
        (
            '[store]\nurl = "sqlite:///"',
            "LINE 2: store.url: write sqlite:///PATH or postgresql://USER:PASSWORD@HOST/NAME",
        ),
        (
            '[server]\npublic_url = "http://"',
            "LINE 2: server.public_url: write an address such as https://HOST or http://HOST:PORT",
        ),
        (
            '[tools]\nurls = ["https://fine.example", "ftp://x"]',
            "LINE 2: tools.urls: write an address such as https://HOST or http://HOST:PORT",
        ),
        ("a = ", "LINE 1: is not TOML: Invalid value (at end of document)"),
        ("[server]\nhost = nothing", "LINE 2: is not TOML: Invalid value (at line 2, column 8)"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_the_nearest_key(
    file: Path, text: str, told: str
) -> None:
    assert problems(file, text) == [told]


def test_all_mistakes_are_told_at_once(file: Path) -> None:
    text = '[server]\nprot = 1\nport = "x"\n[toolbx]\n[tools]\nfiles = "one"\n'
    told = problems(file, text, TOOLGATE_STORE__URL="nowhere", TOOLGATE_SERVER__HOSTT="x")
    assert len(told) == 6
    assert {line.split(":")[0] for line in told} == {
        "LINE 2",
        "LINE 3",
        "LINE 4",
        "LINE 6",
        "TOOLGATE_STORE__URL",
        "TOOLGATE_SERVER__HOSTT",
    }


@pytest.mark.parametrize("section", sorted(one for one in LATER if isinstance(one, str)))
def test_a_section_of_a_later_version_is_refused_as_such(file: Path, section: str) -> None:
    told = f"[{section}] is not available in this version; remove it"
    assert problems(file, f'[{section}]\nurl = "x"\nother = 1') == [f"LINE 1: {told}"]
    assert problems(file, f'[{section}.inner]\nurl = "x"') == [f"LINE 1: {told}"]
    name = f"TOOLGATE_{section.upper()}__URL"
    assert problems(file, **{name: "x"}) == [f"{name}: {told}"]


def test_a_key_of_a_later_version_is_refused_as_such(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(configuration, "LATER", LATER | {("tools", "tomorrow")})
    told = problems(file, '[tools]\ntomorrow = ["x"]\n[toolbox]\nmax_batch_size = 3')
    assert told == ["LINE 2: tools.tomorrow is not available in this version; remove it"]


def test_the_environment_wins_over_the_file(file: Path) -> None:
    file.write_text('[server]\nport = 1\n[tools]\nfiles = ["a"]\n', "utf-8")
    environment = {
        "TOOLGATE_SERVER__PORT": "8800",
        "TOOLGATE_TOOLS__FILES": "one/*.yaml, two/*.yaml",
        "TOOLGATE_TOOLBOX__DEFAULT_TIMEOUT": "2.5",
        "TOOLGATE_STORE__URL": "postgresql://u:p@h/n",
        "TOOLGATE_REQUIRE_SERVICES": "1",
        "OTHER_SERVER__PORT": "x",
    }
    loaded = load(file, environment)
    assert loaded.server.port == 8800
    assert loaded.tools.files == ("one/*.yaml", "two/*.yaml")
    assert loaded.toolbox.default_timeout == 2.5
    assert loaded.store.url == "postgresql://u:p@h/n"


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("TOOLGATE_SERVER__PORT", "x", "server.port: input should be a valid integer (it is 'x')"),
        (
            "TOOLGATE_SERVER__PROT",
            "1",
            "server.prot is not a setting; did you mean 'port'?",
        ),
        (
            "TOOLGATE_SERVER__HOST__NAME",
            "x",
            "server.host.name is not a setting; did you mean 'host'?",
        ),
        ("TOOLGATE_SERVR__PORT", "1", "[servr] is not a setting; did you mean 'server'?"),
    ],
)
def test_a_mistake_in_the_environment_names_the_variable(
    file: Path, name: str, value: str, told: str
) -> None:
    assert problems(file, **{name: value}) == [f"{name}: {told}"]


@pytest.mark.parametrize("url", ["mysql://u:hunter2@h/n", "postgresql:u:hunter2@h", "u:hunter2@h"])
def test_an_address_with_a_password_is_never_shown(file: Path, url: str) -> None:
    assert "hunter2" not in str(problems(file, TOOLGATE_STORE__URL=url))
    assert "hunter2" not in str(problems(file, TOOLGATE_SERVER__PUBLIC_URL="ftp://u:hunter2@h"))


@pytest.mark.req("V3")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.com", "", "10.0.0.1"])  # noqa: S104
def test_a_host_beyond_this_machine_needs_the_public_address(file: Path, host: str) -> None:
    [told] = problems(file, f'[server]\nhost = "{host}"')
    assert told.startswith("LINE 2: server.host")
    assert "server.public_url" in told
    file.write_text(f'[server]\nhost = "{host}"\npublic_url = "https://x.example"\n', "utf-8")
    assert load(file, {}).server.host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_a_host_on_this_machine_needs_nothing(file: Path, host: str) -> None:
    file.write_text(f'[server]\nhost = "{host}"\n', "utf-8")
    assert load(file, {}).server.host == host


@pytest.mark.req("V3")
def test_without_the_check_an_exposed_host_would_start(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asleep(*_given: object) -> list[configuration.Problem]:
        return []

    monkeypatch.setattr(configuration, "_exposed", asleep)
    file.write_text('[server]\nhost = "0.0.0.0"\n', "utf-8")
    assert load(file, {}).server.host == "0.0.0.0"  # noqa: S104


@pytest.mark.req("V3")
def test_what_tests_kill_a_process_by_is_refused_where_callers_come_from_elsewhere(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"TOOLGATE_CRASH_AT": "CP5"}
    public = '[server]\nhost = "0.0.0.0"\npublic_url = "https://x.example"\n'
    [told] = problems(file, public, **given)
    assert told.startswith("TOOLGATE_CRASH_AT: is for tests")
    # The controls: without it, on this machine alone, and without the guard.
    assert load(file, {}).server.public_url
    assert load(None, given).server.public_url == ""

    def asleep(*_given: object) -> list[configuration.Problem]:
        return []

    monkeypatch.setattr(configuration, "_armed", asleep)
    assert load(file, given).server.public_url


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    for name, content in (("missing.toml", None), ("latin.toml", b"x = '\xff'")):
        file = tmp_path / name
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(SettingsInvalid, match=name):
            load(file, {})
    with pytest.raises(SettingsInvalid, match="cannot be read"):
        load(tmp_path, {})


def test_a_password_does_not_belong_into_the_file(tmp_path: Path) -> None:
    file = tmp_path / "toolgate.toml"
    file.write_text('[store]\nurl = "postgresql://ann:hunter2@db/tools"\n')
    with pytest.raises(SettingsInvalid, match="set TOOLGATE_STORE__URL") as refused:
        load(file, {})
    assert "hunter2" not in str(refused.value)
    assert f"{file}:2" in str(refused.value)
    file.write_text('[store]\nurl = "postgresql://db/tools"\n')
    given = {"TOOLGATE_STORE__URL": "postgresql://ann:hunter2@db/tools"}
    assert load(file, given).store.url == given["TOOLGATE_STORE__URL"]


def test_a_variable_with_one_underscore_too_few_is_told() -> None:
    with pytest.raises(SettingsInvalid, match="did you mean TOOLGATE_SERVER__PORT"):
        load(None, {"TOOLGATE_SERVER_PORT": "1"})
    assert load(None, {"TOOLGATE_SERVICES": "elsewhere"}).server.port == 8700


def test_a_variable_without_its_section_is_told() -> None:
    with pytest.raises(SettingsInvalid, match="did you mean TOOLGATE_SERVER__PORT, with its"):
        load(None, {"TOOLGATE_PORT": "80"})
    # What commands, tests and scripts go by is none of the settings'.
    others = ("URL", "KEY", "CHAOS", "REQUIRE_SERVICES", "CRASH_AT", "ONCE_KEYS", "MINE")
    assert load(None, {f"TOOLGATE_{one}": "1" for one in others}).server.port == 8700


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('[tools]\nfiles = "tools/*.yaml"', "write a list of texts"),
        ("[toolbox]\ndefault_timeout = true", "write a number of seconds"),
        ("port = 1", "port is not a setting"),
    ],
)
def test_a_wrong_kind_of_value_is_told_in_words(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "toolgate.toml"
    file.write_text(line)
    with pytest.raises(SettingsInvalid, match=said):
        load(file, {})


@pytest.mark.parametrize("named", ["TOOLGATE_EVENTS_SECRET", "TOOLGATE_MY__SECRET"])
def test_a_variable_that_a_setting_names_may_be_called_anything(file: Path, named: str) -> None:
    text = f'[events]\nurl = "https://hooks.example.com"\nsecret_env = "{named}"\n'
    file.write_text(text, "utf-8")
    assert load(file, {named: "s" * 40}).events.secret_env == named
    # Named by the environment itself.
    file.write_text('[events]\nurl = "https://hooks.example.com"\n', "utf-8")
    assert load(file, {named: "s" * 40, "TOOLGATE_EVENTS__SECRET_ENV": named})
    # Named by nobody, it is a mistake; and so are others.
    assert problems(file, '[events]\nsecret_env = "OTHER"', **{named: "s"})[0].startswith(named)
    assert len(problems(file, text, **{named: "s", "TOOLGATE_SERVER_PORT": "1"})) == 1


def test_a_setting_that_is_named_as_a_secret_is_still_one(file: Path) -> None:
    file.write_text('[events]\nsecret_env = "TOOLGATE_SERVER__PORT"\n', "utf-8")
    assert load(file, {"TOOLGATE_SERVER__PORT": "8800"}).server.port == 8800


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: one.name)
def test_every_example_can_be_loaded_with_the_secrets_that_it_names(example: Path) -> None:
    names = re.findall(r'_env = "(\w+)"', example.read_text("utf-8"))
    assert load(example, dict.fromkeys(names, "s" * 40))


def test_sections_inside_of_sections_are_told_of_in_the_same_way(file: Path) -> None:
    text = '[mcp.servers.files]\ncomand = ["x"]\nurl = "http://h"\n[providers.http]\nretries = 1\n'
    assert problems(file, text) == [
        "LINE 2: mcp.servers.files.comand is not a setting; did you mean 'command'?",
        "LINE 5: providers.http.retries is not a setting; did you mean 'max_retries'?",
    ]
    [told] = problems(file, '[mcp.servers.Files]\nurl = "http://h"')
    assert told == (
        "LINE 1: mcp.servers: 'Files' names no server; use small letters, digits, _ and -, "
        "at most 40"
    )
    told = problems(
        file, "", TOOLGATE_MCP__SERVERS__A__UURL="x", TOOLGATE_MCP__SERVERS__A__URL="http://h"
    )
    assert told == [
        "TOOLGATE_MCP__SERVERS__A__UURL: mcp.servers.a.uurl is not a setting; did you mean 'url'?"
    ]


@pytest.mark.parametrize("section", [*SECTIONS, "mcp.servers", "providers.http"])
def test_a_section_may_be_empty(file: Path, section: str) -> None:
    file.write_text(f"[{section}]\n", "utf-8")
    assert load(file, {}) == Settings(root=file.parent, file=file)


def test_what_should_be_a_section_and_is_none_is_told(file: Path) -> None:
    for text, path in (("server = 3", "server"), ("[mcp]\nservers = 3", "mcp.servers")):
        [told] = problems(file, text)
        assert told.split(": ")[1] == path
