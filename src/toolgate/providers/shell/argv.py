"""The words of a command, made from arguments: one place, one word, and none that steers it."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

import msgspec

from toolgate.providers.shell.code import FREE, PLACE
from toolgate.providers.shell.programs import HAND_ON
from toolgate.providers.shell.template import (
    Absent,
    Template,
    Unfit,
    given,
    items_of,
    template,
    word_of,
)

# The kernel takes 131,072 bytes for one word; all of them and the environment share 2 MB.
_MOST_WORD = 100_000
_MOST_IN_ALL = 1_000_000
_MOST_WORDS = 10_000
_MOST_PARTS = 256
# What begins an option, or is taken for one where a program puts text into another form first.
_MARKS = frozenset("-+\u00ad\u02d7\u2043\u2212\u2796")
# What is not seen in front of a text.
_UNSEEN = frozenset({"Cc", "Cf", "Mn"})


class Word(msgspec.Struct, frozen=True):
    """One word. `is_open`: it stands behind a `--`, where a dash begins no option."""

    text: Template
    is_open: bool = False


class Part(msgspec.Struct, frozen=True):
    """Words that come together. `optional`: none of them where an argument was left out."""

    words: tuple[Word, ...]
    optional: bool = False

    @property
    def is_list(self) -> bool:
        """Whether it is a list, which can be empty."""
        return any(word.text.many is not None for word in self.words)


class Argv(msgspec.Struct, frozen=True, kw_only=True):
    """A command: its parts, and which arguments may begin like an option or like a file list."""

    parts: tuple[Part, ...]
    dashes: frozenset[str] = frozenset()
    ats: frozenset[str] = frozenset()
    defaults: Mapping[str, Any] = MappingProxyType({})

    @property
    def templates(self) -> tuple[Template, ...]:
        """Every word, as it was written."""
        return tuple(word.text for part in self.parts for word in part.words)

    @property
    def literals(self) -> list[str | None]:
        """The words that stand fast; `None` where an argument has a part in it."""
        return [one.literal for one in self.templates]

    def shapes(self, rest: Sequence[str] = ()) -> Iterator[list[str]]:
        """The words as `code` reads them: all, without each part that may be left out, none."""
        parts = [[self._shape(word) for word in part.words] for part in self.parts]
        leave = [at for at, part in enumerate(self.parts) if part.optional or part.is_list]
        for out in ((), leave, *([at] for at in leave)):
            kept = (words for at, words in enumerate(parts) if at not in out)
            yield [*(text for words in kept for text in words), *rest]

    def _shape(self, word: Word) -> str:
        is_free = word.text.begins_with_place and not self.dashes.isdisjoint(word.text.names)
        if is_free and not word.is_open:
            return FREE
        return "".join(one if isinstance(one, str) else PLACE for one in word.text.pieces)

    def built(self, args: Mapping[str, Any]) -> list[str]:
        """The words for these arguments, or `Unfit`. An argument is never two words."""
        found: list[str] = []
        for part in self.parts:
            try:
                words = [text for word in part.words for text in self._words(word, args)]
            except Absent as absent:
                if part.optional:
                    continue
                raise Unfit(absent.name, "is missing, and the command needs it") from None
            found += words
        size = sum(len(text.encode()) + 1 for text in found)
        if size > _MOST_IN_ALL or len(found) > _MOST_WORDS:
            raise Unfit("", f"make a command of {size:,} bytes in {len(found):,} words: too long")
        return found

    def _words(self, word: Word, args: Mapping[str, Any]) -> list[str]:
        many = word.text.many
        if many is not None:
            items = items_of(many.name, given(args, self.defaults, many.name))
            for item in items:
                self._check(many.name, item)
                self._check_start(word, many.name, item)
            return list(items)
        text = ""
        for piece in word.text.pieces:
            if isinstance(piece, str):
                text += piece
                continue
            value = word_of(piece.name, given(args, self.defaults, piece.name))
            self._check(piece.name, value)
            text += value
        if word.text.begins_with_place:
            # The first of two places can be empty: what counts is how the word begins.
            self._check_start(word, word.text.names[0], text)
        return [text]

    def _check(self, name: str, value: str) -> None:
        check_text(name, value)
        if name not in self.ats and _first(value) == "@":
            raise Unfit(
                name,
                "begins with @, which many programs take for a file of further arguments; leave "
                "it out, or the operator lists the argument in ats",
            )

    def _check_start(self, word: Word, name: str, text: str) -> None:
        if word.is_open or not self.dashes.isdisjoint(word.text.names):
            return
        first = _first(text)
        if first and (first in _MARKS or unicodedata.category(first) == "Pd"):
            raise Unfit(
                name,
                "begins with a dash or a plus, which the program would take for an option; write "
                "it otherwise (./-name for a file), or the operator lists the argument in dashes",
            )


def argv(
    given_argv: object,
    *,
    dashes: tuple[str, ...] = (),
    ats: tuple[str, ...] = (),
    defaults: Mapping[str, Any] = MappingProxyType({}),
) -> Argv:
    """Read a list of words, and of lists of words that may be left out, or `ValueError`."""
    items = cast("list[object]", given_argv) if isinstance(given_argv, list) else []
    if not items or len(items) > _MOST_PARTS:
        raise ValueError(f"is no list of 1 to {_MOST_PARTS} words; write [PROGRAM, WORD, …]")
    if not isinstance(items[0], str) or template(items[0]).literal in (None, ""):
        raise ValueError("does not begin with a program; no argument says which one runs")
    passes_on = items[0].rsplit("/", 1)[-1] in HAND_ON
    parts: list[Part] = []
    is_open = False
    for item in items:
        optional = isinstance(item, list)
        words: list[Word] = []
        behind = is_open
        for text in cast("list[object]", item) if optional else [item]:
            if not isinstance(text, str):
                raise ValueError("holds what is no text; put quotes around numbers and words")
            words.append(Word(_checked(text, dashes), behind and not passes_on))
            behind = behind or text == "--"
        # A `--` that may be left out says nothing about what follows.
        is_open = is_open if optional else behind
        parts.append(Part(tuple(words), optional))
    found = Argv(
        parts=tuple(parts), dashes=frozenset(dashes), ats=frozenset(ats), defaults=defaults
    )
    for part in found.parts:
        if part.optional and not any(word.text.names for word in part.words):
            raise ValueError("has an inner list without an argument; nothing says when it is left")
    return found


def check_text(name: str, value: str) -> None:
    """`Unfit` for what no program can be given."""
    if "\0" in value:
        raise Unfit(name, "holds a NUL character, which no command can take")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise Unfit(name, "holds half of a character; send whole text") from None
    if size > _MOST_WORD:
        raise Unfit(name, f"has {size:,} bytes; a word of a command has at most {_MOST_WORD:,}")


def _checked(text: str, dashes: tuple[str, ...]) -> Template:
    found = template(text)
    first = found.pieces[0] if len(found.pieces) > 1 else ""
    if isinstance(first, str) and first and not first.strip("-+"):
        named = found.names[0]
        if named not in dashes:
            raise ValueError(
                f"lets {named!r} say which option it is ({text[:60]!r}); write the option out, or "
                f"dashes: [{named}]"
            )
    return found


def _first(text: str) -> str:
    """The first character, as a program sees it that takes off blanks and folds wide letters."""
    for char in text:
        if char in _MARKS or not (char.isspace() or unicodedata.category(char) in _UNSEEN):
            return unicodedata.normalize("NFKC", char)[:1]
    return ""
