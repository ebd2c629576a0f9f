"""`toolgate init`: a settings file, a tool file and the function it names, ready to run."""

import os
from pathlib import Path
from typing import Annotated

import typer

from toolgate.cli import show
from toolgate.cli.session import Json, usage

app = typer.Typer(add_completion=False, help="Write a toolgate.toml and an example tool here.")

SETTINGS = """\
# Every key can also come from the environment: TOOLGATE_SERVER__PORT=8800

[server]
# host = "127.0.0.1"        # beyond this machine only together with public_url
# port = 8700
# public_url = ""

[store]
# url = "sqlite:///.toolgate/toolgate.db"     # or postgresql://… by TOOLGATE_STORE__URL

[policy]
# path = "policies"         # the folder with your Rego files
# mode = "enforce"          # or "observe": what it would refuse is recorded, and passes

[tools]
# files = ["tools/*.yaml", "tools/*.yml", "tools/*.json"]
# urls = []                 # endpoints that answer with a tool file
# builtin = ["*"]           # which built-in tools there are

[toolbox]
# default_timeout = 30      # seconds a call may take
"""

TOOL_FILE = """\
tools:
  - name: word_count
    description: Count the words of a text.
    provider: python
    config: {module: my_tools, function: word_count}
    input_schema:
      type: object
      properties:
        text: {type: string, description: The text to count}
      required: [text]
      additionalProperties: false
    effect: pure            # pure, idempotent, compensatable, irreversible
    side_effects: [read_only]
    category: text
"""

MODULE = '''\
"""Functions that tools/example.yaml names."""


def word_count(text: str) -> dict[str, int]:
    """Count the words of a text."""
    return {"words": len(text.split())}
'''

FILES = {"toolgate.toml": SETTINGS, "tools/example.yaml": TOOL_FILE, "my_tools.py": MODULE}


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="Where to write.")] = Path(),
    json: Json = False,
) -> None:
    """Write a toolgate.toml and an example tool here."""
    # A link counts also when it leads nowhere: what it names is not ours to write.
    there = [name for name in FILES if os.path.lexists(folder / name)]
    there += ["tools"] if (folder / "tools").is_symlink() else []
    if there:
        raise usage(f"{', '.join(there)} exists already; nothing was written.", json=json)
    for name, text in FILES.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "x", encoding="utf-8", opener=_unfollowed) as file:
                file.write(text)
        except OSError as error:
            raise usage(f"{path} cannot be written ({error.strerror}).", json=json) from None
    if json:
        show.as_json({"written": list(FILES)})
        return
    show.line(f"Wrote {', '.join(FILES)}.")
    show.line('Try it:  toolgate call word_count --args \'{"text": "one two three"}\'')


def _unfollowed(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)
