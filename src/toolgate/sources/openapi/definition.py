"""One operation as the definition of a tool, in the native layout."""

import difflib
import re
from collections.abc import Sequence
from typing import Any, cast
from urllib.parse import parse_qsl

import msgspec

from toolgate.errors import InvalidSpecs
from toolgate.sources.openapi import care
from toolgate.sources.openapi.arguments import Arguments
from toolgate.sources.openapi.bodies import json_of
from toolgate.sources.openapi.fitting import Fitting
from toolgate.sources.openapi.opened import Opened, refused
from toolgate.sources.openapi.operations import Operation, Request, Requests
from toolgate.sources.openapi.options import Options
from toolgate.sources.openapi.overlay import Overlay, Word
from toolgate.sources.openapi.pointers import Pointers, Unresolved
from toolgate.sources.openapi.prose import printable, tidy
from toolgate.sources.openapi.report import Notes
from toolgate.sources.openapi.schemas import Schemas
from toolgate.sources.openapi.security import Security
from toolgate.sources.openapi.servers import NoServer, Servers, encoded, is_clear
from toolgate.spec.problem import Problem
from toolgate.spec.reader import read_tool
from toolgate.spec.tool import Origin

# No model reads more of one tool.
MAX_INPUT = 24 * 1024
MAX_OUTPUT = 12 * 1024
_ABOUT = 1_000
_SUMMARY = 200
_MAX_TAGS = 16
_GOOD = re.compile(r"2\d\d\Z|2XX\Z", re.IGNORECASE)


