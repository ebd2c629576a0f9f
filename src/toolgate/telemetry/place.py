"""An error for the log: its kind and where it was raised, never its own words."""


def kind_of(error: BaseException) -> str:
    """The class's name."""
    return _one_line(type(error).__name__)


def place_of(error: BaseException) -> str:
    """The innermost module and line."""
    trace = error.__traceback__
    if trace is None:
        return "an unknown place"
    while trace.tb_next is not None:
        trace = trace.tb_next
    module = str(trace.tb_frame.f_globals.get("__name__", "?"))
    return f"{_one_line(module)}, line {trace.tb_lineno}"


def _one_line(name: str) -> str:
    """A class can be given any name, also one that looks like another line of the log."""
    return name[:80].encode("unicode_escape").decode()
