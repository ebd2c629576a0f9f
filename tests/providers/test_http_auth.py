"""Credentials reach the host they are bound to; no answer, error, log or record has them."""

import asyncio
import logging
from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

import orjson
import pytest

from tests.house import ME, STORE, until
from tests.providers.http_tools import VALUE, definition, gate, secrets
from tests.providers.service import Answer, Seen, Service, answer, service
from toolgate.errors import ProviderUnavailable
from toolgate.settings.outward import HttpTools

PAIR = f"ann:{VALUE}"
BASIC = b64encode(PAIR.encode()).decode()
TOKEN = "tok-4711/abcdefgh"  # noqa: S105  of nobody
FORMS = (VALUE, BASIC, quote(VALUE, safe=""), VALUE.replace("/", "\\/"), TOKEN)
KINDS: list[tuple[dict[str, Any], str, str]] = [
    ({"kind": "bearer"}, "authorization", f"Bearer {VALUE}"),
    ({"kind": "basic", "user": "ann"}, "authorization", f"Basic {BASIC}"),
    ({"kind": "api_key"}, "x-api-key", VALUE),
    ({"kind": "api_key", "name": "X-Auth", "prefix": "Token "}, "x-auth", f"Token {VALUE}"),
    ({"kind": "api_key", "in": "cookie", "name": "sid"}, "cookie", f"sid={quote(VALUE, safe='')}"),
]


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", VALUE)


def echo(seen: Seen) -> Answer:
    """All that was sent, in several ways of writing it."""
    told = {"target": seen.target, "headers": dict(seen.headers), "body": seen.body.decode()}
    raw = orjson.dumps(told)
    return Answer(200, b'{"a":' + raw + b',"b":' + raw.replace(b"/", b"\\/") + b"}")


def http(far: Service, **more: Any) -> HttpTools:
    return HttpTools(secrets=secrets(far.place), max_retries=0, **more)


def is_clean(text: str) -> bool:
    return not any(form in text for form in FORMS)


@pytest.mark.req("P2")
async def test_each_kind_is_sent_and_never_seen_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with service() as far:
        tools = [
            definition(
                {"url": f"{far.url}/x", "method": "GET", "auth": {**auth, "secret": "key"}},
                name=f"act_{number}",
            )
            for number, (auth, _, _) in enumerate(KINDS)
        ]
        query = {"kind": "api_key", "in": "query", "name": "key", "secret": "key"}
        tools.append(definition({"url": f"{far.url}/x", "method": "GET", "auth": query}))
        async with gate(tmp_path, *tools, place=far.place, http=http(far)) as opened:
            for number, (_, header, sent) in enumerate(KINDS):
                for said in (echo, _as_text, _as_error):
                    far.answers = said
                    output = await opened.call(f"act_{number}", {}, caller=ME)
                    assert far.seen[-1].headers[header] == sent
                    assert is_clean(str(output)), output
                    assert "[secret]" in str(output)
            far.answers = echo
            output = await opened.call("act", {"text": "x"}, caller=ME)
            assert far.seen[-1].target == f"/x?text=x&key={quote(VALUE, safe='')}"
            assert is_clean(str(output))
            # What an argument says stays as it is: nothing else is taken out.
            assert "text=x" in str(output)
            for args in ({"key": "theirs"}, {"KEY": "theirs"}):
                with pytest.raises(Exception, match="set by the tool itself"):
                    await opened.call("act", args, caller=ME)
        stored = (tmp_path / STORE).read_bytes()
    assert is_clean(caplog.text)
    assert not any(form.encode() in stored for form in FORMS)


def _as_text(seen: Seen) -> Answer:
    return Answer(200, str(dict(seen.headers)).encode(), "text/plain")


def _as_error(seen: Seen) -> Answer:
    return answer({"message": f"no: {dict(seen.headers)}"[:250]}, 400)


@pytest.mark.req("P2")
async def test_a_secret_leaves_for_no_other_host(tmp_path: Path) -> None:
    """Neither by a definition nor by a redirect; without the binding it would arrive."""
    async with service() as far, service() as other:
        auth = {"kind": "bearer", "secret": "key"}
        tools = [
            definition(
                {"url": f"{where.url}/x", "method": "GET", "auth": auth, "redirects": 2}, name=name
            )
            for name, where in (("far", far), ("other", other))
        ]
        far.say(answer({}, 302, Location=f"{other.url}/x"))
        async with gate(tmp_path, *tools, place="127.0.0.1", http=http(far)) as opened:
            assert "may not be sent" in opened.catalog.current.unusable["other"]
            assert not (await opened.call("far", {}, caller=ME)).ok
            assert other.seen == []
        bound = HttpTools(secrets=secrets(far.place, other.place), max_retries=0)
        async with gate(tmp_path, *tools, place="127.0.0.1", http=bound) as opened:
            assert (await opened.call("other", {}, caller=ME)).ok
            assert other.seen[-1].headers["authorization"] == f"Bearer {VALUE}"


async def test_two_credentials_go_together(tmp_path: Path) -> None:
    auth = [
        {"kind": "basic", "user": "ann", "secret": "key"},
        {"kind": "api_key", "name": "X-App", "secret": "key"},
    ]
    async with service() as far:
        tool = definition({"url": f"{far.url}/x", "method": "GET", "auth": auth})
        async with gate(tmp_path, tool, place=far.place, http=http(far)) as opened:
            assert (await opened.call("act", {}, caller=ME)).ok
        sent = far.seen[-1].headers
    assert (sent["authorization"], sent["x-app"]) == (f"Basic {BASIC}", VALUE)


