"""Why a text is not read: what is wrong, what to write instead, and the line."""

Path = tuple[str | int, ...]


class Refusal(Exception):
    """Becomes a `Problem` once the file's name is known."""

    def __init__(self, message: str, write: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.write = write
        self.line = line
