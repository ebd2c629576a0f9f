"""A program that has run in the sandbox, as its caller is told of it."""

from toolgate.sandbox.sandbox import Ended

_TEXT = 60_000
_NOTES = {
    Ended.OUT_OF_TIME: "It was not done in time and was ended.",
    Ended.OUT_OF_MEMORY: "It used too much memory and was ended.",
    Ended.TOO_MUCH_OUTPUT: "It wrote too much and was ended.",
    Ended.TOO_MUCH_WRITTEN: "It put too much into its folders and was ended.",
    Ended.BY_SIGNAL: "It was ended by a signal.",
}


def note(ended: Ended) -> str:
    """Why it did not end by itself; nothing where it did."""
    return _NOTES.get(ended, "")


def text(raw: bytes, most: int = _TEXT) -> str:
    """What it said; the middle is left out of what is long."""
    if len(raw) > most:
        head = most * 2 // 3
        gone = f"\n… {len(raw) - most} bytes are left out …\n".encode()
        raw = raw[:head] + gone + raw[head - most :]
    return raw.decode("utf-8", "replace")