class Issuer:
    """A token server: counts what it gave, and can be told to refuse."""

    def __init__(self, far: Service, *, lasts: float = 3600) -> None:
        self.far = far
        self.lasts = lasts
        self.given = 0
        self.refuses = False
        self.hold: asyncio.Event | None = None
        self.taken: set[str] = set()

    async def answer(self, seen: Seen) -> Answer:
        if seen.target != "/token":
            bearer = seen.headers.get("authorization", "").removeprefix("Bearer ")
            return echo(seen) if bearer in self.taken else answer({"message": bearer}, 401)
        if self.hold is not None:
            await self.hold.wait()
        if self.refuses:
            return answer({"error": "invalid_client", "error_description": VALUE}, 401)
        self.given += 1
        token = f"{TOKEN}{self.given}"
        self.taken = {token}
        return answer({"access_token": token, "token_type": "Bearer", "expires_in": self.lasts})


def oauth(far: Service, **more: Any) -> dict[str, Any]:
    token_url = f"{far.url}/token"
    auth = {"kind": "oauth", "token_url": token_url, "client_id": "ann", "secret": "key"} | more
    return definition({"url": f"{far.url}/x", "method": "GET", "auth": auth})


@pytest.mark.req("P2")
async def test_one_token_is_fetched_for_all_who_wait_and_kept(tmp_path: Path) -> None:
    async with service() as far:
        issuer = Issuer(far)
        far.answers = issuer.answer
        issuer.hold = asyncio.Event()
        async with gate(
            tmp_path, oauth(far, scope="read"), place=far.place, http=http(far)
        ) as opened:
            calls = [asyncio.create_task(opened.call("act", {}, caller=ME)) for _ in range(20)]
            await until(lambda: bool(far.seen))
            # One who stops waiting takes the token from nobody.
            calls.pop().cancel()
            issuer.hold.set()
            outputs = await asyncio.gather(*calls)
            assert all(output.ok for output in outputs)
            assert all(is_clean(str(output)) for output in outputs)
            assert issuer.given == 1
            [asked] = [seen for seen in far.seen if seen.target == "/token"]
            # The client's name and secret are encoded before they are joined.
            pair = f"ann:{quote(VALUE, safe='')}"
            assert asked.headers["authorization"] == f"Basic {b64encode(pair.encode()).decode()}"
            assert parse_qs(asked.body.decode()) == {
                "grant_type": ["client_credentials"],
                "scope": ["read"],
            }

            # It ends earlier than it said: it is fetched anew, once.
            issuer.taken = set()
            assert (await opened.call("act", {}, caller=ME)).ok
            assert issuer.given == 2


@pytest.mark.req("P2")
async def test_a_token_that_is_refused_twice_is_the_operators_matter(tmp_path: Path) -> None:
    async with service() as far:
        issuer = Issuer(far)

        async def deaf(seen: Seen) -> Answer:
            return await issuer.answer(seen) if seen.target == "/token" else answer({}, 401)

        far.answers = deaf
        async with gate(tmp_path, oauth(far), place=far.place, http=http(far)) as opened:
            output = await opened.call("act", {}, caller=ME)
            assert output.error is not None
            assert "tell the operator" in output.error.message
            assert [seen.target for seen in far.seen] == ["/token", "/x", "/token", "/x"]


@pytest.mark.req("P2")
async def test_without_a_token_nothing_is_begun(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with service() as far:
        issuer = Issuer(far)
        issuer.refuses = True
        far.answers = issuer.answer
        tool = oauth(far, client_auth="body") | {"effect": "irreversible"}
        async with gate(tmp_path, tool, place=far.place, http=http(far)) as opened:
            with pytest.raises(ProviderUnavailable) as refused:
                await opened.call("act", {}, caller=ME)
        assert "(invalid_client)" in refused.value.message
        assert is_clean(refused.value.message + caplog.text)
        assert parse_qs(far.seen[0].body.decode())["client_secret"] == [VALUE]
        assert all(seen.target == "/token" for seen in far.seen)


async def test_a_token_that_is_about_to_end_is_not_sent(tmp_path: Path) -> None:
    async with service() as far:
        issuer = Issuer(far, lasts=0.000001)
        far.answers = issuer.answer
        async with gate(tmp_path, oauth(far), place=far.place, http=http(far)) as opened:
            for count in (1, 2, 3):
                assert (await opened.call("act", {}, caller=ME)).ok
                assert issuer.given == count


@pytest.mark.parametrize("said", [
    answer({"access_token": "a b\r\n", "token_type": "bearer"}),
    answer({"access_token": 7}),
    answer({"access_token": "abc", "token_type": "mac"}),
    answer([]),
    Answer(200, b"<html>", "text/html"),
    answer({}, 302, Location="/elsewhere"),
    Answer(200, b"x" * 70_000),
], ids=lambda one: str(one)[:40])  # fmt: skip
async def test_what_is_no_token_is_not_taken_for_one(tmp_path: Path, said: Answer) -> None:
    async with service() as far:
        far.say(said)
        async with gate(tmp_path, oauth(far), place=far.place, http=http(far)) as opened:
            with pytest.raises(ProviderUnavailable):
                await opened.call("act", {}, caller=ME)
        assert {seen.target for seen in far.seen} == {"/token"}
