"""Talking to an OPA server: constant paths, `input` only in the body, answers taken literally."""

import json
from collections.abc import Mapping
from typing import Any, cast

import orjson

from toolgate.errors import PolicyUnavailable, SourceUnavailable
from toolgate.net.address import authorization, shown, without_user
from toolgate.net.client import HttpClient, Response

SMALL, LARGE = 64 * 1024, 10 * 1024 * 1024
# A module comes back with its syntax tree, which is many times its text.
_TREE = 128 * 1024 * 1024
# What OPA may put beside a result.
_KNOWN = frozenset({"result", "decision_id", "metrics", "provenance", "explanation"})
_JSON = "application/json"
# A built-in function that fails is an error, as it is in process; else the rule would be dropped.
_STRICT = "?strict-builtin-errors=true"


class _Missing:
    """No result: the rule is not there."""


MISSING = _Missing()


class Refused(Exception):
    """The server does not take what it was sent; what it says, line by line."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class OpaServer:
    """One server, by its address."""

    def __init__(self, client: HttpClient, url: str, *, token: str, seconds: float) -> None:
        self._client = client
        self._base = without_user(url).rstrip("/")
        self._seconds = seconds
        self._headers = {"Content-Type": _JSON, "Accept": _JSON, **authorization(url)}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    async def ask(self, rule: str, document: Mapping[str, Any], *, most: int = SMALL) -> Any:
        """The value of a rule for this `input`; `MISSING` where there is none."""
        body = orjson.dumps({"input": document})
        response = await self._send("POST", f"/v1/data/{rule}{_STRICT}", body, most)
        if response.status != 200:
            raise _unavailable(_status(response.status))
        return _result(response)

    async def document(self, name: str) -> Any:
        """A document of its data; `MISSING` where it is not there."""
        response = await self._send("GET", f"/v1/data/{name}", None, LARGE)
        if response.status != 200:
            raise _unavailable(_status(response.status))
        return _result(response)

    async def put_document(self, name: str, value: Any) -> None:
        """Put a document in the place of the one of its name."""
        body = orjson.dumps(value)
        self._taken(await self._send("PUT", f"/v1/data/{name}", body, LARGE), 204, 304)

    async def drop_document(self, name: str) -> None:
        """Remove a document."""
        self._taken(await self._send("DELETE", f"/v1/data/{name}", None, LARGE), 204, 404)

    async def module(self, name: str) -> str:
        """The text of a module; empty where it is not there."""
        response = await self._send("GET", f"/v1/policies/{name}", None, _TREE)
        if response.status == 404:
            return ""
        if response.status != 200:
            raise _unavailable(_status(response.status))
        value = _result(response)
        return str(cast("dict[str, Any]", value).get("raw", "")) if isinstance(value, dict) else ""

    async def put_module(self, name: str, text: str) -> None:
        """Put a module; `Refused` where the server cannot compile it with the others."""
        response = await self._send("PUT", f"/v1/policies/{name}", text.encode(), LARGE)
        self._taken(response, 200)

    async def drop_module(self, name: str) -> None:
        """Remove a module; `Refused` where others need it."""
        self._taken(await self._send("DELETE", f"/v1/policies/{name}", None, LARGE), 200, 404)

    def _taken(self, response: Response, *wanted: int) -> None:
        if response.status in wanted:
            return
        if response.status == 400:
            raise Refused(_problems(response.body))
        raise _unavailable(_status(response.status))

    async def _send(self, method: str, path: str, body: bytes | None, most: int) -> Response:
        try:
            return await self._client.send(
                method,
                self._base + path,
                headers=self._headers,
                body=body,
                most=most,
                seconds=self._seconds,
                # A question, or a policy that replaces itself.
                repeatable=True,
            )
        except SourceUnavailable as error:
            why = error.message.replace(shown(self._base + path), "it").strip(" .")
            detail = f"{why}; see whether it runs, and whether [policy] url is right."
            raise _unavailable("did not answer in time or in bounds", detail) from None


def _unavailable(what: str, detail: str = "") -> PolicyUnavailable:
    return PolicyUnavailable(
        f"The policy server {what}; nothing ran. Try again, or look at its health.",
        **({"detail": detail} if detail else {}),
    )


def _status(status: int) -> str:
    if status in {401, 403}:
        return "does not take our token"
    return f"answered {status} instead of 200"


def _result(response: Response) -> Any:
    """The result of an answer that is JSON through and through; nothing is guessed."""
    if response.headers.get("Content-Type", "").partition(";")[0].strip().lower() != _JSON:
        raise _unavailable("sends an answer that is not JSON")
    try:
        value: Any = json.loads(response.body.decode(), object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise _unavailable("sends an answer that is not JSON") from None
    if not isinstance(value, dict) or not cast("dict[str, Any]", value).keys() <= _KNOWN:
        raise _unavailable("sends an answer of another shape")
    return cast("dict[str, Any]", value).get("result", MISSING)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands there twice")
    return found


def _problems(body: bytes) -> list[str]:
    """`file:line: message` of each of the compiler's errors."""
    try:
        said = orjson.loads(body)
        errors = said.get("errors") or [said]
        return [_problem(error) for error in errors][:20]
    except (ValueError, AttributeError, TypeError):
        return ["the policy server refuses it, without words that can be read"]


def _problem(error: dict[str, Any]) -> str:
    place: dict[str, Any] = error.get("location") or {}
    where = f"{place['file']}:{place['row']}: " if "file" in place and "row" in place else ""
    return f"{where}{str(error.get('message', 'refused'))[:300]}"
