"""What a lost call costs does not depend on who finds out what became of it."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.store.entries import *  # noqa: F403
