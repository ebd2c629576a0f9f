"""Relations: who stands how to what. `tool:pay#executor@group:finance#member`."""

import re
from collections.abc import Mapping

import msgspec

from toolgate.errors import InvalidRequest

# For each kind of object, its relations and what may stand on the other side of them.
SCHEMA: Mapping[str, Mapping[str, frozenset[str]]] = {
    "tool": {
        "owner": frozenset({"user", "agent", "group#member", "team#member", "agent#user"}),
        "executor": frozenset({"user", "agent", "group#member", "team#member", "agent#user"}),
    },
    "group": {"member": frozenset({"user", "agent", "group#member", "team#member"})},
    "team": {"member": frozenset({"user", "agent", "group#member", "team#member"})},
    # Whom an agent acts for.
    "agent": {"user": frozenset({"user", "group#member", "team#member"})},
}
# Either gives `execute` on a tool.
EXECUTE = ("owner", "executor")
# SpiceDB follows 50 steps, the tool and its permission among them; farther away is refused.
MOST_MEMBERSHIPS = 48
_NAME = re.compile(r"[^\s\x00-\x1f\x7f#]{1,256}\Z")
_FORM = "write them as tool:NAME#executor@user:NAME or tool:NAME#executor@group:NAME#member"


class Relation(msgspec.Struct, frozen=True, order=True):
    """One relation of one tenant. `subject_relation` is empty where the subject is itself meant."""

    kind: str
    name: str
    relation: str
    subject_kind: str
    subject: str
    subject_relation: str = ""

    def __str__(self) -> str:
        inner = f"#{self.subject_relation}" if self.subject_relation else ""
        return f"{self.kind}:{self.name}#{self.relation}@{self.subject_kind}:{self.subject}{inner}"


def parse(text: str) -> Relation:
    """`tool:pay#executor@user:ann` as a relation, or `InvalidRequest` that says how to write it."""
    resource, at, subject = text.partition("@")
    # A user may be called ann@example.com: the first @ parts, the others belong to the name.
    kind, _, rest = resource.partition(":")
    name, hash_, relation = rest.rpartition("#")
    subject_kind, colon, who = subject.partition(":")
    subject, _, inner = who.partition("#")
    if not (at and hash_ and colon):
        raise InvalidRequest(f"{text[:120]!r} is no relation; {_FORM}.")
    return checked(Relation(kind, name, relation, subject_kind, subject, inner))


def checked(relation: Relation) -> Relation:
    """The relation, or `InvalidRequest`."""
    known = SCHEMA.get(relation.kind)
    if known is None:
        raise InvalidRequest(
            f"{relation.kind[:40]!r} has no relations; there are {', '.join(SCHEMA)}; {_FORM}."
        )
    subjects = known.get(relation.relation)
    if subjects is None:
        raise InvalidRequest(
            f"A {relation.kind} has no {relation.relation[:40]!r}; it has {', '.join(known)}."
        )
    inner = f"#{relation.subject_relation}" if relation.subject_relation else ""
    if f"{relation.subject_kind}{inner}" not in subjects:
        raise InvalidRequest(
            f"{relation.subject_kind[:40]}{inner[:40]} cannot be {relation.relation} of a "
            f"{relation.kind}; it takes {', '.join(sorted(subjects))}."
        )
    for name in (relation.name, relation.subject):
        # What cannot be seen makes two names look like one.
        if not _NAME.match(name) or not name.isprintable():
            raise InvalidRequest(
                f"{name[:80]!r} cannot stand in a relation: 1 to 256 characters without spaces, "
                "# and control characters."
            )
    return relation
