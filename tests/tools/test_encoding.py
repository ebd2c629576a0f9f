"""Pieces of a text are whole characters, and put together they are the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.tools.system.encoding import HEAD, decoded, is_binary

pytestmark = pytest.mark.req("T1")
# No zero, which is taken for the sign of a binary file, and nothing that is a mark.
TEXTS = st.text(
    st.characters(exclude_characters="\0\ufeff\ufffe", exclude_categories=["Cs"]), max_size=60
)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@given(text=TEXTS, length=st.integers(4, 20))
def test_pieces_put_together_are_the_text(encoding: str, text: str, length: int) -> None:
    raw = text.encode(encoding)
    head, offset, pieces = raw[:HEAD], 0, list[str]()
    while True:
        content = raw[offset : offset + length]
        is_end = offset + len(content) >= len(raw)
        found = decoded(content, head=head, offset=offset, is_end=is_end, encoding="auto")
        pieces.append(found.text)
        if is_end:
            break
        assert found.end > offset
        offset = found.end
    assert "".join(pieces) == text


@given(raw=st.binary(max_size=100), offset=st.integers(0, 50))
def test_any_bytes_are_text_or_said_to_be_none(raw: bytes, offset: int) -> None:
    if is_binary(raw) or raw.startswith(
        (b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"\0\0\xfe\xff")
    ):
        return
    found = decoded(raw[offset:], head=raw, offset=offset, is_end=True, encoding="auto")
    assert found.text.encode(found.encoding) == raw[found.begin : found.end]
