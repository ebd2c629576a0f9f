"""A program that says and asks things on the way of its calls, in the older revision, by hand.

`hold` is answered when `let go` is called; `pay` logs, asks, and answers with what it was told;
`flood` asks without end and never reads again; `blank` writes empty lines without end; `deaf` reads
no more. `many` and `deep` answer with that, `tell` with what stands in its environment.
"""

import json
import os
import sys
import time
from typing import Any

WELCOME: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}, "logging": {}},
    "serverInfo": {"name": "asking", "version": "1"},
}
FORM: dict[str, Any] = {"type": "object", "properties": {}}


def send(**said: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **said}) + "\n")
    sys.stdout.flush()


def answer(id_: Any, told: str) -> None:
    send(id=id_, result={"content": [{"type": "text", "text": told}]})


def flood() -> None:
    pings = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n' * 2_000
    while True:
        sys.stdout.buffer.write(pings)
        sys.stdout.buffer.flush()


def blank() -> None:
    while True:
        sys.stdout.buffer.write(b"\n" * 10_000)
        sys.stdout.buffer.flush()


def tell(id_: Any, token: Any) -> None:
    key = os.environ.get("API_KEY", "")
    note = {"progressToken": token, "progress": 1, "message": f"with {key}"}
    send(method="notifications/progress", params=note)
    send(method="notifications/message", params={"level": "info", "data": {"key": key}})
    odd = "".join(f"\\u{ord(one):04x}" for one in key)
    body = json.dumps({"content": [{"type": "text", "text": f"{key} ODD"}], "key": {key: key}})
    sys.stdout.write(f'{{"jsonrpc":"2.0","id":{id_},"result":{body.replace("ODD", odd)}}}\n')
    sys.stdout.flush()


def called(id_: Any, name: str, args: Any, held: list[Any]) -> None:
    if name in {"many", "deep"}:
        made = "[]," * 2_000 if name == "many" else "[" * 300 + "]" * 300 + ","
        sys.stdout.write(f'{{"jsonrpc":"2.0","id":{id_},"result":{{"made":[{made}0]}}}}\n')
        sys.stdout.flush()
    elif name == "blank":
        blank()
    elif name == "hold":
        held.append(id_)
    elif name == "let go":
        while held:
            answer(held.pop(), "held")
        answer(id_, "gone")
    elif name == "pay":
        send(
            method="notifications/message",
            params={"level": "info", "data": f"paying from {args['account']}"},
        )
        asked: dict[str, Any] = {"message": f"Pay from {args['account']}?", "requestedSchema": FORM}
        send(id=f"q{id_}", method="elicitation/create", params=asked)
    elif name == "flood":
        flood()
    elif name == "deaf":
        time.sleep(3600)
    else:
        answer(id_, "ok")


def main() -> None:
    held: list[Any] = []
    for raw in sys.stdin:
        said = json.loads(raw)
        id_, method = said.get("id"), said.get("method")
        if method == "initialize":
            send(id=id_, result=WELCOME)
        elif method == "tools/call" and said["params"]["name"] == "tell":
            tell(id_, said["params"].get("_meta", {}).get("progressToken"))
        elif method == "tools/call":
            called(id_, said["params"]["name"], said["params"]["arguments"], held)
        elif method is None and str(id_).startswith("q"):
            told = said.get("error", said.get("result"))
            answer(int(str(id_)[1:]), json.dumps(told, sort_keys=True))
        elif id_ is not None:
            send(id=id_, error={"code": -32601, "message": "no"})


if __name__ == "__main__":
    main()
