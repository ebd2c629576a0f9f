"""Names that callers give to variables: such as an expression can have, and none that it needs."""

from collections.abc import Iterable

from toolgate.errors import ToolError
from toolgate.tools.math.tokens import is_name
from toolgate.tools.math.vocabulary import ALIASES, FUNCTIONS, KEYWORDS, TRUTHS


def check_names(names: Iterable[str]) -> None:
    """Refuse a name that no expression could use."""
    for name in names:
        if name in KEYWORDS or name in TRUTHS or name in FUNCTIONS or name in ALIASES:
            raise ToolError(f'"{name}" has a meaning of its own. Give the variable another name.')
        if not is_name(name):
            raise ToolError(
                f"{name[:40]!a} cannot name a variable. Use letters, digits and _, with a letter "
                "first, such as x1 or net_price."
            )
