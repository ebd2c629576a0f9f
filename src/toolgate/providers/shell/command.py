"""A command as its definition says it, read once: words, variables, folders, limits, result."""

import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, cast

import msgspec

from toolgate.providers.shell.argv import Argv, argv
from toolgate.providers.shell.code import STDIN, runs_arguments
from toolgate.providers.shell.env import PATH, secrets, variables
from toolgate.providers.shell.line import words
from toolgate.providers.shell.places import (
    SYSTEM,
    Surroundings,
    check_begins,
    is_in,
    program_at,
    root,
)
from toolgate.providers.shell.template import Template, template
from toolgate.sandbox.policy import MEGABYTE, Policy
from toolgate.spec import fields
from toolgate.spec.effect import Effect
from toolgate.spec.fit import argument_names
from toolgate.spec.tool import ToolSpec

_OUTPUTS = ("full", "text", "json")
_FREE_FORM = ["bash", "-c", "{script}"]


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """What runs, and what its end means."""

    program: str
    argv: Argv
    env: Mapping[str, Template] = MappingProxyType({})
    # By variable, the name of a secret.
    secrets: Mapping[str, str] = MappingProxyType({})
    stdin: Template | None = None
    folder: str = ""
    policy: Policy = Policy()
    output: str = "full"
    ok: frozenset[int] = frozenset({0})
    # By which the program says that it has done nothing.
    refused: frozenset[int] = frozenset()


def command(spec: ToolSpec, around: Surroundings) -> Command:
    """Read a definition's `config`, or `ValueError` that says what to write."""
    given = fields.only(spec.config.value(), _KEYS)
    found = _argv(spec, given)
    env = given.get("env", {})
    held = _secrets(given, env)
    stdin = given.get("stdin")
    _check_free_form(spec, found, stdin, is_shell=given.get("shell", False))
    _check_names(spec, found, [*env.values(), *([stdin] if stdin else [])])
    writable = tuple(root(around, text, "writable") for text in given.get("writable", ()))
    readable = tuple(root(around, text, "readable") for text in given.get("readable", ()))
    folder = root(around, given["folder"], "folder") if "folder" in given else ""
    if folder and not any(is_in(folder, one) for one in (*writable, *readable)):
        readable = (*readable, folder)
    path = env["PATH"].literal if "PATH" in env else PATH
    program = program_at(found.literals[0] or "", path or "", around.root, writable)
    if not any(is_in(program, one) for one in (*SYSTEM, *readable, *around.readable)):
        readable = (*readable, program)
    policy = Policy(
        readable=readable,
        writable=writable,
        agreed=MappingProxyType({os.path.normpath(program): os.path.realpath(program)}),
        hosts=given.get("hosts", ()),
        **_bounds(given.get("limits", {})),
    )
    check_begins(around, program, policy, path=path or "")
    return Command(
        program=program,
        argv=found,
        env=MappingProxyType(env),
        secrets=MappingProxyType(held),
        stdin=stdin,
        folder=folder,
        policy=policy,
        output=given.get("output", "full"),
        ok=given.get("ok_codes", frozenset({0})),
        refused=given.get("refused_codes", frozenset()),
    )


def _bounds(limits: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "memory": limits.get("memory", 512) * MEGABYTE,
        "cpu": limits.get("cpu", 60.0),
        "seconds": limits.get("seconds", 0.0),
        "processes": limits.get("processes", 64),
        "open_files": limits.get("open_files", 256),
        "file_size": limits.get("file_size", 64) * MEGABYTE,
        "written": limits.get("written", 1024) * MEGABYTE,
        "files": limits.get("files", 100_000),
        "output": limits.get("output", MEGABYTE),
    }


def _argv(spec: ToolSpec, given: dict[str, Any]) -> Argv:
    if "argv" in given and "command" in given:
        raise ValueError("has argv and command; keep one")
    listed: object = given.get("argv")
    if "command" in given:
        listed = words(given["command"])
    elif listed is None:
        if not given.get("shell"):
            raise ValueError("names no command; write argv: [PROGRAM, WORD, '{argument}']")
        listed = _FREE_FORM
    # A script that an argument brings may begin as it likes: it is code anyway.
    dashes = (*given.get("dashes", ()), *(("script",) if listed is _FREE_FORM else ()))
    ats = (*given.get("ats", ()), *(("script",) if listed is _FREE_FORM else ()))
    try:
        return argv(listed, dashes=dashes, ats=ats, defaults=_defaults(spec))
    except ValueError as error:
        where = "command" if "command" in given else "argv"
        raise ValueError(f".{where} {error}") from None


