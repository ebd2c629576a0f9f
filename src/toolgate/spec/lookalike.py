"""Which names a reader could take for each other."""

import re
import unicodedata
from functools import lru_cache

_SEPARATORS = re.compile(r"[\s_.:/-]+")
# Letters that look like Latin ones once case and accents are gone, of the scripts that have most of
# them. Unicode's own table has 6,000 rows: for what is not in here, not being ASCII is enough.
_LETTERS = str.maketrans(
    {
        **dict(zip("авеёікмнорстухѕјԁгԛԝһ", "abeeikmhopctyxsjdrqwh", strict=True)),
        **dict(zip("αβεικνορτυχγωη", "abeiknoptuxywn", strict=True)),
        **dict(zip("\u0131łøđ\u0251\u0261", "ilodag", strict=True)),
    }
)
# What looks alike within ASCII.
_SHAPES = str.maketrans("0135i|", "olesll")


def folded(name: str) -> str:
    """The name without case and separators: `Read-File` and `read_file` are the same words."""
    return _SEPARATORS.sub("", name).casefold()


@lru_cache(16_384)
def skeleton(name: str) -> str:
    """What a reader sees: names of the same skeleton can be taken for each other."""
    plain = unicodedata.normalize("NFKD", folded(name))
    plain = "".join(one for one in plain if not unicodedata.combining(one))
    plain = plain.casefold().translate(_LETTERS).translate(_SHAPES)
    return plain.replace("rn", "m").replace("vv", "w")
