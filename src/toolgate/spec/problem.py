"""One thing that is wrong with a definition: where it stands, and what to write instead."""

import msgspec


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Reads as a sentence: file and line, tool, field, what is wrong, what to write."""

    file: str
    message: str
    write: str
    tool: str = ""
    field: str = ""
    line: int | None = None

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        subject = ".".join(part for part in (self.tool, self.field) if part)
        return f"{place}: {f'{subject} ' if subject else ''}{self.message}. {self.write}"
