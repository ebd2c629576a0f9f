"""A folder with a shop whose tools are files: for the command line, and for a server."""

from pathlib import Path
from uuid import uuid4

MODULE = '''\
"""The shop's functions; what they do is a line in a file beside them."""

from pathlib import Path

DONE = Path(__file__).with_name("done")


def did(what: str) -> None:
    with DONE.open("a", encoding="utf-8") as file:
        file.write(what + "\\n")


def pay(amount: int) -> dict:
    did(f"pay:{amount}")
    return {"payment": f"p{amount}"}


def refund(payment: str) -> str:
    did(f"refund:{payment}")
    return payment


def mail(to: str) -> str:
    did(f"mail:{to}")
    if to == "nobody":
        raise RuntimeError(to)
    return to
'''
TOOLS = """\
tools:
  - name: pay
    config: {module: MODULE, function: pay}
    effect: compensatable
    compensation: {tool: refund, args: {payment: "$result.payment"}}
    input_schema: {type: object, properties: {amount: {type: integer}}, required: [amount]}
  - name: refund
    config: {module: MODULE, function: refund}
    effect: idempotent
    input_schema: {type: object, properties: {payment: {type: string}}, required: [payment]}
  - name: mail
    config: {module: MODULE, function: mail}
    effect: irreversible
    input_schema: {type: object, properties: {to: {type: string}}, required: [to]}
"""


def stocked(root: Path) -> Path:
    """The folder, with the shop in it."""
    (root / "tools").mkdir()
    # Modules stay loaded for as long as their process is there.
    name = f"shop_{uuid4().hex}"
    (root / "tools" / "shop.yaml").write_text(TOOLS.replace("MODULE", name), "utf-8")
    (root / f"{name}.py").write_text(MODULE, "utf-8")
    return root


def done(root: Path) -> list[str]:
    """What the tools did."""
    file = root / "done"
    return file.read_text("utf-8").split() if file.exists() else []
