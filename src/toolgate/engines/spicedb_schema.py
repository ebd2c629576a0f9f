"""The schema that SpiceDB has to hold: made of ours, so that the two cannot drift apart."""

from typing import Any, cast

import authzed.api.v1 as authzed_v1
import grpc
from authzed.api.v1 import Consistency, ReadSchemaRequest, WriteSchemaRequest

from toolgate.engines.spicedb_channel import Channel
from toolgate.errors import SettingsInvalid
from toolgate.tenancy.relation import EXECUTE, SCHEMA

# Its types say nothing of this question.
_DiffSchemaRequest = cast("Any", authzed_v1).DiffSchemaRequest
# An older moment may not have yet what is there.
_NOW = Consistency(fully_consistent=True)
# What others add to the schema, or write beside it, does not change who may execute a tool.
_HARMLESS = frozenset(
    {
        "definition_removed",
        "definition_doc_comment_changed",
        "relation_removed",
        "relation_doc_comment_changed",
        "permission_removed",
        "permission_doc_comment_changed",
        "caveat_removed",
        "caveat_doc_comment_changed",
    }
)


def _definitions() -> dict[str, str]:
    lines: dict[str, list[str]] = {"user": []}
    for kind, relations in SCHEMA.items():
        lines[kind] = [
            f"\trelation {relation}: {' | '.join(sorted(subjects))}"
            for relation, subjects in relations.items()
        ]
    lines["tool"].append(f"\tpermission execute = {' + '.join(EXECUTE)}")
    # Each statement on a line of its own: the parser takes no two.
    return {
        kind: "\n".join([f"definition {kind} {{", *inner, "}"]) for kind, inner in lines.items()
    }


DEFINITIONS = _definitions()
TEXT = "\n\n".join(DEFINITIONS.values())


async def agree(channel: Channel) -> None:
    """Write what is missing, and keep what others have there. `SettingsInvalid` if it conflicts."""
    existing = await _existing(channel)
    missing = await _missing(channel)
    if not missing:
        return
    text = "\n\n".join([existing, *(DEFINITIONS[kind] for kind in missing)])
    await channel.ask(channel.schema.WriteSchema, WriteSchemaRequest(schema=text))
    if await _missing(channel):
        raise _conflict(["it does not hold what was just written; another one writes it too"])


async def _existing(channel: Channel) -> str:
    try:
        answer = await channel.ask(
            channel.schema.ReadSchema, ReadSchemaRequest(), but=grpc.StatusCode.NOT_FOUND
        )
    except LookupError:
        return ""
    return answer.schema_text


async def _missing(channel: Channel) -> list[str]:
    answer = await channel.ask(
        cast("Any", channel.schema).DiffSchema,
        _DiffSchemaRequest(comparison_schema=TEXT, consistency=_NOW),
    )
    problems = [text for one in answer.diffs if (text := _difference(one))]
    if problems:
        raise _conflict(problems)
    return [one.definition_added.name for one in answer.diffs if one.HasField("definition_added")]


def _difference(one: Any) -> str:
    kind: str = one.WhichOneof("diff") or "an unknown difference"
    if kind == "definition_added" or kind in _HARMLESS:
        return ""
    if kind in {"relation_subject_type_added", "relation_subject_type_removed"}:
        change = getattr(one, kind)
        relation, other = change.relation, change.changed_subject_type
        inner = ":*" if other.is_public_wildcard else ""
        inner = f"#{other.optional_relation_name}" if other.optional_relation_name else inner
        caveat = f" with {other.optional_caveat_name}" if other.optional_caveat_name else ""
        verb = "has to take" if kind.endswith("added") else "may not take"
        return (
            f"{relation.parent_definition_name}.{relation.name} {verb} "
            f"{other.subject_definition_name}{inner}{caveat}"
        )
    if kind in {"relation_added", "permission_added", "permission_expr_changed"}:
        part = getattr(one, kind)
        verb = "is another" if kind.endswith("changed") else "is missing"
        return f"{part.parent_definition_name}.{part.name} {verb}"
    return kind.replace("_", " ")


def _conflict(problems: list[str]) -> SettingsInvalid:
    return SettingsInvalid(
        [
            *(f"relations.url: the schema of that SpiceDB: {problem}" for problem in problems),
            "relations.url: correct its definitions, or use a SpiceDB of its own",
        ]
    )
