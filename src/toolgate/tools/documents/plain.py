"""Plain text and Markdown as blocks."""

import re

from toolgate.tools.documents.block import Document, Writing

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*\Z")


def read_text(text: str) -> Document:
    """Paragraphs are what stands between empty lines."""
    found = Writing()
    for paragraph in re.split(r"\n[ \t]*\n", text):
        found.paragraph(paragraph)
    return found.done("text")


def read_markdown(text: str) -> Document:
    """Headings of both kinds; a # in code is none."""
    found = Writing()
    lines: list[str] = []
    fence = ""

    def end() -> None:
        found.paragraph("\n".join(lines))
        lines.clear()

    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if fence or mark:
            lines.append(line)
            if mark and not fence:
                fence = mark[1]
            elif mark and mark[1].startswith(fence) and not line.strip(" `~"):
                fence = ""
        elif heading := _HEADING.match(line):
            end()
            found.heading(len(heading[1]), _unclosed(heading[2]))
        elif len(lines) == 1 and lines[0].strip() and (under := _UNDERLINE.match(line)):
            found.heading(1 if under[1][0] == "=" else 2, lines.pop())
        elif line.strip():
            lines.append(line)
        else:
            end()
    end()
    return found.done("markdown")


def _unclosed(heading: str) -> str:
    """Without the # that may stand behind a heading too."""
    text = heading.rstrip()
    bare = text.rstrip("#")
    return bare if not bare or bare[-1].isspace() else text
