"""One call of a built-in tool and what comes of it, as `cases/TOOL.yaml` has them."""

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

import msgspec
import yaml

from toolgate.tools.table import Step, table

FOLDER = Path(__file__).parent / "cases"


class Failing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The error's code, and words of its message."""

    code: str = "tool_error"
    says: str = ""


class Before(Step, frozen=True, forbid_unknown_fields=True):
    """A call that was made before, and succeeded."""

    args: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`gives` is a part of the result, `says` a part of it as text, `fails` how it is refused.

    A text `~1.5` is a number, nearly; `*` is anything.
    """

    name: str
    args: dict[str, Any] = {}
    before: tuple[Before, ...] = ()
    gives: Any = msgspec.UNSET
    says: str = ""
    lacks: str = ""
    fails: Failing | None = None
    hostile: bool = False


@cache
def cases_of(tool: str) -> Sequence[Case]:
    """Those of one tool; none where nobody has written any."""
    path = FOLDER / f"{tool}.yaml"
    if not path.exists():
        return ()
    return msgspec.convert(read(path.read_text("utf-8")), tuple[Case, ...])


class _Loader(yaml.SafeLoader):
    """What is said twice is refused: one of the two would hold nothing."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002  as it is there
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]  # pyright: ignore[reportUnknownMemberType]
        twice = [key for number, key in enumerate(keys) if key in keys[:number]]
        if twice:
            raise yaml.MarkedYAMLError(problem=f"{twice[0]!r} twice", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)


def read(text: str) -> Any:
    """A table of cases."""
    return yaml.load(text, _Loader)  # noqa: S506  it is a safe one


def every_case() -> list[tuple[str, Case]]:
    """All of them, with their tool's name."""
    return [(tool, case) for tool in table() for case in cases_of(tool)]


def is_part(wanted: Any, found: Any) -> bool:
    """Whether all that is wanted is there; more may be."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            key in found and is_part(value, found[key])
            for key, value in cast("dict[str, Any]", wanted).items()
        )
    if isinstance(wanted, list):
        if not isinstance(found, list):
            return False
        parts, whole = cast("list[Any]", wanted), cast("list[Any]", found)
        return len(parts) == len(whole) and all(map(is_part, parts, whole))
    if isinstance(wanted, str) and wanted.startswith("~"):
        return isinstance(found, (int, float)) and math.isclose(
            float(wanted[1:]), found, rel_tol=1e-6, abs_tol=1e-9
        )
    return wanted in ("*", found) if isinstance(wanted, str) else wanted == found
