"""`toolgate init`: settings, a tool file and the function it names, and a policy, ready to run."""

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from toolgate.cli import show
from toolgate.cli.session import Json, usage
from toolgate.settings.settings import FOLDER

app = typer.Typer(
    add_completion=False, help="Write a toolgate.toml, an example tool and a policy here."
)

SETTINGS = """\
# What is commented out is how it is without. Every key can also come from the environment, which
# wins: TOOLGATE_SERVER__PORT=8800. Secrets are named by environment variable, never written here.
# All keys: docs/reference/settings.md. What is wrong, and what to do: toolgate doctor

[server]
# host = "127.0.0.1"        # beyond this machine only together with public_url
# port = 8700
# public_url = ""           # the address that callers use
# drain = 30                # seconds that calls get to finish when the server is told to end

[store]
# url = "sqlite:///.toolgate/toolgate.db"     # or postgresql://… by TOOLGATE_STORE__URL

[policy]
# path = "policies"         # the folder with your Rego files
# mode = "enforce"          # or "observe": what it would refuse is recorded, and passes

[relations]
# engine = "off"            # or "store", or "spicedb" with url and token_env

[tools]
# files = ["tools/*.yaml", "tools/*.yml", "tools/*.json"]
# urls = []                 # endpoints that answer with a tool file
# builtin = ["*"]           # which built-in tools there are
# plugins = ["plugins"]     # folders that plugins are in; make one: toolgate plugins new NAME
# roots = ["agent_files"]   # folders that tools may read and write files in

[toolbox]
# default_timeout = 30      # seconds a call may take

[approvals]
# mode = "unsafe_only"      # when a person is asked; or "always", or "never"

[limits]
# tenant = ""               # the most calls of a tenant in a time: "600/minute"
# concurrency = 64          # calls of one provider that run at a time

[cache]
# url = ""                  # redis://… where several nodes serve together

[events]
# url = ""                  # a webhook that is told what happens; needs secret_env

[telemetry]
# metrics = true            # numbers at /metrics
# traces = ""               # an OTLP address
# log = "text"              # or "json"
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

POLICY = """\
# Rules take away: what tools, flags, capsules and layers leave is allowed. `toolgate policy test`
# runs the cases beside this file; `toolgate explain NAME` says which rule decides.
package toolgate

deny contains reason if {
	input.caller.persona == "guest"
	input.tool.effect != "pure"
	reason := {
		"reason": "guests may only use tools that change nothing",
		"remedy": "call with another persona",
	}
}
"""

CASES = """\
- note: a guest reads
  caller: {persona: guest}
  tool: {name: word_count, effect: pure}
  want: allow

- note: a guest changes nothing
  caller: {persona: guest}
  tool: {name: send_mail, effect: irreversible}
  want: deny
  why: guests may only use tools that change nothing
"""

NOTE = """\
What is in this folder tools may read and write: read_file, write_file, list_directory and others.
Other folders are named in toolgate.toml: [tools] roots.
"""

FILES = {
    "toolgate.toml": SETTINGS,
    "tools/example.yaml": TOOL_FILE,
    "my_tools.py": MODULE,
    "policies/example.rego": POLICY,
    "policies/example_cases.yaml": CASES,
    f"{FOLDER}/README.md": NOTE,
}
_ARGS = '{"text": "one two three"}'
_FOLDERS = ("tools", "policies", FOLDER)


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="Where to write.")] = Path(),
    json: Json = False,
) -> None:
    """Write a toolgate.toml, an example tool and a policy here."""
    # A link counts also when it leads nowhere: what it names is not ours to write.
    there = [name for name in FILES if os.path.lexists(folder / name)]
    there += [name for name in _FOLDERS if (folder / name).is_symlink()]
    if there:
        exist = "exists" if len(there) == 1 else "exist"
        raise usage(f"{', '.join(there)} {exist} already; nothing was written.", json=json)
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
    into = "" if folder == Path() else f"cd {shlex.quote(str(folder))}\n"
    show.line(f"Try it:\n{into}toolgate call word_count --args '{_ARGS}'")
    show.line("Then:\ntoolgate serve --reload")


def _unfollowed(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)
