"""Something that an agent says to its user, or that is told to an agent."""

from typing import Literal

import msgspec

from toolgate import clock
from toolgate.call import Call, Event
from toolgate.caller import Caller
from toolgate.errors import ToolError

Kind = Literal["response", "notification", "scheduled"]
# What an event holds of a text; all of it is in the inbox.
_MOST_TOLD = 16_384


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """One of them. Its id follows from what it is told of, so that nobody is told twice."""

    id: str
    kind: Kind
    text: str
    at_ns: int
    tenant: str
    agent: str
    user: str = ""
    session: str = ""
    tool: str = ""
    call_id: str = ""
    turn_group: str = ""

    @property
    def at(self) -> str:
        """When, in UTC."""
        return clock.moment_of(self.at_ns).isoformat(timespec="seconds")

    def event(self) -> Event:
        """As those are told who listen."""
        return Event(
            id=f"evt_{self.id}",
            kind=f"agent.{self.kind}",
            at_ns=self.at_ns,
            tenant=self.tenant,
            agent=self.agent,
            tool=self.tool,
            call_id=self.call_id,
            turn_group=self.turn_group,
            payload={
                "id": self.id,
                "text": self.text[:_MOST_TOLD],
                "is_cut": len(self.text) > _MOST_TOLD,
                "user": self.user,
                "session": self.session,
            },
        )


def said(call: Call, kind: Kind, text: str, *, most: int) -> Notice:
    """What a call says."""
    if not text.strip():
        raise ToolError("There is nothing to say: the text is empty. Write what is to be told.")
    if len(text) > most:
        raise ToolError(
            f"The text has {len(text):,} characters, and at most {most:,} are told at once. "
            "Shorten it, or tell it in parts."
        )
    return to(
        call.caller,
        f"note_{call.id.removeprefix('call_')}",
        kind,
        text,
        tool=call.spec.name,
        call_id=call.id,
        turn_group="" if call.turn is None else call.turn.group,
    )


def to(caller: Caller, name: str, kind: Kind, text: str, **told: str) -> Notice:
    """What whoever called is told."""
    return Notice(
        id=name,
        kind=kind,
        # Half a character can be neither kept nor sent.
        text=text.encode("utf-8", "replace").decode(),
        at_ns=clock.unix_ns(),
        tenant=caller.tenant,
        agent=caller.agent,
        user=caller.user,
        session=caller.session,
        **told,
    )
