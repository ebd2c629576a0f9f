"""OpenAPI documents become tool files: fetched within the guard, read, written so that it lasts."""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import orjson
import yaml

from toolgate.catalog.source import Source
from toolgate.errors import InvalidRequest, SourceUnavailable
from toolgate.net.address import authorization, shown, without_user
from toolgate.net.client import HttpClient
from toolgate.net.guard import Guard
from toolgate.settings.settings import Settings
from toolgate.sources.openapi import overlay, reading
from toolgate.sources.openapi.naming import slug
from toolgate.sources.openapi.opened import MAX_BYTES, Opened, open_document, refused
from toolgate.sources.openapi.options import Options
from toolgate.sources.openapi.overlay import NOTHING, Overlay
from toolgate.sources.openapi.reading import Progress
from toolgate.sources.openapi.remembered import KEY, Remembered, recalled
from toolgate.sources.openapi.report import Imported, Note, Secret, Skipped
from toolgate.sources.openapi.selection import Selection
from toolgate.sources.openapi.source import OpenApiSource
from toolgate.sources.text import parse
from toolgate.spec.reader import read_tools
from toolgate.spec.tool import Origin, ToolSpec
from toolgate.text.document import MAX_BYTES as MAX_FILE
from toolgate.text.document import read
from toolgate.text.refusal import Refusal

__all__ = ["SUFFIX", "Imported", "Note", "Options", "Progress", "Remembered", "Secret",
           "Selection", "Skipped", "Written", "fetched", "imported", "is_address", "kept_address",
           "overlay_in", "remembered_in", "remembered_of", "specs_in", "written"]  # fmt: skip
SUFFIX = ".openapi"
_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_SECONDS = 60.0
_REDIRECTS = 3
_MOST_TOLD = 5


class Fetched(NamedTuple):
    """A document's bytes, what messages call it, and its address if it has one."""

    raw: bytes
    file: str
    address: str = ""


class Written(NamedTuple):
    """A tool file: what it is called and what it holds."""

    name: str
    text: bytes


async def fetched(settings: Settings, where: str) -> Fetched:
    """The document in a file or behind an address."""
    if not is_address(where):
        return await asyncio.to_thread(_from_file, Path(where))
    url, client = without_user(where), HttpClient(Guard(settings.net.allow))
    headers = {"Accept": "application/json, application/yaml, */*;q=0.5", **authorization(where)}
    try:
        # Only the settings let private networks in: an address on a command line is often copied.
        answer = await client.get(
            url, headers=headers, most=MAX_BYTES, seconds=_SECONDS, redirects=_REDIRECTS
        )
    finally:
        await client.close()
    if answer.status != 200:
        raise SourceUnavailable(f"{shown(where)} answered {answer.status} instead of 200.")
    return Fetched(answer.body, shown(where), url.partition("#")[0])


def sources(settings: Settings, client: HttpClient) -> list[Source]:
    """The documents that the settings name."""
    found: list[Source] = []
    for name, one in settings.tools.openapi.items():
        is_far = is_address(one.document)
        selection = Selection(
            tags=one.tags,
            paths=one.paths,
            methods=one.methods,
            operations=one.operations,
            deprecated=one.deprecated,
        )
        options = Options(
            name=name,
            prefix=one.prefix,
            server=one.server,
            client_id=one.client_id,
            auth=one.auth,
            selection=selection,
        )
        word = settings.path(one.overlay) if one.overlay else None
        place = one.document if is_far else settings.path(one.document)
        reach = client.named(without_user(one.document)) if is_far else client
        found.append(OpenApiSource(place, options, reach, label=name, word=word))
    return found


def _from_file(path: Path) -> Fetched:
    try:
        with path.open("rb") as file:
            # One byte more than is taken tells that it is too large.
            return Fetched(file.read(MAX_BYTES + 1), path.name)
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read ({error.strerror}).") from None


def imported(
    document: Fetched,
    options: Options,
    *,
    overlay: Overlay = NOTHING,
    progress: Progress | None = None,
) -> Imported:
    """The tools of a document, and a report; `InvalidRequest` where what is chosen is not there."""
    opened: Opened = open_document(document.raw, file=document.file)
    found = reading.read(opened, options, file=document.file, overlay=overlay, progress=progress)
    if found.unknown:
        raise InvalidRequest(" ".join(found.unknown[:_MOST_TOLD]))
    return found


def overlay_in(path: Path) -> Overlay:
    """An operator's word on tools, out of a file."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read ({error.strerror}).") from None
    return overlay.read(raw, file=path.name)


def remembered_in(path: Path, *, shown: str) -> Remembered | None:
    """How a tool file was imported, if it is there and says so."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidRequest(f"{shown} cannot be read ({error.strerror}).") from None
    return remembered_of(raw, shown=shown)


def remembered_of(raw: bytes, *, shown: str) -> Remembered | None:
    """How a tool file was imported, if it says so."""
    return recalled(parse(raw, file=shown).value, file=shown)


def is_address(where: str) -> bool:
    """Whether it is no file."""
    return _ADDRESS.match(where) is not None


def kept_address(where: str) -> str:
    """An address as a file may keep it; nothing where it can hold a secret."""
    return where if where == without_user(where) and "?" not in where else ""


def written(found: Imported, how: Remembered, *, where: str) -> Written:
    """The tool file of an import: YAML where it is small enough for that, else JSON."""
    stem = slug(found.name) or "openapi"
    document: dict[str, Any] = {KEY: how.written(), "tools": list(found.tools)}
    head = f"# Tools of {found.title or where}. What you change here is lost when they are\n"
    head += f"# imported again: toolgate tools import openapi --again {stem}\n"
    text = _as_yaml(document, head)
    if text is not None:
        return Written(f"{stem}{SUFFIX}.yaml", text)
    # A line a tool: what changes can be seen, and it stays small.
    lines = b",\n".join(orjson.dumps(tool) for tool in found.tools)
    made = orjson.dumps({KEY: document[KEY]})[:-1]
    text = made + b',\n"tools": [\n' + lines + b"\n]}\n"
    if len(text) > MAX_FILE:
        raise refused(
            where,
            f"makes a tool file of {len(text):,} bytes; at most {MAX_FILE:,} are read",
            "Choose fewer operations: --tag, --path, --method, --operation.",
        )
    return Written(f"{stem}{SUFFIX}.json", text)


def specs_in(file: Written, place: str) -> list[ToolSpec]:
    """What a reader makes of a tool file."""
    text = parse(file.text, file=place)
    return read_tools(text.value, file=place, origin=Origin("file", place), line_of=text.line_of)


class _Plain(cast("type[Any]", getattr(yaml, "CSafeDumper", yaml.SafeDumper))):
    """Writes everything out: what stands twice is no alias."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  whatever it is
        return True


def _as_yaml(document: Mapping[str, Any], head: str) -> bytes | None:
    """As YAML, if that is read back as what it was."""
    if len(orjson.dumps(document)) > 1024 * 1024:
        return None
    text: str = yaml.dump(document, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=100)
    raw = (head + text).encode()
    try:
        return raw if read(raw).value == document else None
    except Refusal:
        return None