def _check_free_form(
    spec: ToolSpec, found: Argv, stdin: Template | None, *, is_shell: bool
) -> None:
    """What an argument can say freely is as dangerous as anything can be."""
    read = (STDIN,) if stdin is not None and stdin.names else ()
    if not any(runs_arguments(words) for words in found.shapes(read)):
        return
    if not is_shell:
        raise ValueError(
            "would run an argument as code; put the code into a script and hand the argument over "
            "as a word, or write shell: true, with destructive: true and requires_approval: true"
        )
    for field in ("destructive", "requires_approval"):
        if not getattr(spec, field):
            raise ValueError(f"is a free shell; write {field}: true beside it")
    if spec.effect is not Effect.IRREVERSIBLE:
        raise ValueError("is a free shell; write effect: irreversible beside it")


def _secrets(given: Mapping[str, Any], env: Mapping[str, Any]) -> dict[str, str]:
    found = cast("dict[str, str]", given.get("secrets", {}))
    if found and given.get("shell"):
        raise ValueError(
            "is a free shell with secrets, which a script can say in any other form; put what "
            "needs them into a script of yours, and name that"
        )
    if both := found.keys() & env.keys():
        raise ValueError(f"fills {min(both)} from env and from secrets; keep one")
    return found


def _check_names(spec: ToolSpec, found: Argv, others: list[Template]) -> None:
    named = argument_names(spec.input_schema)
    used = [name for one in (*found.templates, *others) for name in one.names]
    for name in used if named is not None else ():
        if name not in (named or ()):
            raise ValueError(
                f"takes {{{name}}}, which input_schema lacks; name it there, or double the braces "
                "for the text itself"
            )
    for name in (*found.dashes, *found.ats):
        if name not in used:
            raise ValueError(f"lists {name!r} in dashes or ats, which no word takes")
    properties = _properties(spec)
    for one in found.templates:
        for name in one.names:
            kind = properties.get(name, {}).get("type")
            if kind == "object" or (kind == "array" and one.many is None):
                wanted = f"{{{name}...}} by itself" if kind == "array" else "it on stdin"
                raise ValueError(f"takes {name!r}, an {kind}, as one word; write {wanted}")
            if one.many is not None and isinstance(kind, str) and kind != "array":
                raise ValueError(f"takes {name!r} as a list, and it is a {kind}; write {{{name}}}")


def _properties(spec: ToolSpec) -> dict[str, dict[str, Any]]:
    found = cast("dict[str, Any]", spec.input_schema.value().get("properties", {}))
    return {name: one for name, one in found.items() if isinstance(one, dict)}


def _defaults(spec: ToolSpec) -> Mapping[str, Any]:
    found = _properties(spec)
    return MappingProxyType(
        {name: one["default"] for name, one in found.items() if "default" in one}
    )


def _codes(value: Any) -> frozenset[int]:
    if not isinstance(value, list) or not value:
        raise ValueError("is no list of exit codes")
    read = fields.count(0, 255)
    return frozenset(read(item) for item in cast("list[Any]", value))


def _one_output(value: Any) -> str:
    if value not in _OUTPUTS:
        raise ValueError(f"is not one of {', '.join(_OUTPUTS)}")
    return cast("str", value)


_LIMITS = {
    "memory": fields.count(16, 1_048_576),
    "cpu": fields.number(0.1, 86_400),
    "seconds": fields.number(0.1, 86_400),
    "processes": fields.count(1, 100_000),
    "open_files": fields.count(8, 1_048_576),
    "file_size": fields.count(0, 1_048_576),
    "written": fields.count(1, 1_048_576),
    "files": fields.count(1, 100_000_000),
    "output": fields.count(1, 64 * MEGABYTE),
}


def _any(value: Any) -> Any:
    return value


def _line(value: Any) -> str:
    if isinstance(value, list):
        raise ValueError("is a list: write it as argv, or as one line")
    return fields.text(10_000)(value)


def _stdin(value: Any) -> Template:
    return template(fields.text(100_000)(value))


def _limits(value: Any) -> dict[str, Any]:
    return fields.only(value, _LIMITS)


_KEYS: Mapping[str, Callable[[Any], Any]] = {
    "argv": _any,
    "command": _line,
    "shell": fields.flag,
    "dashes": fields.texts,
    "ats": fields.texts,
    "stdin": _stdin,
    "env": variables,
    "secrets": secrets,
    "folder": fields.text(1_000),
    "readable": fields.texts,
    "writable": fields.texts,
    "hosts": fields.texts,
    "limits": _limits,
    "output": _one_output,
    "ok_codes": _codes,
    "refused_codes": _codes,
}
