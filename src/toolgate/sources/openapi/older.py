"""OpenAPI 2.0 in the words of 3: what differs is where bodies, forms and addresses are written."""

from collections.abc import Sequence
from typing import Any, cast

_AROUND = frozenset({"name", "in", "required", "description", "collectionFormat"})
_STYLES = {
    "csv": {"explode": False},
    "multi": {"explode": True},
    "ssv": {"style": "spaceDelimited", "explode": False},
    "pipes": {"style": "pipeDelimited", "explode": False},
}
_JSON = "application/json"
_FORM = "application/x-www-form-urlencoded"
_MULTIPART = "multipart/form-data"
_FLOWS = {
    "application": "clientCredentials",
    "accessCode": "authorizationCode",
    "implicit": "implicit",
    "password": "password",
}
Parameter = dict[str, Any]


def parameter(given: Parameter) -> Parameter:
    """A parameter whose type stands beside its name."""
    schema = {key: value for key, value in given.items() if key not in _AROUND}
    found = {key: given[key] for key in ("name", "in", "required", "description") if key in given}
    found["schema"] = schema
    if schema.get("type") == "array":
        told = str(given.get("collectionFormat", "csv"))
        found |= _STYLES.get(told, {"collectionFormat": told})
    return found


def body(parameters: Sequence[Parameter], consumes: Any) -> dict[str, Any] | None:
    """The request body that parameters of the places `body` and `formData` make."""
    types = _media_types(consumes)
    whole = next((one for one in parameters if one.get("in") == "body"), None)
    if whole is not None:
        content = {kind: {"schema": whole.get("schema", {})} for kind in types or [_JSON]}
        return {
            "content": content,
            "required": whole.get("required") is True,
            "description": whole.get("description", ""),
        }
    fields = [one for one in parameters if one.get("in") == "formData"]
    if not fields:
        return None
    has_file = any(one.get("type") == "file" for one in fields)
    kind = _MULTIPART if has_file or (_MULTIPART in types and _FORM not in types) else _FORM
    required = [str(one["name"]) for one in fields if one.get("required") is True and "name" in one]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {str(one.get("name", "")): _field(one) for one in fields},
    }
    if required:
        schema["required"] = required
    return {"content": {kind: {"schema": schema}}, "required": bool(required)}


def content(response: dict[str, Any], produces: Any) -> dict[str, Any]:
    """A response with its schema by media type."""
    if "schema" not in response:
        return response
    types = _media_types(produces) or [_JSON]
    return response | {"content": {kind: {"schema": response["schema"]} for kind in types}}


def servers(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Addresses out of host, path and schemes. Without a host they are those of the document."""
    host, path = document.get("host"), document.get("basePath")
    base = path if isinstance(path, str) and path.startswith("/") else ""
    if not isinstance(host, str) or not host:
        return [{"url": base or "/"}]
    schemes = [one for one in _media_types(document.get("schemes")) if one in {"https", "http"}]
    return [{"url": f"{scheme}://{host}{base}"} for scheme in sorted(schemes, reverse=True)] or [
        {"url": f"https://{host}{base}"}
    ]


def scheme(given: dict[str, Any]) -> dict[str, Any]:
    """A way to authenticate."""
    if given.get("type") == "basic":
        return {"type": "http", "scheme": "basic"}
    if given.get("type") == "oauth2":
        flow = _FLOWS.get(str(given.get("flow")), "implicit")
        return {"type": "oauth2", "flows": {flow: {"tokenUrl": given.get("tokenUrl")}}}
    return given


def _field(given: Parameter) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key not in _AROUND - {"description"}}


def _media_types(given: Any) -> list[str]:
    listed = cast("list[Any]", given) if isinstance(given, list) else []
    return [one for one in listed if isinstance(one, str)]
