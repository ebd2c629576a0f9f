"""Host and origin, at every door: what a browser sends for a page elsewhere comes to nothing."""

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.server.serving import Answer, Serving
from tests.server.test_routes import is_problem
from toolgate.server.origin import Origins
from toolgate.settings.settings import Server

pytestmark = pytest.mark.req("V3")
PAGE = "https://console.example"
PATHS = ("/healthz", "/readyz", "/v1/tools", "/v1/approvals", "/v1/admin/keys", "/openapi.json")
SAFE = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
}
FOREIGN = (
    "http://evil.example",
    "null",
    "",
    "https://console.example.evil",
    "https://evil.example/https://console.example",
    "http://console.example",
    "https://console.example:8443",
    "http://127.0.0.1",
    "http://127.0.0.1:1",
    "http://localhost:3000",
    "https://ann@console.example",
    "file://",
)


class Site(NamedTuple):
    server: Serving

    @property
    def key(self) -> str:
        return self.server.greeting["keys"]["admin"]

    def ask(self, path: str, method: str = "GET", **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.server.ask(method, path, key=self.key, headers=named)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Generator[Site]:
    root = tmp_path_factory.mktemp("origins")
    said = f'[server]\nallowed_origins = ["{PAGE}"]\n'
    (root / "toolgate.toml").write_text(said, "utf-8")
    with Serving(root, "--config", "toolgate.toml") as server:
        yield Site(server)


def cors(answer: Answer) -> Mapping[str, str]:
    return {name: it for name, it in answer.headers.items() if name.startswith("access-control-")}


@pytest.mark.parametrize("path", [*PATHS, "/mcp", "/nowhere"])
def test_a_page_elsewhere_is_turned_away_at_every_door(site: Site, path: str) -> None:
    for origin in FOREIGN:
        for method in ("GET", "POST", "OPTIONS"):
            answer = site.ask(path, method, Origin=origin)
            is_problem(answer, 403, "forbidden_origin")
            assert not cors(answer), origin


@pytest.mark.parametrize("path", PATHS)
def test_no_browser_our_own_page_and_a_named_one_are_let_through(site: Site, path: str) -> None:
    own = site.server.greeting["url"]
    assert site.ask(path).status == 200
    for origin in (own, own.upper().replace("HTTP", "http"), own.replace("http:", "https:")):
        answer = site.ask(path, Origin=origin)
        assert (answer.status, dict(cors(answer))) == (200, {}), origin
    answer = site.ask(path, Origin=PAGE)
    assert answer.status == 200
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert answer.headers["vary"] == "Origin"
    assert "access-control-allow-credentials" not in answer.headers


def test_a_named_page_may_ask_what_it_may_send(site: Site) -> None:
    wanted = {"Access_Control_Request_Method": "POST"}
    for path in ("/v1/call", "/mcp"):
        answer = site.ask(
            path, "OPTIONS", Origin=PAGE, Access_Control_Request_Headers="mcp-name, x-y", **wanted
        )
        assert (answer.status, answer.text) == (204, "")
        assert answer.headers["access-control-allow-headers"] == "mcp-name, x-y"
        assert "POST" in answer.headers["access-control-allow-methods"]
    assert site.ask("/v1/call", "OPTIONS").status == 405, "who is no browser asks for nothing"
    refused = site.server.ask("GET", "/v1/tools", headers={"Origin": PAGE})
    assert refused.status == 401, "a page needs a key like everybody"
    assert refused.headers["access-control-allow-origin"] == PAGE


@pytest.mark.parametrize("path", [*PATHS, "/mcp", "/nowhere"])
def test_another_host_is_turned_away_first(site: Site, path: str) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "console.example"):
        is_problem(site.ask(path, Host=host, Origin=PAGE), 421, "misdirected_request")
        is_problem(site.ask(path, Host=host), 421, "misdirected_request")


def test_every_answer_is_told_to_be_kept_and_shown_nowhere(site: Site) -> None:
    kept = site.ask("/v1/approvals").headers
    assert kept["cache-control"] == "private, no-cache", "asked about again each time"
    assert SAFE.items() - kept.items() == {("cache-control", "no-store")}
    answers = [site.ask(path) for path in ("/healthz", "/readyz", "/nowhere")]
    answers += [site.server.get("/v1/tools"), site.ask("/v1/tools", Origin="http://evil.example")]
    answers += [site.ask("/", Host="evil.example"), site.ask("/healthz", "PUT")]
    for answer in answers:
        assert {name: answer.headers.get(name) for name in SAFE} == SAFE, answer


def test_without_the_check_a_page_elsewhere_would_be_answered(tmp_path: Path) -> None:
    """The guard-off control."""
    off = "from toolgate.server.origin import Origins; Origins.lets = lambda *_: True; "
    with Serving(tmp_path, before=off) as server:
        answer = Site(server).ask("/v1/tools", Origin="http://evil.example")
        assert answer.status == 200
        assert not cors(answer), "and still nothing lets the page read it"


def test_the_public_address_is_our_own_page() -> None:
    origins = Origins(Server(public_url="https://tools.example/base"))
    assert origins.lets(b"https://tools.example", b"tools.example")
    assert origins.lets(b"https://tools.example:443", b"localhost")
    assert not origins.lets(b"https://tools.example:444", b"localhost")
    assert not origins.lets(b"http://tools.example", b"localhost")
    assert origins.lets(None, None)
    assert not origins.shared(b"https://tools.example")
