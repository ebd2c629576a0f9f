"""Whose knowledge it is: a persona's, or else an agent's, within a tenant."""

from toolgate.call import Caller


def owner_of(caller: Caller) -> str:
    """A persona and an agent of the same name are two."""
    return f"persona:{caller.persona}" if caller.persona else f"agent:{caller.agent}"
