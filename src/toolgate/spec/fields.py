"""The fields of a tool file: how each is read, what it takes, what it means.

One row a field. The reader, its error messages and the reference page come from this table.
"""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar, cast

from toolgate.spec import names
from toolgate.spec.cost import CALLS, Cost, is_metric, millionths
from toolgate.spec.document import Document
from toolgate.spec.effect import CallerKind, Effect, Execution, Permission, SideEffect
from toolgate.spec.schema import Schema
from toolgate.spec.tool import Compensation, DownstreamKey, Probe, RateLimit, Resource, Retry

E = TypeVar("E", bound=StrEnum)
# Also what turns the direction of text around: a person must read what a model reads.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_RATE = re.compile(r"\s*([0-9]{1,9})\s*/\s*(second|minute|hour|day)\s*\Z")
_URI = re.compile(r"[a-z][a-z0-9+.-]*:(?:[!-z|~]|\{[A-Za-z_][A-Za-z0-9_]*\})+")
_KINDS: Mapping[type, str] = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a text",
    dict: "an object",
    list: "a list",
    type(None): "nothing",
}
_SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}


class Field(NamedTuple):
    """How one field is read (`ValueError` says what is wrong), an example, and its meaning."""

    read: Callable[[Any], Any]
    example: str
    about: str


def kind(value: object) -> str:
    """What a YAML or JSON author calls this value."""
    return _KINDS.get(type(value), type(value).__name__)


def text(most: int) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError(f"is {kind(value)}, not a text")
        if len(value) > most:
            raise ValueError(f"has {len(value):,} characters; at most {most:,} are taken")
        if _CONTROL.search(value):
            raise ValueError("holds a control character")
        return value

    return read


def name(value: Any) -> str:
    given = text(10_000)(value)
    if not names.is_name(given):
        raise ValueError(f"is {given[:80]!r}, which is not {names.EXPECTED}")
    return given


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"is {kind(value)}, not true or false")
    return value


def version(value: Any) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return text(64)(format(value))
    return text(64)(value)


def number(least: float, most: float) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(f"is {kind(value)}, not a number")
        if not least <= value <= most:
            raise ValueError(f"is {format(value)[:40]}; it goes from {least:g} to {most:,g}")
        return float(value)

    return read


def or_nothing(read: Callable[[Any], float]) -> Callable[[Any], float | None]:
    return lambda value: None if value is None else read(value)


def count(least: int, most: int) -> Callable[[Any], int]:
    bounded = number(least, most)

    def read(value: Any) -> int:
        found = bounded(value)
        if not found.is_integer():
            raise ValueError(f"is {value}, not a whole number")
        return int(found)

    return read


def texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, (list, tuple)):
        raise ValueError(f"is {kind(value)}, not a list of texts")
    items = cast("list[Any]", value)
    if len(items) > 256:
        raise ValueError(f"has {len(items):,} entries; at most 256 are taken")
    read = text(256)
    found = tuple(read(item) for item in items)
    if len(set(found)) != len(found):
        raise ValueError("lists an entry twice")
    return found


def word(choices: type[E]) -> Callable[[Any], E]:
    def read(value: Any) -> E:
        try:
            return choices(text(64)(value))
        except ValueError:
            shown = repr(value[:60]) if isinstance(value, str) else kind(value)
            raise ValueError(f"is {shown}, not one of {', '.join(choices)}") from None

    return read


def words(choices: type[E]) -> Callable[[Any], tuple[E, ...]]:
    one = word(choices)

    def read(value: Any) -> tuple[E, ...]:
        return tuple(one(item) for item in texts(value))

    return read


def input_schema(value: Any) -> Schema:
    found = Schema.of(value)
    document = found.value()
    if not isinstance(document, dict) or cast("dict[str, Any]", document).get("type") != "object":
        raise ValueError("must describe an object: arguments have names")
    return found


def config(value: Any) -> Document:
    return Document.of(fields_of(value))


def fields_of(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"is {kind(value)}, not an object")
    return cast("dict[str, Any]", value)


