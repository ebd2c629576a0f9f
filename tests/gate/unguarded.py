"""The guard of a side effect's claim, taken out: for the controls."""

from collections.abc import Coroutine
from typing import Any

from toolgate.call import Call
from toolgate.executor.recording.twins import Twins
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Begun


def begun_in_any_world(self: Twins, call: Call, intent: Entry) -> Coroutine[Any, Any, Begun]:
    """As `Twins` begins a call, without a word about the world that it was decided on."""
    return self._journal.begin(intent, may_start=call.may_start)  # pyright: ignore[reportPrivateUsage]
