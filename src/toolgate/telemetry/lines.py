"""Log lines: one event is one line, as text or as JSON, whatever names it was given.

An error is told by kind and place: its text can hold anything.
"""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

import orjson

from toolgate.telemetry.place import kind_of, place_of

# What would begin another line, speak to the terminal, or turn the reading order around.
_CONTROL = {
    **{code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))},
    **{
        code: f"\\u{code:04x}"
        for code in (
            0x061C,
            *range(0x200B, 0x2010),
            *range(0x2028, 0x202F),
            *range(0x2060, 0x2070),
            0xFEFF,
        )
    },
    **{code: f"\\u{code:04x}" for code in range(0xD800, 0xE000)},
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
}
# In JSON the same signs, as JSON writes them: whoever reads the line gets them back.
_JSON_CONTROL = {
    code: f"\\u{code:04x}" for code in _CONTROL if not code < 32 and not 0xD800 <= code < 0xE000
}


class Brief(logging.Formatter):
    """Level, logger and message, and an event's fields behind it as `name=value`."""

    def __init__(self) -> None:
        super().__init__("%(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  the name is logging's
        """One line."""
        told = super().formatMessage(record)
        fields = fields_of(record)
        if fields:
            told += "".join(f" {name}={_word(value)}" for name, value in fields.items())
        return told.translate(_CONTROL)

    def formatException(self, ei: Any) -> str:  # noqa: N802  the name is logging's
        """Kind and place."""
        return shown(ei[1])

    def formatStack(self, stack_info: str) -> str:  # noqa: ARG002, N802  the name is logging's
        """Nothing."""
        return ""


class JsonLines(logging.Formatter):
    """One JSON object a line: event, level, logger, timestamp, and the event's fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Also for records of libraries, which log whole traces."""
        told: dict[str, Any] = {
            "event": record.getMessage(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "timestamp": _moment(record.created),
            **fields_of(record),
        }
        if record.exc_info:
            told["error"] = shown(record.exc_info[1])
        try:
            raw = orjson.dumps(told, default=_named)
        except TypeError:
            # Text that is no Unicode.
            raw = orjson.dumps({name: _word(value) for name, value in told.items()})
        return raw.decode().translate(_JSON_CONTROL)


def fields_of(record: logging.LogRecord) -> Mapping[str, Any]:
    """What an event of ours says beside its name."""
    found = record.__dict__.get("fields")
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def shown(error: BaseException | None) -> str:
    """Its kind and where it was raised, never its own words."""
    return "unknown" if error is None else f"{kind_of(error)} in {place_of(error)}"


def _word(value: object) -> str:
    text = value if isinstance(value, str) else str(value)
    text = text.encode("utf-8", "backslashreplace").decode()
    # A value with a space or a quote could pass for two fields.
    if not text or any(sign in text for sign in ' "='):
        return orjson.dumps(text).decode()
    return text


def _named(value: object) -> str:
    return type(value).__name__


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")
