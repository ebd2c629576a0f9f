"""Whose knowledge it is: a persona's, or else one user's with one agent, within a tenant."""

from toolgate.caller import Caller


def owner_of(caller: Caller) -> str:
    """A persona and an agent of the same name are two.

    What one user tells an agent another does not get from it. A persona is what an operator lets
    users share.
    """
    if caller.persona:
        return f"persona:{caller.persona}"
    # Agents' names hold no slash.
    return f"agent:{caller.agent}/{caller.user}" if caller.user else f"agent:{caller.agent}"
