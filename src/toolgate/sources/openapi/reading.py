"""A document becomes tools. Pure: nothing is fetched, and nothing is written."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import orjson

from toolgate.errors import InvalidSpecs
from toolgate.sources.openapi.definition import Definitions, Overlaid
from toolgate.sources.openapi.naming import slug, tool_names
from toolgate.sources.openapi.opened import Opened, refused
from toolgate.sources.openapi.operations import Broken, Operation, operations
from toolgate.sources.openapi.options import Options
from toolgate.sources.openapi.overlay import NOTHING, Overlay
from toolgate.sources.openapi.pointers import Pointers, Unresolved
from toolgate.sources.openapi.prose import printable, tidy
from toolgate.sources.openapi.report import Imported, Notes, Skipped
from toolgate.sources.openapi.servers import NoServer

MAX_TOOLS = 5_000
# Of all tools together, as JSON: what operations share is written into each of them.
MAX_WRITTEN = 24 * 1024 * 1024
_TITLE = 200
_ODD_PATH = re.compile(r"[#\\\x00-\x20\x7f]|//|/(?:%2e|\.){1,2}(?:/|\Z)", re.IGNORECASE)
# Told how many of how many operations were looked at.
Progress = Callable[[int, int], None]


def read(
    opened: Opened,
    options: Options,
    *,
    file: str,
    overlay: Overlay = NOTHING,
    progress: Progress | None = None,
) -> Imported:
    """The tools of a document and a report, or `InvalidSpecs`."""
    reader = _Reader(opened, options, file, overlay)
    return reader.read(progress or (lambda _done, _all: None))


class _Reader:
    def __init__(self, opened: Opened, options: Options, file: str, overlay: Overlay) -> None:
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
        self._definitions = Definitions(
            opened, options, overlay, self._notes, name=self._name, file=file
        )
        self._tool_name = tool_names(options.prefix)
        self._skipped: list[Skipped] = []

    def read(self, progress: Progress) -> Imported:
        for line in self._opened.stray:
            told = "a control character was replaced"
            self._notes.add(told, f"line {line}")
        everything = list(operations(self._opened.value, self._pointers))
        tools: list[dict[str, Any]] = []
        written = 0
        for done, one in enumerate(everything, 1):
            if isinstance(one, Broken):
                self._skipped.append(Skipped(operation=one.path, reason=one.reason))
            elif tool := self._tool(one):
                tools.append(tool)
                written += len(orjson.dumps(tool))
                self._need_room(len(tools), written)
            progress(done, len(everything))
        if hooks := self._opened.value.get("webhooks"):
            for hook in cast("dict[str, Any]", hooks) if isinstance(hooks, dict) else {}:
                reason = "a webhook is called by the service, not by us"
                self._skipped.append(Skipped(operation=f"webhook {printable(hook)}", reason=reason))
        for told, where in self._overlay.unused():
            self._notes.add(told, printable(where))
        found = [one for one in everything if isinstance(one, Operation)]
        return Imported(
            title=self._title,
            version=self._version,
            name=self._name,
            operations=len(found),
            tags=Counter(tag for one in found for tag in one.tags),
            tools=tools,
            skipped=self._skipped,
            notes=self._notes.all(),
            secrets=self._definitions.security.secrets(),
            unknown=self._options.selection.unknown(found),
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
                return self._definitions.of(name, operation)
            except (Unresolved, NoServer) as problem:
                reason = str(problem)
            except Overlaid as error:
                raise InvalidSpecs(error.problems) from None
            except InvalidSpecs as error:
                reason = "; ".join(_told(one) for one in error.problems)
        self._skipped.append(Skipped(operation=operation.shown, reason=reason))
        return None

    def _need_room(self, count: int, written: int) -> None:
        if count > MAX_TOOLS or written > MAX_WRITTEN:
            what = "has more than" if count > MAX_TOOLS else "makes tools of more than"
            most = f"{MAX_TOOLS:,} operations" if count > MAX_TOOLS else f"{MAX_WRITTEN:,} bytes"
            raise refused(
                self._file,
                f"{what} {most}",
                "Choose some: --tag, --path, --method, --operation.",
            )


def _told(problem: Any) -> str:
    field = getattr(problem, "field", "")
    return f"{field} {getattr(problem, 'message', problem)}".strip()
