"""Tool files as plain values; what cannot be read is told like any other problem."""

from toolgate.errors import InvalidSpecs
from toolgate.spec.problem import Problem
from toolgate.text.document import Text, read
from toolgate.text.refusal import Refusal


def parse(raw: bytes, *, file: str) -> Text:
    """A YAML or JSON document. Anything odd is an `InvalidSpecs` that says where."""
    try:
        return read(raw, is_json=file.lower().endswith(".json"))
    except Refusal as refusal:
        raise InvalidSpecs(
            [Problem(file=file, line=refusal.line, message=refusal.message, write=refusal.write)]
        ) from None
