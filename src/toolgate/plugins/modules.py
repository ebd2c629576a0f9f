"""Code of plugins, each version under a name of its own: old and new live side by side.

`weather` of one fingerprint is the package `toolgate_plugins.weather_0123456789ab`, made from the
bytes that the fingerprint is over. Nothing of it is looked for on a disk, and no other code can
import it by chance.
"""

import importlib
import importlib.util
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib.abc import ExecutionLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from toolgate.plugins.package import Package

ROOT = "toolgate_plugins"
_DIGITS = 12
_LOCK = threading.Lock()
# Packages that are there, and how many houses in this process use each.
_KNOWN: dict[str, tuple[Package, int]] = {}


def package_of(plugin: str, fingerprint: str) -> str:
    """What the code of a plugin is called, the same in every process."""
    stem = re.sub(r"\W", "_", plugin)
    return f"{ROOT}.{stem}_{fingerprint[:_DIGITS]}"


def enter(plugin: str, package: Package) -> str:
    """Let this code be imported; its name."""
    name = package_of(plugin, package.fingerprint)
    with _LOCK:
        _install()
        known, users = _KNOWN.get(name, (package, 0))
        _KNOWN[name] = known, users + 1
    return name


def leave(name: str) -> None:
    """This code is not needed any more, by one of those who entered it. What runs goes on."""
    with _LOCK:
        known = _KNOWN.get(name)
        if known is None:
            return
        package, users = known
        if users > 1:
            _KNOWN[name] = package, users - 1
            return
        del _KNOWN[name]
        forget(name)


def forget(name: str) -> None:
    """The next import of it starts anew: what failed in the middle is not half there."""
    for one in [one for one in sys.modules if one == name or one.startswith(f"{name}.")]:
        sys.modules.pop(one, None)


def path_of(package: Package, module: str) -> str | None:
    """The file of a module, or of a package; an empty text for a folder of modules."""
    base = module.replace(".", "/")
    for path in (f"{base}.py", f"{base}/__init__.py") if base else ("__init__.py",):
        if path in package.files:
            return path
    is_folder = not base or any(
        path.startswith(f"{base}/") and path.endswith(".py") for path in package.files
    )
    return "" if is_folder else None


def relative(package: Package, module: str) -> str | None:
    """The module as it is called in its own folder, or `None` where there is none.

    A name may also lead to the folder from outside: `src.tools.canvas_tools` is the folder
    `canvas_tools`, and `src.tools.canvas_tools.edits` its file `edits.py`.
    """
    if path_of(package, module):
        return module
    parts = module.split(".")
    if package.root.name not in parts:
        return None
    behind = len(parts) - parts[::-1].index(package.root.name)
    inner = ".".join(parts[behind:])
    return inner if path_of(package, inner) else None


class _Loader(ExecutionLoader):
    """Runs the bytes of one module."""

    def __init__(self, package: Package, path: str) -> None:
        self._package = package
        self._path = path

    def get_source(self, fullname: str) -> str:  # noqa: ARG002
        return importlib.util.decode_source(self._package.files.get(self._path, b""))

    def get_filename(self, fullname: str) -> str:  # noqa: ARG002
        return str(self._package.root / (self._path or "__init__.py"))

    def is_package(self, fullname: str) -> bool:  # noqa: ARG002
        return not self._path or self._path.endswith("__init__.py")

    def get_data(self, path: str) -> bytes:
        """A file as it was agreed to: `pkgutil.get_data(__package__, "words.txt")`."""
        inner = path.removeprefix(f"{self._package.root}/")
        try:
            return self._package.files[inner]
        except KeyError:
            raise FileNotFoundError(inner) from None


class _Finder(MetaPathFinder):
    """Finds modules of plugins, and of nothing else."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if not fullname.startswith(f"{ROOT}."):
            return None
        head, _, inner = fullname.removeprefix(f"{ROOT}.").partition(".")
        known = _KNOWN.get(f"{ROOT}.{head}")
        if known is None:
            return None
        package = known[0]
        file = path_of(package, inner)
        if file is None:
            return None
        loader = _Loader(package, file)
        is_package = loader.is_package(fullname)
        place = str(package.root / (file or f"{inner.replace('.', '/')}/__init__.py".lstrip("/")))
        spec = ModuleSpec(fullname, loader, origin=place, is_package=is_package)
        # There is no place on a disk to look in; only the finder knows.
        spec.submodule_search_locations = [] if is_package else None
        spec.has_location = True
        return spec


_FINDER = _Finder()


def _install() -> None:
    if _FINDER not in sys.meta_path:
        sys.meta_path.append(_FINDER)
    if ROOT not in sys.modules:
        home = ModuleType(ROOT, "What plugins bring, each version by itself.")
        home.__path__ = []
        sys.modules[ROOT] = home


def put(package: str, name: str, callables: Mapping[str, Any]) -> str:
    """A module of ours in a plugin's package, with these things in it; its whole name."""
    whole = f"{package}.{name}"
    made = ModuleType(whole, "Tools of the plugin, with their settings.")
    made.__dict__.update(callables)
    sys.modules[whole] = made
    return whole


def imported(package: str, module: str) -> ModuleType:
    """A module of a plugin; whatever it raises while it loads is raised here."""
    return importlib.import_module(f"{package}.{module}" if module else package)
