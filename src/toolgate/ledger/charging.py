"""What a call costs whose end is told by somebody else than its owner."""

from toolgate.ledger.entry import Entry
from toolgate.ledger.state import State


def later(found: Entry, state: State) -> tuple[tuple[str, int], ...]:
    """What is charged with a move to this state, of what the entry held.

    What may have happened costs, once; what is known by then not to have happened is given back.
    """
    if found.state is State.UNKNOWN:
        if state is not State.FAILED:
            return ()
        return tuple((lease, -amount) for lease, amount in found.charges)
    return found.charges if state in {State.UNKNOWN, State.SUCCEEDED} else ()
