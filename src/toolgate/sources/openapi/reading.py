"""A document becomes tools. Pure: nothing is fetched, and nothing is written."""

import re
from collections.abc import Callable, Sequence
from typing import Any, cast
from urllib.parse import parse_qsl

import msgspec

from toolgate.errors import InvalidSpecs
from toolgate.sources.openapi import care
from toolgate.sources.openapi.arguments import Arguments
from toolgate.sources.openapi.bodies import json_of
from toolgate.sources.openapi.fitting import Fitting
from toolgate.sources.openapi.naming import slug, tool_names
from toolgate.sources.openapi.opened import Opened, refused
from toolgate.sources.openapi.operations import Broken, Operation, Request, Requests, operations
from toolgate.sources.openapi.pointers import Pointers, Unresolved
from toolgate.sources.openapi.prose import printable, tidy
from toolgate.sources.openapi.report import Imported, Notes, Skipped
from toolgate.sources.openapi.schemas import Schemas
from toolgate.sources.openapi.security import Security
from toolgate.sources.openapi.selection import Selection
from toolgate.sources.openapi.servers import NoServer, Servers, encoded
from toolgate.spec.reader import read_tool
from toolgate.spec.tool import Origin

MAX_TOOLS = 5_000
# No model reads more of one tool.
MAX_INPUT = 24 * 1024
MAX_OUTPUT = 12 * 1024
_ABOUT = 1_000
_TITLE = 200
_MAX_TAGS = 16
_GOOD = re.compile(r"2\d\d\Z|2XX\Z", re.IGNORECASE)
_ODD_PATH = re.compile(r"[#\\\x00-\x20\x7f]|//|/(?:%2e|\.){1,2}(?:/|\Z)", re.IGNORECASE)
# Told how many of how many operations were looked at.
Progress = Callable[[int, int], None]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator says about an import."""

    # What its tools are listed under, and its secrets are called by; else its title.
    name: str = ""
    prefix: str = ""
    server: str = ""
    client_id: str = ""
    selection: Selection = Selection()
    # Where the document was, if it was fetched; then it may not lower the care for its tools.
    address: str = ""


def read(
    opened: Opened,
    options: Options,
    *,
    file: str,
    overlay: care.Overlay | None = None,
    progress: Progress | None = None,
) -> Imported:
    """The tools of a document and a report, or `InvalidSpecs`."""
    reader = _Reader(opened, options, file, overlay or care.Overlay({}))
    return reader.read(progress or (lambda _done, _all: None))


class _Reader:
    def __init__(self, opened: Opened, options: Options, file: str, overlay: care.Overlay) -> None:
        self._opened = opened
        self._options = options
        self._file = file
        self._overlay = overlay
        self._notes = Notes()
        self._pointers = Pointers(opened.value)
        info = opened.value.get("info")
        about = cast("dict[str, Any]", info) if isinstance(info, dict) else {}
        self._title = tidy(about.get("title"), _TITLE)
        self._version = tidy(about.get("version"), 60)
        self._name = options.name or slug(self._title) or "openapi"
        self._requests = Requests(opened, self._pointers)
        self._servers = self._given_servers()
        self._security = Security(
            opened, self._pointers, self._notes, name=self._name, client_id=options.client_id
        )
        version = opened.version
        self._inputs = Schemas(self._pointers, version, self._notes, direction="in")
        self._outputs = Schemas(self._pointers, version, self._notes, direction="out")
        self._fit_input = Fitting(self._inputs, most=MAX_INPUT)
        self._fit_output = Fitting(self._outputs, most=MAX_OUTPUT)
        self._tool_name = tool_names(options.prefix)
        self._skipped: list[Skipped] = []

    def read(self, progress: Progress) -> Imported:
        for line in self._opened.stray:
            told = "a control character was replaced"
            self._notes.add(told, f"line {line}")
        everything = list(operations(self._opened.value, self._pointers))
        tools: list[dict[str, Any]] = []
        for done, one in enumerate(everything, 1):
            if isinstance(one, Broken):
                self._skipped.append(Skipped(operation=one.path, reason=one.reason))
            elif tool := self._tool(one):
                tools.append(tool)
                self._need_room(len(tools))
            progress(done, len(everything))
        if hooks := self._opened.value.get("webhooks"):
            for hook in cast("dict[str, Any]", hooks) if isinstance(hooks, dict) else {}:
                reason = "a webhook is called by the service, not by us"
                self._skipped.append(Skipped(operation=f"webhook {printable(hook)}", reason=reason))
        for glob in self._overlay.unused():
            self._notes.add("the overlay names a tool that there is none of", printable(glob))
        return Imported(
            title=self._title,
            version=self._version,
            operations=sum(isinstance(one, Operation) for one in everything),
            tools=tools,
            skipped=self._skipped,
            notes=self._notes.all(),
            secrets=self._security.secrets(),
        )

    def _tool(self, operation: Operation) -> dict[str, Any] | None:
        """The operation as a tool; `None`, and why, where it becomes none."""
        reason = self._options.selection.refusal(operation)
        # A name is taken also by what is left out: choosing less renames nothing.
        name = self._tool_name(operation.id, operation.method, operation.path)
        if not reason and operation.method == "trace":
            reason = "TRACE gives back what it is sent, credentials too"
        if not reason and (not operation.path.startswith("/") or _ODD_PATH.search(operation.path)):
            reason = "its path is no plain path: it has dots, a fragment, blanks or two slashes"
        if not reason:
            try:
                return self._defined(name, operation)
            except (Unresolved, NoServer) as problem:
                reason = str(problem)
            except InvalidSpecs as error:
                reason = "; ".join(_told(one) for one in error.problems)
        self._skipped.append(Skipped(operation=operation.shown, reason=reason))
        return None

    def _defined(self, name: str, operation: Operation) -> dict[str, Any]:
        request = self._requests.of(operation)
        arguments = Arguments(operation, self._inputs, self._notes)
        arguments.take(request)
        server = self._servers.of(operation)
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
        if auth := self._security.of(operation, server):
            config["auth"] = auth
        usual = care.by_method(operation)
        tool = {
            "name": name,
            "description": self._about(operation),
            "category": tidy(self._name, 64),
            "tags": [tidy(tag, 60) for tag in operation.tags[:_MAX_TAGS]],
            "provider": "http",
            "config": config,
            "permissions": ["network"],
            "side_effects": ["network_access"],
            **usual,
            "input_schema": self._input(arguments, operation),
        }
        if output := self._output(operation, request):
            tool["output_schema"] = output
        own = not self._options.address
        tool |= care.by_document(operation, usual, self._notes, own=own)
        tool |= self._overlay.of(name)
        tool = {key: value for key, value in tool.items() if value not in ("", [])}
        read_tool(tool, origin=Origin("openapi", self._file), file=self._file)
        return tool

    def _about(self, operation: Operation) -> str:
        summary = tidy(operation.fields.get("summary"), _TITLE)
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

    def _need_room(self, count: int) -> None:
        if count > MAX_TOOLS:
            raise refused(
                self._file,
                f"has more than {MAX_TOOLS:,} operations",
                "Choose some: --tag, --path, --method, --operation.",
            )


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


def _told(problem: Any) -> str:
    field = getattr(problem, "field", "")
    return f"{field} {getattr(problem, 'message', problem)}".strip()
