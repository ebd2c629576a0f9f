"""Tools that a person has to agree to do not run on their own."""

from toolgate.call import Call, Output
from toolgate.errors import ApprovalPending
from toolgate.executor.extension import Extension, Handler


class Approval(Extension):
    """Refuses what needs a person. There is no way yet to give the approval."""

    priority = 300

    def link(self, inner: Handler) -> Handler:
        """A tool that is not marked passes by."""

        async def run(call: Call) -> Output:
            if call.grant.needs_a_person:
                raise ApprovalPending(
                    f"{call.spec.name!r} needs a person's approval, and this version cannot "
                    "collect it yet. Nothing ran."
                )
            return await inner(call)

        return run
