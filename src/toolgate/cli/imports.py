"""`toolgate tools import`: a tool file as it is, or the operations of an OpenAPI document."""

from pathlib import Path
from typing import Annotated

import typer

from toolgate.bootstrap import Toolgate
from toolgate.cli import show
from toolgate.cli.administer import administer
from toolgate.cli.bring import Brought, bring
from toolgate.cli.far import KeyFile, Place, Server, Url
from toolgate.cli.operator import signed
from toolgate.cli.session import Config, Json, at_place, load, usage
from toolgate.toolfiles import remove as remove_file

OPENAPI = "openapi"
Globs = list[str]
_NONE: Globs = []


def import_(
    what: Annotated[
        str, typer.Argument(help="A tool file, in any of the layouts; or the word openapi.")
    ] = "",
    document: Annotated[
        str, typer.Argument(help="After openapi: a document's file or address.")
    ] = "",
    remove: Annotated[
        str, typer.Option("--remove", help="Take an import out of the store, by its name there.")
    ] = "",
    replace: Annotated[
        bool, typer.Option("--replace", metavar="", help="Also where a file of its name is there.")
    ] = False,
    name: Annotated[
        str, typer.Option("--name", help="OpenAPI: what its file, category and secrets are called.")
    ] = "",
    prefix: Annotated[
        str, typer.Option("--prefix", help="OpenAPI: what stands before each tool's name.")
    ] = "",
    server: Annotated[
        str, typer.Option("--server", help="OpenAPI: the address to use, whatever it says.")
    ] = "",
    client_id: Annotated[
        str, typer.Option("--client-id", help="OpenAPI: who we are where OAuth gives tokens.")
    ] = "",
    auth: Annotated[
        Globs, typer.Option("--auth", help="OpenAPI: the security scheme to take of several.")
    ] = _NONE,
    overlay: Annotated[
        str, typer.Option("--overlay", help="OpenAPI: a file with your word on its tools.")
    ] = "",
    tag: Annotated[Globs, typer.Option("--tag", help="OpenAPI: only of this tag.")] = _NONE,
    path: Annotated[
        Globs, typer.Option("--path", help="OpenAPI: only below this path, as a glob.")
    ] = _NONE,
    method: Annotated[
        Globs, typer.Option("--method", help="OpenAPI: only of this method.")
    ] = _NONE,
    operation: Annotated[
        Globs, typer.Option("--operation", help="OpenAPI: only of this operationId, as a glob.")
    ] = _NONE,
    deprecated: Annotated[
        bool, typer.Option("--deprecated", metavar="", help="OpenAPI: also what is deprecated.")
    ] = False,
    again: Annotated[
        str, typer.Option("--again", help="OpenAPI: with the document and options of this import.")
    ] = "",
    tags: Annotated[
        bool, typer.Option("--tags", metavar="", help="OpenAPI: show only which tags there are.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", "--list", metavar="", help="OpenAPI: show only what would come."),
    ] = False,
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    json: Json = False,
) -> None:
    """Check a tool file against all that is there, and copy it to the others; or make one from an
    OpenAPI document: `import openapi FILE|URL`.
    """
    # Every `toolgate tools` loads this file, and only this one reads documents.
    from toolgate.cli.openapi import Asked, progress, take  # noqa: PLC0415
    from toolgate.cli.taken import Taken, tell, tell_tags  # noqa: PLC0415
    from toolgate.importing import Remembered  # noqa: PLC0415

    place = Place(config, url, key_file)
    given = Remembered(
        document=document,
        name=name,
        prefix=prefix,
        server=server,
        client_id=client_id,
        overlay=overlay,
        auth=tuple(auth),
        tags=tuple(tag),
        paths=tuple(path),
        methods=tuple(method),
        operations=tuple(operation),
        deprecated=deprecated,
    )
    if remove:
        if what or given != Remembered() or again:
            raise usage("--remove takes an import away, and brings none.", json=json)
        _remove(remove, place, json=json)
        return
    if not what:
        raise usage("Name a tool file, or a document: import openapi FILE|URL.", json=json)
    if what != OPENAPI:
        if given != Remembered() or again or dry_run or tags:
            raise usage("Those go with a document: import openapi FILE|URL.", json=json)
        _file(Path(what), place, replace=replace, json=json)
        return
    if not document and not again:
        raise usage("Name the document: import openapi FILE|URL.", json=json)
    if unknown := given.options.selection.unknown_methods():
        raise usage(f"There is no method {unknown[0][:40]!r}.", json=json)
    asked = Asked(given, again, dry_run=dry_run or tags)

    async def here() -> Taken:
        with progress() as told:
            return await take(load(config), asked, told)

    async def far(there: Server) -> Taken:
        from toolgate.cli.openapi_there import take_there  # noqa: PLC0415  as above

        with progress() as told:
            return await take_there(there, load(config), asked, told)

    taken = at_place(place, here, far, json=json)
    if tags:
        tell_tags(taken, json=json)
    else:
        tell(taken, json=json, place=place)


def _file(file: Path, place: Place, *, replace: bool, json: bool) -> None:
    async def here() -> Brought:
        return await bring(load(place.config), file, replace=replace)

    async def far(there: Server) -> Brought:
        from toolgate.cli.openapi_there import bring_there  # noqa: PLC0415  only a server's needs it

        return await bring_there(there, file, replace=replace)

    found = at_place(place, here, far, json=json)
    told = f"{found.file} has {show.count(len(found.tools), 'tool')}: {', '.join(found.tools)}."
    row = {"file": found.file, "tools": found.tools}
    show.told(row, told, json=json, notes=found.notes)


def _remove(name: str, place: Place, *, json: bool) -> None:
    async def work(gate: Toolgate) -> None:
        await remove_file(gate, signed(gate, ""), name)

    async def far(server: Server) -> None:
        await server.delete("imports", name)

    administer(place, work, far, json=json, definitions=True)
    show.told({"name": name, "removed": True}, f"{name} is gone, with its tools.", json=json)
