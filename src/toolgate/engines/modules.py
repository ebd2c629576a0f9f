"""From texts to a checked policy: everything that is wrong is told at once, before it is used."""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType

from toolgate.engines import folder as folders
from toolgate.engines import smoke
from toolgate.engines.analysis import (
    EVERYTHING,
    Module,
    Rule,
    analyse,
    bad_calls,
    bad_inputs,
    bad_negations,
    per_call,
)
from toolgate.engines.brackets import refusal
from toolgate.engines.bundle import Bundle, Calling, Listing, revision_of
from toolgate.engines.documents import NEAR, wrong_documents
from toolgate.engines.interpreter import Interpreter, RegoError
from toolgate.engines.recursion import bad_recursion
from toolgate.engines.references import bad_references
from toolgate.errors import InvalidPolicy
from toolgate.gate.policy import PER_CALL

_OURS = Path(__file__).parent / "policy"
# The prefix keeps an operator's file of the same name apart.
PREFIX = "toolgate:"
MAIN, ARGUMENTS, GATE = "toolgate.rego", "arguments.rego", "gate.rego"
_SETS = frozenset({"deny", "restrict", "banned"})
_DOCUMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")
_NO_TEXTS: Mapping[str, str] = MappingProxyType({})


def ours(name: str) -> str:
    """The text of a module that toolgate brings."""
    return (_OURS / name).read_text("utf-8")


class Modules:
    """Where policies come from: the bundled one, a folder, and modules kept in the store."""

    def __init__(self, folder: Path | None = None, *, bundled: bool = True) -> None:
        self._folder = folder
        self._bundled = bundled
        self._seen = False
        self._ruled = False

    def stamp(self) -> object:
        """Another value when the folder's files have changed."""
        return folders.stamp(self._folder) if self._folder is not None else ()

    def load(self, stored: Mapping[str, str] = _NO_TEXTS) -> Bundle:
        """The policy as it stands now, or `InvalidPolicy` with all that is wrong with it."""
        found = folders.Folder(modules={}, data={}, problems=())
        if self._folder is not None and self._folder.is_dir():
            found = folders.read(self._folder)
        elif self._seen:
            raise InvalidPolicy(["policies: the folder is gone; put it back, or start again."])
        if self._ruled and not found.modules and not found.problems:
            raise InvalidPolicy(
                ["policies: no Rego file is left; put one back, or start again without."]
            )
        bundle = policy_of(found, stored, bundled=self._bundled)
        self._ruled = self._ruled or bool(found.modules)
        self._seen = self._seen or bool(found.modules or found.data)
        return bundle


def policy_of(found: folders.Folder, stored: Mapping[str, str], *, bundled: bool) -> Bundle:
    """The policy of a folder, with the modules that are kept in the store."""
    texts = dict(found.modules)
    texts.update((f"stored:{name}", text) for name, text in sorted(stored.items()))
    return build(
        texts,
        found.data,
        bundled=bundled,
        problems=found.problems,
        documents=found.documents,
    )


def build(
    texts: Mapping[str, str],
    data: Mapping[str, object],
    *,
    bundled: bool = True,
    problems: tuple[str, ...] = (),
    documents: int = 0,
) -> Bundle:
    """A checked policy of these operators' modules and data."""
    wrong = [*problems, *_wrong_data(data), *(wrong_documents(data) if bundled else ())]
    added = [module for file, text in texts.items() if (module := _read(file, text, wrong))]
    own = {f"{PREFIX}{MAIN}": ours(MAIN)} if bundled else {}
    if bundled and "restricted_arguments" in data:
        own[f"{PREFIX}{ARGUMENTS}"] = ours(ARGUMENTS)
    # By itself the bundled policy reads nothing of a single call and has nothing wrong with it: a
    # test says so, and a start does not have to find out.
    alone = bundled and not (texts or data or wrong)
    read = {} if alone else own
    brought = [module for file, text in read.items() if (module := _read(file, text, wrong))]
    wrong += _wrong_rules(added, brought, bundled=bundled)
    wrong += bad_calls(added, [*added, *brought])
    wrong += bad_inputs(added)
    wrong += bad_recursion([(module.file, module.references) for module in (*added, *brought)])
    for module in added:
        wrong += bad_references(module.file, (*module.imported, *module.references))
    wrong += bad_negations(added, [*added, *brought])
    reads = per_call([*added, *brought])
    listing, calling = _strategy(added, reads, bundled=bundled)
    for name in (f"{calling}.rego", f"{listing}.rego", GATE):
        own[f"{PREFIX}{name}"] = ours(name)
    # The gate's module comes last: a server that has it has everything.
    modules = {**texts, **own}
    bundle = Bundle(
        revision=revision_of(modules, data) if not wrong else "",
        modules=MappingProxyType(modules),
        data=MappingProxyType(dict(data)),
        reads=reads,
        listing=listing,
        files=len(texts),
        documents=documents,
    )
    wrong = wrong or ([] if alone else smoke.problems(bundle))
    if wrong:
        raise InvalidPolicy(list(dict.fromkeys(wrong)))
    return bundle


