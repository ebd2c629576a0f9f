"""What a call costs whose end is told by somebody else than its owner."""

from toolgate.ledger.entry import Entry
from toolgate.ledger.state import State

_GIVES_BACK = frozenset({State.FAILED, State.CLAIMED, State.STARTED})


def later(found: Entry, state: State) -> tuple[tuple[str, int], ...]:
    """What is charged with a move to this state, of what the entry held.

    What may have happened costs, once; what is known by then not to have happened is given back,
    and so is what is run again, which costs at its end.
    """
    if found.state is State.UNKNOWN:
        if state not in _GIVES_BACK:
            return ()
        return tuple((lease, -amount) for lease, amount in found.charges)
    return found.charges if state in {State.UNKNOWN, State.SUCCEEDED} else ()
