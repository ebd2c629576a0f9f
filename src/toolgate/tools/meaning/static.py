"""The small embedding that comes with a wheel: a vector a token, and their mean for a text.

The wheel's own loader asks the network. Its two files are read here: the tokens as JSON, the
vectors as they lie on the disk, so that only those that are used are ever in memory.
"""

import base64
import importlib.util
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

_WHEEL = "wordllama"
_TOKENS = "tokenizers/l2_supercat_tokenizer_config.json"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_SIZE = (32_000, 256)
# Before the vectors: the length of a description in JSON, and that.
_LENGTH = 8
_LONGEST = 4_096
_SMALLEST = 1e-12


class Static:
    """Tokens and their vectors, in some 60 MB with the libraries that read them."""

    def __init__(self, folder: Path) -> None:
        self._tokens = Tokenizer.from_str((folder / _TOKENS).read_text("utf-8"))
        self._tokens.no_padding()
        self._tokens.no_truncation()
        weights = folder / _WEIGHTS
        with weights.open("rb") as file:
            length = int.from_bytes(file.read(_LENGTH), "little")
        whole = _LENGTH + length + 2 * _SIZE[0] * _SIZE[1]
        if length > _LONGEST or weights.stat().st_size != whole:
            raise ValueError("the weights are not of the form that is read here")
        self._vectors: Any = np.memmap(
            weights, dtype="<f2", mode="r", offset=_LENGTH + length, shape=_SIZE
        )

    def vectors(self, texts: Sequence[str]) -> list[bytes]:
        """A vector of length 1 for each text, as little-endian floats of 4 bytes."""
        found = self._tokens.encode_batch(list(texts), add_special_tokens=False)
        return [self._vector(one.ids) for one in found]

    def _vector(self, ids: Sequence[int]) -> bytes:
        if not ids:
            return np.zeros(_SIZE[1], "<f4").tobytes()
        rows: npt.NDArray[np.float32] = self._vectors[np.asarray(ids)].astype("<f4")
        mean = rows.mean(axis=0)
        length = float(np.linalg.norm(mean))
        return (mean / max(length, _SMALLEST)).astype("<f4").tobytes()


@cache
def static() -> Static:
    """The one of this process, read when it is first needed."""
    found = importlib.util.find_spec(_WHEEL)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(_WHEEL)
    return Static(Path(found.submodule_search_locations[0]))


def embedded(texts: list[str]) -> list[str]:
    """For a process that is asked for it: the same, as text."""
    return [base64.b64encode(one).decode() for one in static().vectors(texts)]