def external() -> Bundle:
    """The gate's own modules, for a policy that an OPA server has by itself.

    Nobody here has read it, so it is taken to look at everything.
    """
    modules = {f"{PREFIX}{name}": ours(name) for name in ("call_both.rego", "list_view.rego", GATE)}
    return Bundle(
        revision="external",
        modules=MappingProxyType(modules),
        data=MappingProxyType({}),
        reads=PER_CALL,
        listing="list_view",
    )


def _read(file: str, text: str, wrong: list[str]) -> Module | None:
    refused = refusal(text)
    if refused:
        wrong.append(f"{file}:{refused}")
        return None
    interpreter = Interpreter()
    try:
        interpreter.add_module(file, text)
        (tree,) = interpreter.syntax()
        module = analyse(tree)
    except RegoError as error:
        wrong.append(_hinted(str(error)))
        return None
    except RecursionError:
        wrong.append(f"{file}:1: an expression is nested too deep; give its parts names.")
        return None
    if not file.startswith(PREFIX):
        wrong += _wrong_module(module)
    return module


def _hinted(message: str) -> str:
    if "`if` keyword is required" in message or "`contains` keyword" in message:
        said = message.rstrip(".")
        return f"{said}. This is the syntax before Rego v1; `opa fmt -w --v0-v1` rewrites it."
    if "expecting `package`" in message:
        return f"{message} Start with: package toolgate"
    return message


def _wrong_module(module: Module) -> Iterator[str]:
    if module.package[:1] != ("toolgate",):
        yield (
            f"{module.file}:1: the package is {'.'.join(module.package)!r}; "
            "rules of another package than toolgate or toolgate.… decide nothing."
        )
    if not module.rules:
        yield f"{module.file}:1: there is no rule in it. Remove the file, or write one."


def _wrong_rules(added: list[Module], brought: list[Module], *, bundled: bool) -> Iterator[str]:
    taken = {rule.name for module in brought for rule in module.rules} - _SETS
    defaults: dict[tuple[str, ...], str] = {}
    top = {rule.name for module in (*added, *brought) for rule in _at_top(module)}
    named = {part for module in added for part in _named(module)}
    for module in added:
        if len(module.package) > 1 and module.package[1] in top:
            yield f"{module.file}:1: a rule and a package are both called {module.package[1]!r}."
        for rule in module.rules:
            if rule.kind == "default":
                first = defaults.setdefault((*module.package, rule.name), module.file)
                if first != module.file:
                    yield f"{module.file}:{rule.line}: {first} has a default {rule.name!r} too."
        for rule in _at_top(module):
            if bundled and rule.name in taken:
                yield (
                    f"{module.file}:{rule.line}: {rule.name!r} is the bundled policy's. Add to "
                    "deny, restrict or banned; or set bundled = false and write the whole policy."
                )
            elif rule.name in _SETS and not _is_set(rule):
                yield f"{module.file}:{rule.line}: write {_set_form(rule.name)} if …"
            elif bundled and rule.kind == "set" and rule.name not in (_SETS | named):
                for meant in get_close_matches(rule.name, _SETS, n=1, cutoff=NEAR):
                    yield (
                        f"{module.file}:{rule.line}: nothing reads {rule.name!r}; "
                        f"did you mean {meant!r}?"
                    )
    if not bundled and ("toolgate", "allow") not in defaults:
        yield (
            "package toolgate: there is no `default allow := false`. With bundled = false your "
            "files are the whole policy: write it, and rules `allow if …`."
        )


def _at_top(module: Module) -> tuple[Rule, ...]:
    return module.rules if module.package == ("toolgate",) else ()


def _named(module: Module) -> Iterator[str]:
    """Rules of package toolgate that this module may look at."""
    for path, _ in module.named:
        if path[:2] == ("data", "toolgate"):
            yield from path[2:3]
        elif module.package == ("toolgate",):
            yield path[0]


def _is_set(rule: Rule) -> bool:
    return rule.kind == "set" and rule.keyed == (rule.name == "banned")


def _set_form(name: str) -> str:
    return "banned[name] contains reason" if name == "banned" else f"{name} contains reason"


def _wrong_data(data: Mapping[str, object]) -> Iterator[str]:
    for name in data:
        if name == "toolgate" or name.startswith("toolgate_") or not _DOCUMENT.match(name):
            yield f"data: {name!r} cannot be a document's name; choose another one."


def _strategy(
    added: list[Module], reads: frozenset[str], *, bundled: bool
) -> tuple[Listing, Calling]:
    """The cheapest way to decide that is still right for these modules."""
    looked_at = {part for module in added for part in module.reads}
    names = {rule.name for module in added for rule in _at_top(module)}
    # The bundled `allow` lets nobody call what it hides, unless a rule tells the actions apart.
    direct = bundled and not looked_at & {EVERYTHING, "action"}
    if (
        direct
        and "tool" not in looked_at
        and "deny" not in names
        and (reads or "restrict" not in names)
    ):
        return "list_names", "call_direct"
    calling: Calling = "call_direct" if direct else "call_both"
    if reads:
        return "list_view", calling
    return ("list_direct" if direct else "list_call"), calling
