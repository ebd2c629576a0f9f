"""Calls that come together: batches and chains, each call of them through the one way in."""

from collections.abc import Sequence

from toolgate.call import Turn
from toolgate.caller import Caller
from toolgate.errors import InvalidRequest
from toolgate.executor.aftercare.probing import Perform
from toolgate.executor.several.batch import Batch, read_batch, run_batch
from toolgate.executor.several.chain import Chain, Runner, TakeBack, View
from toolgate.executor.several.steps import Mode, read_steps


class Several:
    """What is asked for at once is looked at as a whole, before any of it runs."""

    def __init__(
        self, perform: Perform, view: View, *, most: int = 10, parallel_mutations: bool = False
    ) -> None:
        self.most = most
        self._perform = perform
        self._view = view
        self._parallel_mutations = parallel_mutations

    async def batch(self, calls: Sequence[object], *, caller: Caller, turn: Turn | None) -> Batch:
        """One after the other, until a critical one fails."""
        read = read_batch(calls, most=self.most)
        return await run_batch(read, self._perform, caller=caller, turn=turn)

    async def chain(
        self,
        steps: Sequence[object],
        *,
        caller: Caller,
        turn: Turn | None,
        mode: Mode,
        parallel_mutations: bool,
        take_back: TakeBack | None,
    ) -> Chain:
        """Steps that use each other's results."""
        if mode not in ("sequential", "parallel"):
            raise InvalidRequest("The mode of a chain is 'sequential' or 'parallel'.")
        plan = read_steps(steps, most=self.most)
        runner = Runner(self._perform, self._view, caller=caller, turn=turn)
        return await runner.run(
            plan,
            mode=mode,
            parallel_mutations=parallel_mutations and self._parallel_mutations,
            take_back=take_back,
        )
