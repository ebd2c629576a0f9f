"""Runs a chain: steps that use each other's results, in waves, each through the gate by itself."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from toolgate.asked import Asked
from toolgate.call import Output, Turn
from toolgate.caller import Caller
from toolgate.errors import InvalidRequest, ToolgateError, ToolNotFound
from toolgate.executor.aftercare.probing import Perform
from toolgate.executor.aftercare.report import Report
from toolgate.executor.mapping import UnmappedError
from toolgate.executor.several.refused import refused, skipped
from toolgate.executor.several.steps import Mode, Plan, filled, waves, wrong
from toolgate.spec.effect import CallerKind
from toolgate.spec.tool import ToolSpec

View = Callable[[Caller, str], Awaitable[ToolSpec]]
TakeBack = Callable[[str], Awaitable[Any]]


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a chain: where it stood, and what came of it."""

    index: int
    wave: int
    tool: str
    output: Output
    name: str = ""


class Chain(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a chain, and how it was run. `undone` tells what was taken back."""

    chain_id: str
    mode_requested: Mode
    mode_used: Mode
    fallback_to_seq: bool
    parallel_mutations_enabled: bool
    waves: tuple[tuple[int, ...], ...]
    steps: tuple[Ran, ...]
    undone: Any = None

    @property
    def ok(self) -> bool:
        """Whether every step did what it was asked to."""
        return all(step.output.ok for step in self.steps)

    def to_machine(self) -> dict[str, Any]:
        """Plain JSON, as the doors send it."""
        told: dict[str, Any] = {"ok": self.ok}
        for field in self.__struct_fields__[:5]:
            told[field] = getattr(self, field)
        told["waves"] = [list(wave) for wave in self.waves]
        told["steps"] = [
            {"index": one.index, "wave": one.wave, "tool": one.tool}
            | ({"name": one.name} if one.name else {})
            | one.output.to_machine()
            for one in self.steps
        ]
        if self.undone is not None:
            told["undone"] = _machine(self.undone)
        return told


def _machine(undone: Any) -> dict[str, Any]:
    """A report, as it is told wherever something is taken back; or why there is none."""
    return undone.to_machine() if isinstance(undone, Report) else {"ok": False, **undone}


class Runner:
    """Runs chains for one caller in one turn."""

    def __init__(self, perform: Perform, view: View, *, caller: Caller, turn: Turn | None) -> None:
        self._perform = perform
        self._view = view
        self._direct = caller
        self._caller = msgspec.structs.replace(caller, kind=CallerKind.CHAIN)
        self._turn = turn

    async def run(
        self,
        plan: Plan,
        *,
        mode: Mode,
        parallel_mutations: bool,
        take_back: TakeBack | None = None,
    ) -> Chain:
        """Look at every step first, then run them; the first failure ends the chain."""
        specs = [await self._spec(index, step.tool) for index, step in enumerate(plan.steps)]
        order = waves(plan, specs, mode, parallel_mutations=parallel_mutations)
        used: Mode = "parallel" if any(len(wave) > 1 for wave in order) else "sequential"
        chain_id = f"chain_{os.urandom(12).hex()}"
        outputs = await self._outputs(chain_id, plan, specs, order)
        ran = [
            Ran(
                index=index,
                wave=wave,
                tool=specs[index].name,
                output=outputs[index],
                name=plan.steps[index].name,
            )
            for wave, indexes in enumerate(order)
            for index in indexes
        ]
        failed = any(not one.output.ok for one in ran)
        return Chain(
            chain_id=chain_id,
            mode_requested=mode,
            mode_used=used,
            fallback_to_seq=mode == "parallel" and used == "sequential",
            parallel_mutations_enabled=parallel_mutations,
            waves=tuple(tuple(wave) for wave in order),
            steps=tuple(sorted(ran, key=lambda one: one.index)),
            undone=await _undone(take_back, chain_id) if failed else None,
        )

    async def _spec(self, index: int, tool: str) -> ToolSpec:
        try:
            return await self._view(self._caller, tool)
        except ToolNotFound as missing:
            try:
                await self._view(self._direct, tool)
            except ToolNotFound:
                raise wrong(index, f"cannot run: {missing.message.removesuffix('.')}") from None
            raise wrong(
                index,
                f"cannot run: {tool!r} may not be part of a chain. Call it by itself",
            ) from None

    async def _outputs(
        self, chain_id: str, plan: Plan, specs: Sequence[ToolSpec], order: list[list[int]]
    ) -> dict[int, Output]:
        outputs: dict[int, Output] = {}
        stopped: int | None = None
        for wave in order:
            if stopped is not None:
                step = specs[stopped].name
                why = skipped(f"Step {stopped} of the chain, {step!r}, did not end well.")
                outputs |= dict.fromkeys(wave, why)
                continue
            results = {index: output.data for index, output in outputs.items()}
            ran = await asyncio.gather(
                *(self._step(chain_id, plan, specs[index], index, results) for index in wave)
            )
            outputs |= dict(zip(wave, ran, strict=True))
            stopped = next((index for index in wave if not outputs[index].ok), None)
        return outputs

    async def _step(
        self, chain_id: str, plan: Plan, spec: ToolSpec, index: int, results: dict[int, Any]
    ) -> Output:
        try:
            args = filled(plan, index, results)
        except UnmappedError as gap:
            told = f"Step {index} needs {str(gap)[:80]!r}, which is not in that step's result."
            return refused(InvalidRequest(told, step=index))
        key = plan.steps[index].idempotency_key or ""
        asked = Asked(key=key, kind=CallerKind.CHAIN, chain=chain_id, chain_index=index)
        try:
            return await self._perform(
                spec.name, args, caller=self._caller, turn=self._turn, asked=asked
            )
        except ToolgateError as error:
            return refused(error)


async def _undone(take_back: TakeBack | None, chain_id: str) -> Any:
    """What was taken back. That it could not be must not hide what the chain did."""
    if take_back is None:
        return None
    try:
        return await take_back(chain_id)
    except ToolgateError as error:
        return {"error": {"code": error.code, "message": error.message}}
