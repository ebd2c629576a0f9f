"""Sources merged into one snapshot. A reload swaps it whole, or not at all."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import groupby
from types import MappingProxyType

from toolgate.catalog.aliases import aliases
from toolgate.catalog.snapshot import Snapshot
from toolgate.catalog.source import Health, Source, Telling
from toolgate.crash import crash_here
from toolgate.errors import CatalogError, NameClash
from toolgate.spec.names import kept
from toolgate.spec.tool import BUILT_IN, ToolSpec

_Parts = dict[str, tuple[ToolSpec, ...]]
Usable = Callable[[ToolSpec], str | None]

# Where specs come from that an operator has written, or agreed to one by one.
_OPERATORS = frozenset({"file", "mcp", "python"})


class Catalog:
    """What exists. `current` is replaced, never changed."""

    def __init__(self, sources: Sequence[Source], *, usable: Usable) -> None:
        """`usable` asks whether a spec has an implementation: `None`, or why not."""
        self._sources = _labelled(sources)
        self._usable = usable
        self._parts: dict[str, tuple[ToolSpec, ...]] = {}
        self._health: dict[str, Health] = {}
        self._reloading = asyncio.Lock()
        self.current = Snapshot()

    async def reload(self) -> Snapshot:
        """Ask every source again. Where nothing changed, the snapshot stays.

        A source that fails keeps its last good part and is shown as unhealthy; one that is required
        must have succeeded once. A clash of names leaves everything as it was, unless the newcomer
        is not required: then it is the one that failed, or, of a source that says so (`by_file`),
        the file that it is in.
        """
        return await self._reload(lambda _source: True)

    async def ask(self, *sources: Source) -> Snapshot:
        """Ask only these again; a new one is asked from now on with all the others."""
        async with self._reloading:
            known = set(map(id, self._sources.values()))
            new = [source for source in sources if id(source) not in known]
            self._sources = _labelled([*self._sources.values(), *new])
        chosen = set(map(id, sources))
        return await self._reload(lambda source: id(source) in chosen)

    async def again(self, label: str) -> Snapshot:
        """Ask only the source of this name again."""
        return await self._reload(lambda source: source is self._sources.get(label))

    async def drop(self, *sources: Source) -> Snapshot:
        """These are asked no more, and their tools are gone."""
        async with self._reloading:
            gone = set(map(id, sources))
            labels = [label for label, source in self._sources.items() if id(source) in gone]
            for label in labels:
                del self._sources[label]
                self._health.pop(label, None)
            self._swap({label: part for label, part in self._parts.items() if label not in labels})
            return self.current

    async def _reload(self, chosen: Callable[[Source], bool]) -> Snapshot:
        async with self._reloading:
            asked = {label: one for label, one in self._sources.items() if chosen(one)}
            answers = await asyncio.gather(*(self._ask(source) for source in asked.values()))
            parts = dict(self._parts)
            problems: dict[str, str] = {}
            failed: set[str] = set()
            for (label, source), answer in zip(asked.items(), answers, strict=True):
                given, left_out = answer, ""
                if getattr(source, "by_file", False):
                    given, left_out = _without_clashes(parts, label, answer)
                try:
                    parts = self._joined(parts, label, given)
                except CatalogError as error:
                    if source.required and (label not in parts or isinstance(error, NameClash)):
                        raise
                    problems[label] = error.message
                    failed.add(label)
                else:
                    told = source.problem if isinstance(source, Telling) else ""
                    problems[label] = left_out or told
            crash_here("CP13")
            self._swap(parts)
            for label, problem in problems.items():
                if getattr(asked[label], "unused", False) and not problem:
                    self._health.pop(label, None)
                    continue
                self._health[label] = Health(
                    source=label,
                    tools=len(parts.get(label, ())),
                    ok=not problem,
                    problem=problem,
                    foreign=getattr(asked[label], "foreign", False),
                    stale=label in failed,
                )
            return self.current

    def put(self, part: str, specs: Sequence[ToolSpec]) -> Snapshot:
        """Set one part from memory, such as the tools a program adds."""
        self._swap(self._parts | {part: tuple(specs)})
        self._health[part] = Health(source=part, tools=len(specs))
        return self.current

    def check(self, part: str, specs: Sequence[ToolSpec]) -> None:
        """Raise `NameClash` if `put` would."""
        _merged(self._parts | {part: tuple(specs)})

    def part(self, name: str) -> tuple[ToolSpec, ...]:
        """The specs that one source gave last."""
        return self._parts.get(name, ())

    def health(self) -> list[Health]:
        """How every source did when it was last asked; one that nobody has used is left out."""
        return list(self._health.values())

    @staticmethod
    def _joined(
        parts: dict[str, tuple[ToolSpec, ...]],
        label: str,
        answer: tuple[ToolSpec, ...] | CatalogError,
    ) -> dict[str, tuple[ToolSpec, ...]]:
        if isinstance(answer, CatalogError):
            raise answer
        joined = parts | {label: answer}
        _merged(joined)
        return joined

    @staticmethod
    async def _ask(source: Source) -> tuple[ToolSpec, ...] | CatalogError:
        try:
            return tuple(await source.load())
        except CatalogError as error:
            return error

    def _swap(self, parts: dict[str, tuple[ToolSpec, ...]]) -> None:
        specs = _merged(parts)
        unusable = {name: reason for name, spec in specs.items() if (reason := self._usable(spec))}
        for name, spec in specs.items():
            undo = spec.compensation
            if undo is not None and undo.tool not in specs and name not in unusable:
                unusable[name] = f"its compensation tool {undo.tool!r} is not in the catalog"
        unchanged = parts == self._parts and unusable == self.current.unusable
        self._parts = parts
        if unchanged and self.current.revision:
            return
        self.current = Snapshot(
            revision=self.current.revision + 1,
            specs=MappingProxyType(specs),
            unusable=MappingProxyType(unusable),
            aliases=MappingProxyType(aliases(specs, unusable)),
        )


def _labelled(sources: Sequence[Source]) -> dict[str, Source]:
    """Each under a label of its own: two endpoints can be called alike."""
    labelled: dict[str, Source] = {}
    for source in sources:
        number, label = 1, source.name
        while label in labelled:
            number += 1
            label = f"{source.name} ({number})"
        labelled[label] = source
    return labelled


def _without_clashes(
    parts: _Parts, label: str, answer: tuple[ToolSpec, ...] | CatalogError
) -> tuple[tuple[ToolSpec, ...] | CatalogError, str]:
    """The files whose names are free, those given first before the others; and what of the rest."""
    if isinstance(answer, CatalogError):
        return answer, ""
    merged = _merged({one: specs for one, specs in parts.items() if one != label})
    fit: list[ToolSpec] = []
    problems: list[str] = []
    for where, group in groupby(answer, lambda spec: spec.origin.where):
        specs = tuple(group)
        placed = {spec.name: merged[spec.name] for spec in specs if spec.name in merged}
        try:
            _refuse_kept({label: specs})
            for spec in specs:
                _place(placed, spec)
        except NameClash as error:
            problems.append(f"{where} is left out. {error.message}")
        else:
            merged |= placed
            fit += specs
    return tuple(fit), " ".join(problems)


def _refuse_kept(parts: dict[str, tuple[ToolSpec, ...]]) -> None:
    for specs in parts.values():
        for spec in specs:
            why = kept(spec.name, spec.origin.kind, spec.origin.where)
            if why:
                raise NameClash(f"{spec.name!r} of {spec.origin} {why}. Rename it.")


def _gives_way(spec: ToolSpec, other: ToolSpec) -> bool:
    """What an operator has written or agreed to stands in a built-in tool's place."""
    return spec.origin.where == BUILT_IN and other.origin.kind in _OPERATORS


def _merged(parts: _Parts) -> dict[str, ToolSpec]:
    merged: dict[str, ToolSpec] = {}
    _refuse_kept(parts)
    for specs in parts.values():
        for spec in specs:
            _place(merged, spec)
    return dict(sorted(merged.items()))


def _place(merged: dict[str, ToolSpec], spec: ToolSpec) -> None:
    other = merged.setdefault(spec.name, spec)
    if _gives_way(other, spec):
        merged[spec.name] = spec
        return
    if other is spec or _gives_way(spec, other):
        return
    if other.origin == spec.origin:
        raise NameClash(
            f"{spec.name!r} is there twice, both times from {spec.origin}. Add it once, or "
            "give the second another name: add(function, name='…')."
        )
    raise NameClash(
        f"Two tools are called {spec.name!r}: one from {other.origin}, one from "
        f"{spec.origin}. Rename one of them; the catalog stays as it was."
    )
