"""How a tool file was imported: kept in the file itself, so that it can be done again."""

import shlex
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from toolgate.errors import InvalidRequest
from toolgate.sources.openapi.options import Options
from toolgate.sources.openapi.selection import Selection

KEY = "imported"


class Remembered(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """Paths are as the settings file has them: from its folder."""

    # Empty where its address may hold a secret, which is not kept.
    document: str = ""
    name: str = ""
    prefix: str = ""
    server: str = ""
    client_id: str = ""
    overlay: str = ""
    auth: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    deprecated: bool = False

    @property
    def options(self) -> Options:
        """The same, for whoever reads the document."""
        selection = Selection(
            tags=self.tags,
            paths=self.paths,
            methods=self.methods,
            operations=self.operations,
            deprecated=self.deprecated,
        )
        return Options(
            name=self.name,
            prefix=self.prefix,
            server=self.server,
            client_id=self.client_id,
            auth=self.auth,
            selection=selection,
        )

    def under(self, given: "Remembered") -> "Remembered":
        """With what is given now above it."""
        return msgspec.structs.replace(self, **_said(given))

    def written(self) -> dict[str, Any]:
        """As it stands in a tool file."""
        return msgspec.json.decode(msgspec.json.encode(self))

    def shown(self) -> str:
        """The options as a command line has them."""
        return shlex.join(_words(self))


def recalled(document: Any, *, file: str) -> Remembered | None:
    """What a tool file says about how it was made, if it says so."""
    if not isinstance(document, dict) or KEY not in cast("dict[str, Any]", document):
        return None
    try:
        return msgspec.convert(document[KEY], Remembered)
    except msgspec.ValidationError as error:
        raise InvalidRequest(
            f"{file}: {KEY} is not as an import has written it ({error}). Import it once with all "
            "options."
        ) from None


def _said(given: Remembered) -> dict[str, Any]:
    fields = given.__struct_fields__
    plain = Remembered()
    values = {field: getattr(given, field) for field in fields}
    return {field: of for field, of in values.items() if of != getattr(plain, field)}


def _words(given: Remembered) -> Iterator[str]:
    for field, value in _said(given).items():
        if field == "document":
            continue
        option = f"--{_OPTIONS.get(field, field).replace('_', '-')}"
        if value is True:
            yield option
        else:
            for one in [value] if isinstance(value, str) else value:
                yield from (option, one)


_OPTIONS = {"tags": "tag", "paths": "path", "methods": "method", "operations": "operation"}
