"""Words of programs and servers are read in one pass, whatever they are: the loop reads them."""

import pytest

from toolgate.net.guard import Guard
from toolgate.sandbox.egress.request import RefusedError, read
from toolgate.sources.openapi.opened import _TABS  # pyright: ignore[reportPrivateUsage]
from toolgate.text.json_text import _TOKEN  # pyright: ignore[reportPrivateUsage]
from toolgate.upstreams.discovery import challenge

pytestmark = pytest.mark.req("P2")
# The square of it, or more, would go on for hours.
LONG = 300_000


@pytest.mark.parametrize("blank", [" ", "\t", " \t"])
def test_a_programs_header_is_read_in_one_pass(blank: str) -> None:
    hostile = f"GET http://a.example/ HTTP/1.1\r\nX:{blank * LONG}\0\r\n\r\n"
    with pytest.raises(RefusedError, match="cannot be read"):
        read(hostile.encode(), Guard())
    good = (
        f"GET http://a.example/ HTTP/1.1\r\nHost: \ta.example{blank}\r\nX:{blank * 3}y z \r\n\r\n"
    )
    assert b"x: y z\r\n" in read(good.encode(), Guard()).head


@pytest.mark.parametrize(
    "words", ["a" * LONG, "a " * LONG, 'a="' * LONG, "a" + " " * LONG, "_=" * LONG]
)
def test_a_servers_challenge_is_read_in_one_pass(words: str) -> None:
    assert challenge(f"Bearer {words}").keys() <= {"a", "_"}
    told = challenge('Bearer realm="a, b",error = invalid_token, scope="x y"')
    assert told == {"realm": "a, b", "error": "invalid_token", "scope": "x y"}


@pytest.mark.parametrize("text", ['"' + '\\"' * LONG, '"a" ' * LONG, '"' + "\\" * LONG, '"' * LONG])
def test_a_text_without_an_end_is_looked_for_once(text: str) -> None:
    assert sum(len(found[0]) for found in _TOKEN.finditer(text)) <= len(text)
    found = [(one[0], bool(one["key"])) for one in _TOKEN.finditer('{"a\\"b" : ["c", -1.5e3]}')]
    assert found == [
        ("{", False),
        ('"a\\"b"', True),
        ('"c"', False),
        ("-1.5e3", False),
        ("}", False),
    ]


@pytest.mark.parametrize("text", ["\t" * LONG + "x", " \t" * LONG + "x", "-" + "\t" * LONG + "x"])
def test_tabs_of_a_document_are_found_in_one_pass(text: str) -> None:
    assert len(_TABS.findall(text)) <= 1
    assert _TABS.sub("#", "a:\n \t \n  \n  -\tb\n\t\tc\n\t") == "a:\n#\n  \n#b\n\t\tc\n#"
