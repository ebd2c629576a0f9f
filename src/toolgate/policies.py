"""Policies without a gate: read, checked and tested as the gate would, for whoever writes them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import msgspec

from toolgate.engines import folder as folders
from toolgate.engines.cases import Result, read_cases, run_case
from toolgate.engines.modules import Modules, policy_of
from toolgate.engines.rego import Rego
from toolgate.errors import InvalidPolicy
from toolgate.gate.policy import Policy
from toolgate.settings.settings import Settings

_Files = Mapping[str, str]
_NONE: _Files = MappingProxyType({})


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What came of reading a folder of policies."""

    revision: str = ""
    # Files of rules, and files of data.
    files: int = 0
    documents: int = 0
    reads: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def check_policy(settings: Settings, folder: Path | None = None) -> Checked:
    """Read the folder of the settings, or another one, and say what is wrong."""
    try:
        bundle = _modules(settings, folder).load()
    except InvalidPolicy as error:
        return Checked(problems=tuple(map(str, error.problems)))
    return Checked(
        revision=bundle.revision,
        files=bundle.files,
        documents=bundle.documents,
        reads=tuple(sorted(bundle.reads)),
    )


def policy_at(
    settings: Settings, folder: Path | None = None, stored: Mapping[str, str] = _NONE
) -> Policy:
    """The policy of a folder, ready to be asked; `InvalidPolicy` where it cannot be used."""
    return Rego(_modules(settings, folder).load(stored))


def texts_at(folder: Path) -> dict[str, str]:
    """The files of a folder by their path in it, to be asked about elsewhere."""
    return folders.texts(folder)


def drafted(settings: Settings, files: _Files | None, stored: _Files) -> Policy:
    """The policy of these files, by their path in a folder; without any, `policy_at`."""
    if files is None:
        return policy_at(settings, None, stored)
    found = folders.given({path: text.encode() for path, text in files.items()})
    return Rego(policy_of(found, stored, bundled=settings.policy.bundled))


async def run_cases(settings: Settings, folder: Path | None, files: Sequence[Path]) -> list[Result]:
    """Run the cases of these files, or of those that lie in the folder."""
    policy = policy_at(settings, folder)
    root = folder or settings.path(settings.policy.path)
    named = {str(file): file for file in files}
    if not files:
        found = sorted([*root.rglob("cases.yaml"), *root.rglob("*_cases.yaml")])
        # As a message may show it: never where on the machine.
        named = {file.relative_to(root).as_posix(): file for file in found}
    results: list[Result] = []
    for shown, file in named.items():
        try:
            text = file.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            raise InvalidPolicy([f"{shown}: it cannot be read."]) from None
        results += [await run_case(policy, case) for case in read_cases(text, shown)]
    return results


def _modules(settings: Settings, folder: Path | None) -> Modules:
    if folder is not None and not folder.is_dir():
        raise InvalidPolicy([f"{folder}: there is no such folder."])
    return Modules(folder or folders.named(settings), bundled=settings.policy.bundled)
