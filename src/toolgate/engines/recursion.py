"""Functions and rules that come back to themselves, or call each other too deep.

The in-process engine notices when a rule needs itself. It does not notice a function that does,
and has no end to how deep it goes: the process would end, and every tenant's calls with it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from toolgate.engines.references import Path, Reference

# The engine's stack holds about fifty whose expressions are as long as they may be.
MAX_CHAIN = 25
Place = tuple[str, int]
Edges = Mapping[Path, Mapping[Path, Place]]


def bad_recursion(found: Iterable[tuple[str, tuple[Reference, ...]]]) -> Iterator[str]:
    """`file:line: message` for every cycle, and for a chain that is too long; by file."""
    edges = _edges([(file, reference) for file, each in found for reference in each])
    depths: dict[Path, int] = {}
    for start in edges:
        if start not in depths:
            yield from _walk(start, edges, depths)
    for rule, depth in depths.items():
        if depth == MAX_CHAIN + 1:
            file, line = next(iter(edges[rule].values()))
            yield (
                f"{file}:{line}: {_shown(rule)} needs more than {MAX_CHAIN} others, each needing "
                "the next. Write fewer rules, or put what they hold into data."
            )
            return


def _edges(found: list[tuple[str, Reference]]) -> Edges:
    rules = {reference.rule for _, reference in found}
    below: dict[Path, set[Path]] = defaultdict(set)
    for rule in rules:
        for length in range(1, len(rule) + 1):
            below[rule[:length]].add(rule)
    edges: dict[Path, dict[Path, Place]] = {rule: {} for rule in sorted(rules)}
    for file, reference in found:
        for target in reference.targets:
            meant = [target[:length] for length in range(1, len(target))]
            for other in (
                *(path for path in meant if path in rules),
                *sorted(below.get(target, ())),
            ):
                edges[reference.rule].setdefault(other, (file, reference.line))
    return edges


def _walk(start: Path, edges: Edges, depths: dict[Path, int]) -> Iterator[str]:
    """Depth first, without a stack of our own that could end."""
    trail = [start]
    open_ = [(start, iter(edges[start]))]
    while open_:
        rule, rest = open_[-1]
        other = next(rest, None)
        if other is None:
            open_.pop()
            trail.pop()
            depths[rule] = 1 + max((depths.get(each, 0) for each in edges[rule]), default=0)
        elif other in trail:
            file, line = edges[rule][other]
            round_ = [*trail[trail.index(other) :], other]
            names = " → ".join(_shown(each) for each in round_[:10])
            yield (
                f"{file}:{line}: recursion: {names}. Nothing may need itself: go over what is "
                "nested with walk(…), and over a list with `some` or a comprehension."
            )
        elif other not in depths:
            trail.append(other)
            open_.append((other, iter(edges[other])))


def _shown(path: Path) -> str:
    return ".".join(path[1:])
