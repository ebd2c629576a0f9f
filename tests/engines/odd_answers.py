"""What a policy server could answer instead of a plain yes: none of it may be taken for one."""

import json

_VALUES = [
    '"true"', '"True"', '"allow"', '""', "1", "1.0", "0", "-1", "1e0", "null", "[]", "[true]",
    "[[true]]", "{}", '{"result": true}', '{"allow": true}', '{"true": true}', '"\\u0074rue"',
    '["get_order"]', '{"result": {"result": true}}', '[null]', '[1]', '"false"',
    "99999999999999999999",
]  # fmt: skip
_BODIES = [
    "", " ", "{}", "[]", "null", "true", "1", '"true"', "{", "}", '{"result"', '{"result":',
    '{"result": tru', '{"result": true', '{"result": true,}', '{"result": True}',
    "{'result': true}", "{result: true}", '{"result": true} {"result": true}', '{"result": true}x',
    'x{"result": true}', '{"result": true}\x00', '\ufeff{"result": true}', '{"Result": true}',
    '{"RESULT": true}', '{"result ": true}', '{"results": true}', '{"allow": true}',
    '[{"result": true}]', '{"result": false, "result": true}', '{"result": true, "result": true}',
    '{"result": true, "result": false}', '{"result": true, "error": "oops"}',
    '{"result": true, "code": "internal_error"}', '{"result": NaN}', '{"result": Infinity}',
    '{"result": undefined}', "result=true", "<html>true</html>", "ok", "{}{}",
    '{"result": true // yes\n}', '{"a": {"result": true}}', '{"": true}',
    '{"result": "true\\u0000"}',
    '{"errors": []}', '{"result": true, "warning": {"code": "api_usage_warning"}}',
    "[" * 100_000 + "]" * 100_000, '{"result": ' * 5000 + "true" + "}" * 5000,
]  # fmt: skip
_STATUSES = [
    201, 202, 203, 204, 206, 207, 299, 300, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405,
    408, 409, 418, 429, 500, 501, 502, 503, 504, 599,
]  # fmt: skip
_TYPES = ["text/plain", "text/html", "application/jsonp", "application/xml", "", "json"]
YES = b'{"result": true}'


def answer(
    body: bytes, *, status: int = 200, kind: str = "application/json", more: str = ""
) -> bytes:
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    return f"{head}{more}\r\n".encode() + body


def _chunked(*chunks: bytes) -> bytes:
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    return head + b"".join(chunks)


def answers() -> dict[str, bytes]:
    """Raw bytes by a name; the server closes after them."""
    found = {f"result {value[:20]}": answer(f'{{"result": {value}}}'.encode()) for value in _VALUES}
    for number, body in enumerate(_BODIES):
        found[f"body {number} {body[:20]!r}"] = answer(body.encode("utf-8", "surrogatepass"))
    for status in _STATUSES:
        found[f"status {status}"] = answer(
            b"" if status in {204, 304} else YES,
            status=status,
            more="Location: /yes\r\n" if status // 100 == 3 else "",
        )
    for kind in _TYPES:
        found[f"type {kind!r}"] = answer(YES, kind=kind)
    large = b'{"decision_id": "' + b"x" * 10_500_000 + b'", "result": true}'
    found |= {
        "more than is taken": answer(large),
        "utf-16": answer('{"result": true}'.encode("utf-16")),
        "not utf-8": answer(b'{"decision_id": "\xff", "result": true}'),
        "compressed": answer(YES, more="Content-Encoding: gzip\r\n"),
        "cut short": answer(YES)[:-3],
        "longer than it says": answer(YES).replace(b"Length: 16", b"Length: 9"),
        "shorter than it says": answer(YES).replace(b"Length: 16", b"Length: 99"),
        "two lengths": answer(YES, more="Content-Length: 3\r\n"),
        "length and chunks": answer(YES, more="Transfer-Encoding: chunked\r\n"),
        "a chunk of garbage": _chunked(b"zz\r\n", YES),
        "chunks without an end": _chunked(b"10\r\n", YES, b"\r\n"),
        "a chunk that is shorter than it says": _chunked(b"ff\r\n", YES, b"\r\n0\r\n\r\n"),
        "no answer": b"",
        "no http": b"true\r\n\r\n",
        "only a head": b"HTTP/1.1 200 OK\r\n",
        "http/0.9": YES,
        "a head without end": b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000,
        "a wrong version": answer(YES).replace(b"HTTP/1.1", b"HTTP/7.7"),
        "a status that is no number": answer(YES).replace(b" 200 ", b" yes "),
    }
    return found


def is_json_true(raw: bytes) -> bool:
    """Whether a lenient reader would see a yes: such answers are the dangerous ones."""
    body = raw.partition(b"\r\n\r\n")[2]
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return b"true" in body
    return bool(value)