class Overlaid(Exception):
    """An operator's overlay contradicts a tool: that is told before anything is written."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__()
        self.problems = problems


class Definitions:
    """Makes them, with what all operations of a document share."""

    def __init__(
        self,
        opened: Opened,
        options: Options,
        overlay: Overlay,
        notes: Notes,
        *,
        name: str,
        file: str,
    ) -> None:
        """`name`: what the tools are listed under, and the secrets are called by."""
        pointers = Pointers(opened.value)
        self._opened = opened
        self._options = options
        self._overlay = overlay
        self._notes = notes
        self._name = name
        self._file = file
        self._requests = Requests(opened, pointers)
        self._servers = self._given_servers()
        self.security = Security(
            opened, pointers, notes, name=name, client_id=options.client_id, wanted=options.auth
        )
        self._need_scheme()
        self._inputs = Schemas(pointers, opened.version, notes, direction="in")
        self._outputs = Schemas(pointers, opened.version, notes, direction="out")
        self._fit_input = Fitting(self._inputs, most=MAX_INPUT)
        self._fit_output = Fitting(self._outputs, most=MAX_OUTPUT)

    def of(self, name: str, operation: Operation) -> dict[str, Any]:
        """An operation as a tool; `Unresolved`, `NoServer` or `InvalidSpecs` say why it is none.

        `Overlaid`: it would be one without the overlay.
        """
        request = self._requests.of(operation)
        arguments = Arguments(operation, self._inputs, self._notes)
        arguments.take(request)
        server = self._servers.of(operation)
        word = self._overlay.of(name)
        usual = care.by_method(operation, self._notes)
        tool = {
            "name": name,
            "description": self._about(operation),
            "category": tidy(self._name, 64),
            "tags": [tidy(tag, 60) for tag in operation.tags[:_MAX_TAGS]],
            "provider": "http",
            "config": self._config(operation, arguments, server, word),
            "permissions": ["network"],
            "side_effects": ["network_access"],
            **usual,
            "input_schema": self._input(arguments, operation),
        }
        # What stands at a path in the answer has another schema than the answer.
        if "path" not in word.response and (output := self._output(operation, request)):
            tool["output_schema"] = output
        own = not self._options.address
        tool |= care.by_document(operation, usual, self._notes, own=own)
        return self._checked(tool, word)

    def _config(
        self, operation: Operation, arguments: Arguments, server: str, word: Word
    ) -> dict[str, Any]:
        """Where a request goes and what it is made from."""
        bound = self._bound(operation, arguments, server, word)
        path, _, query = operation.path.partition("?")
        config: dict[str, Any] = {
            "url": server,
            "method": operation.method.upper(),
            "path": _written(path),
        }
        if fixed := _fixed(query, arguments.parameters):
            config["query"] = fixed
        if arguments.parameters:
            config["parameters"] = arguments.parameters
        if arguments.body is not None:
            config["body"] = arguments.body
        if auths := [*self.security.of(operation, server), *bound]:
            config["auth"] = auths[0] if len(auths) == 1 else auths
        elif is_clear(server):
            self._notes.add(f"{printable(server)} is reached in clear text", operation.shown)
        if word.response:
            config["response"] = dict(word.response)
        return config

    def _bound(
        self, operation: Operation, arguments: Arguments, server: str, word: Word
    ) -> list[dict[str, Any]]:
        """Without the arguments that the overlay takes away; the secrets in their place."""
        found: list[dict[str, Any]] = []
        for called, secret in word.arguments.items():
            at = arguments.place_of(called)
            if at is None:
                continue
            self._overlay.bound(called)
            place, name = at
            if place == "path" or (secret and place == "body"):
                where = "body, where no secret can stand" if secret and place == "body" else place
                told = (
                    f"the overlay leaves {printable(called, 60)!r} as it is: it is in the {where}"
                )
                self._notes.add(told, operation.shown)
                continue
            arguments.drop(called)
            if secret:
                found.append(self.security.bound(secret, place, name, server, operation))
        return found

    def _checked(self, tool: dict[str, Any], word: Word) -> dict[str, Any]:
        """The tool with the overlay's word on it, if that is one; what contradicts it is told."""
        whole = _without_nothing(tool | dict(word.fields))
        origin = Origin("openapi", self._file)
        try:
            read_tool(whole, origin=origin, file=self._file)
        except InvalidSpecs as error:
            if not word.fields:
                raise
            # Without it there may be nothing wrong; then it is the overlay that has to change.
            read_tool(_without_nothing(tool), origin=origin, file=self._file)
            place = {"file": self._overlay.file or self._file, "line": word.line}
            problems = cast("Sequence[Problem]", error.problems)
            raise Overlaid([msgspec.structs.replace(one, **place) for one in problems]) from None
        return whole

    def _about(self, operation: Operation) -> str:
        summary = tidy(operation.fields.get("summary"), _SUMMARY)
        more = tidy(operation.fields.get("description"), _ABOUT)
        if summary and more.startswith(summary):
            summary = ""
        if summary and more and summary[-1] not in ".!?…":
            summary += "."
        both = f"{summary} {more}".strip()
        deprecated = "Deprecated. " if operation.is_deprecated else ""
        return deprecated + (both or operation.shown)

    def _input(self, arguments: Arguments, operation: Operation) -> dict[str, Any]:
        found = self._fit_input.fitted(arguments.part())
        if found is None:
            raise Unresolved("takes arguments whose schema is too large for a tool")
        if found.problem:
            told = f"the arguments' schema {found.problem}; it is open from some depth on"
            self._notes.add(told, operation.shown)
        return found.schema

    def _output(self, operation: Operation, request: Request) -> dict[str, Any] | None:
        """The schema of what a good answer holds, where it is JSON and not too large."""
        for status in sorted(one for one in request.responses if _GOOD.match(one)):
            try:
                response = self._requests.response(operation, request.responses[status])
            except Unresolved as problem:
                self._notes.add(f"a response {problem}; it is not described", operation.shown)
                continue
            schema = json_of(response.get("content"))
            if not isinstance(schema, dict) or not schema:
                continue
            part = self._outputs.unfolded(self._outputs.part(schema, operation.shown))
            found = self._fit_output.whole(part)
            if found is None:
                told = "the answer's schema is too large for a tool; it is not described"
                self._notes.add(told, operation.shown)
                return None
            return found or None
        return None

    def _given_servers(self) -> Servers:
        options = self._options
        try:
            return Servers(self._opened, address=options.address, given=options.server)
        except NoServer as problem:
            raise refused(self._file, str(problem), "Write --server https://HOST.") from None

    def _need_scheme(self) -> None:
        lacking = self.security.unknown()
        if lacking:
            known = self.security.schemes()
            close = difflib.get_close_matches(lacking[:80], known, n=1)
            listed = ", ".join(printable(one, 60) for one in known[:20]) or "none"
            write = f"Did you mean {close[0]!r}?" if close else f"Its schemes: {listed}."
            told = f"has no security scheme {printable(lacking, 60)!r}"
            raise refused(self._file, told, write)


def _without_nothing(tool: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in tool.items() if value not in ("", [])}


def _written(path: str) -> str:
    """A path whose literal parts are encoded; what stands in braces is a name."""
    parts = re.split(r"(\{[^{}]*\})", path)
    return "".join(part if part.startswith("{") else encoded(part) for part in parts)


def _fixed(query: str, parameters: Sequence[dict[str, Any]]) -> dict[str, str]:
    """What a path has behind a question mark; braces stand for themselves."""
    taken = {one["name"] for one in parameters if one["in"] == "query"}
    return {
        name: value.replace("{", "{{").replace("}", "}}")
        for name, value in parse_qsl(query, keep_blank_values=True, max_num_fields=50)
        if name and name not in taken
    }