def only(value: Any, allowed: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
    """Read a small object; unknown keys are refused by name."""
    given = fields_of(value)
    for key in given:
        if key not in allowed:
            raise ValueError(
                f"has the unknown key {str(key)[:60]!r}; it takes {', '.join(allowed)}"
            )
    found: dict[str, Any] = {}
    for key, item in given.items():
        try:
            found[key] = allowed[key](item)
        except ValueError as error:
            raise ValueError(f".{key} {error}") from None
    return found


def compensation(value: Any) -> Compensation:
    given = {"tool": value} if isinstance(value, str) else value
    window = number(0.001, 31_536_000)
    found = only(given, {"tool": name, "args": config, "window": or_nothing(window)})
    if "tool" not in found:
        raise ValueError("names no tool")
    return Compensation(**found)


def probe(value: Any) -> Probe:
    given = {"tool": value} if isinstance(value, str) else value
    place = text(256)
    found = only(given, {"tool": name, "args": config, "happened": place, "result": place})
    if "tool" not in found:
        raise ValueError("names no tool")
    if not found.get("happened", True):
        raise ValueError("says nowhere in its result whether it happened")
    return Probe(**found)


def downstream_key(value: Any) -> DownstreamKey:
    given = {"argument": value} if isinstance(value, str) else value
    found = DownstreamKey(**only(given, {"argument": text(128), "header": text(128)}))
    if bool(found.argument) == bool(found.header):
        raise ValueError("names an argument or a header, one of them")
    return found


def retry(value: Any) -> Retry:
    given = cast("Any", value) if isinstance(value, dict) else {"attempts": value}
    delay = number(0, 3600)
    found = only(given, {"attempts": count(1, 20), "base_delay": delay, "max_delay": delay})
    if "attempts" not in found:
        raise ValueError("says no number of attempts")
    return Retry(**found)


def rate_limit(value: Any) -> RateLimit:
    if isinstance(value, str):
        match = _RATE.match(value)
        if match is None or int(match[1]) == 0:
            raise ValueError(f"is {value[:40]!r}, which is no rate")
        return RateLimit(calls=int(match[1]), per=_SECONDS[match[2]])
    found = only(value, {"calls": count(1, 10**9), "per": number(0.001, 31_536_000)})
    if len(found) != 2:
        raise ValueError("needs both calls and per")
    return RateLimit(**found)


def costs(value: Any) -> tuple[Cost, ...]:
    """As an object of metrics and amounts, or as a list of costs, which an export gives."""
    listed = cast("list[Any]", value) if isinstance(value, list) else None
    if listed is None:
        listed = [{"metric": of, "amount": amount} for of, amount in fields_of(value).items()]
    if len(listed) > 16:
        raise ValueError(f"has {len(listed):,} metrics; at most 16 are taken")
    found = tuple(Cost(**only(one, {"metric": metric, "amount": amount})) for one in listed)
    if len({one.metric for one in found}) != len(found):
        raise ValueError("names a metric twice")
    return found


def resource(value: Any) -> Resource:
    given = {"uri": value} if isinstance(value, str) else value
    found = only(given, {"uri": text(512), "media_type": text(128)})
    if _URI.fullmatch(found.get("uri", "")) is None:
        raise ValueError("has no uri such as notes://{id}, with names in single braces")
    return Resource(**found)


def metric(value: Any) -> str:
    if not is_metric(value):
        raise ValueError(
            f"is {str(value)[:60]!r}, which is no metric: lower-case letters, digits and _"
        )
    if value == CALLS:
        raise ValueError(f"is {CALLS}, which every call costs one of")
    return cast("str", value)


def amount(value: Any) -> int | float | str:
    if isinstance(value, str):
        return text(256)(value)
    try:
        millionths(value)
    except ValueError as error:
        raise ValueError(f"{error}; write a number, $args.NAME or $result.NAME") from None
    return cast("int | float", value)


FIELDS: Mapping[str, Field] = {
    "name": Field(name, "name: pay_invoice", "The tool's one name in the catalog."),
    "description": Field(
        text(20_000), "description: Pay an open invoice.", "What it does, in words for a model."
    ),
    "display_name": Field(text(200), "display_name: Pay invoice", "What a person reads."),
    "version": Field(version, 'version: "1"', "The definition's version."),
    "category": Field(text(64), "category: finance", "The group it is listed under."),
    "categories": Field(texts, "categories: [finance]", "Further groups."),
    "tags": Field(texts, "tags: [money]", "Free words for search and policy."),
    "input_schema": Field(
        input_schema,
        "input_schema: {type: object, properties: {invoice_id: {type: string}}}",
        "JSON Schema of the arguments; always an object.",
    ),
    "output_schema": Field(
        Schema.of, "output_schema: {type: object}", "JSON Schema of the result."
    ),
    "provider": Field(
        name, "provider: python", "What runs it: python, http, builtin, or a custom provider."
    ),
    "config": Field(
        config, "config: {module: billing, function: pay}", "What its provider needs to find it."
    ),
    "enabled": Field(flag, "enabled: true", "Whether it is switched on before any flag is set."),
    "permissions": Field(
        words(Permission), "permissions: [network]", "What it needs from its host."
    ),
    "side_effects": Field(
        words(SideEffect), "side_effects: [network_access]", "What it touches while it runs."
    ),
    "effect": Field(
        word(Effect),
        "effect: irreversible",
        "How far a call can be repeated or taken back. A tool that does not say is irreversible, "
        "unless read_only is its only side effect.",
    ),
    "destructive": Field(
        flag, "destructive: false", "It destroys something; a person approves it."
    ),
    "compensation": Field(
        compensation,
        'compensation: {tool: refund, args: {payment: "$result.payment_id"}}',
        "The tool that takes a compensatable one back, and its arguments.",
    ),
    "requires_confirmation": Field(
        flag, "requires_confirmation: true", "The user confirms each call."
    ),
    "confirmation_prompt": Field(
        text(2_000), "confirmation_prompt: Really pay?", "What the user is asked."
    ),
    "requires_approval": Field(flag, "requires_approval: true", "A person approves each call."),
    "allowed_callers": Field(
        words(CallerKind), "allowed_callers: [direct, chain]", "How it may be reached."
    ),
    "idempotency_key": Field(
        texts,
        "idempotency_key: [invoice_id]",
        "The arguments that name one piece of business: within a turn group, calls that agree in "
        "them run once. Outside of a turn it does nothing.",
    ),
    "downstream_key": Field(
        downstream_key,
        "downstream_key: {header: Idempotency-Key}",
        "How the far side is told which call this is: then it can be tried again.",
    ),
    "probe": Field(
        probe,
        'probe: {tool: find_payment, args: {reference: "$key"}, happened: found}',
        "The pure tool that tells whether a call happened whose end nobody saw.",
    ),
    "timeout": Field(
        number(0.001, 86_400), "timeout: 30", "Seconds a call may take; else the setting."
    ),
    "execution": Field(
        word(Execution),
        "execution: queued",
        "Where a call runs: inline, or by a worker that takes it from the queue. A tool of "
        "`provider: queue` is queued where this says nothing.",
    ),
    "order_by": Field(
        text(64),
        "order_by: account",
        "Of a queued tool, the argument whose equal values run one after the other.",
    ),
    "queue_expires": Field(
        number(0.1, 2_592_000),
        "queue_expires: 60",
        "Of a queued tool, the seconds that a call may wait to be run, where that is less than "
        "`[queue] expires`.",
    ),
    "retry": Field(
        retry, "retry: {attempts: 3, base_delay: 0.2}", "How often a repeatable tool is tried."
    ),
    "output_limit": Field(
        count(1, 2**40), "output_limit: 1000000", "The most bytes a result may have."
    ),
    "rate_limit": Field(
        rate_limit, "rate_limit: 60/minute", "The most calls of a tenant in a time."
    ),
    "resource": Field(
        resource,
        'resource: {uri: "notes://{id}", media_type: text/plain}',
        "Where a pure tool can be read as an MCP resource; the names in it are its arguments.",
    ),
    "costs": Field(
        costs,
        'costs: {money: "$args.amount"}',
        "What a call takes from the tenant's budgets, beside one of tool_calls.",
    ),
}
