"""Tools that another system runs: a call goes to its topic, and its answer comes with results."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

import msgspec

from toolgate import clock
from toolgate.call import Call, Output
from toolgate.errors import ExecutionFailed, ProviderUnavailable, ToolError
from toolgate.executor.queued import Answers
from toolgate.queue.message import Request, request_of
from toolgate.spec.effect import Effect
from toolgate.spec.tool import ToolSpec

_NO_BROKER = (
    "no broker is configured; set queue.url, such as kafka://HOST:PORT, and name the system that "
    "runs it in queue.producers"
)
_UNKNOWN = "It may have taken effect: check before you call it again."
_MOST_TOLD = 4_000


class SaidError(ExecutionFailed):
    """The system is there, and says that it failed: it may have done some of it."""

    is_answer = True


class Outlet(Protocol):
    """The way to other systems, and back."""

    @property
    def producers(self) -> Mapping[str, object]:
        """The systems that may answer, by name."""
        ...

    async def listens(self) -> bool:
        """Whether an answer would be heard."""
        ...

    async def hand_over(self, topic: str, request: Request, to: str) -> bool:
        """Whether it has arrived at the broker; `to` may answer it, or who knows its tenant."""
        ...

    def forget(self, call_id: str, *, answered: bool) -> None:
        """Nobody waits for its answer any more; one that still comes is told as too late."""
        ...


class QueueProvider:
    """A call that is handed over is waited for; nobody takes it back."""

    def __init__(
        self,
        answers: Answers,
        outlet: Outlet | None,
        *,
        trace: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """`trace`: the headers of the current one."""
        self._answers = answers
        self._outlet = outlet
        self._trace = trace

    def unusable(self, spec: ToolSpec) -> str | None:
        """Without a broker, or a topic."""
        if self._outlet is None:
            return _NO_BROKER
        config = spec.config.value()
        topic, producer = config.get("topic"), config.get("producer", "")
        if not isinstance(topic, str) or not topic:
            return "config names no topic; write config: {topic: NAME}"
        if not isinstance(producer, str) or (producer and producer not in self._outlet.producers):
            return "config names a producer that is not in queue.producers"
        if not self._outlet.producers:
            return "nobody may answer it: name the system that runs it in queue.producers"
        return None

    def unkeyed(self, spec: ToolSpec) -> str | None:
        """Every message holds it."""

    async def run(self, call: Call) -> Any:
        """Its answer; the chain around it says for how long it is waited for."""
        spec, outlet = call.grant.spec, self._outlet
        if outlet is None or not await outlet.listens():
            raise ProviderUnavailable(
                f"The brokers that {spec.name!r} is reached by do not answer. Nothing ran: try "
                "again in a moment."
            )
        config = spec.config.value()
        left_ns = call.until_ns - clock.monotonic_ns()
        expires_ns = clock.unix_ns() + left_ns
        request = request_of(call, expires_ns=expires_ns, trace=self._trace())
        # What it can tell two attempts of one call by.
        request = msgspec.structs.replace(request, key=call.downstream_key or "", order="")
        to = cast("str", config.get("producer", ""))
        with self._answers.expected(call.id) as answer:
            try:
                if not await outlet.hand_over(config["topic"], request, to):
                    raise ExecutionFailed(
                        f"The broker did not say that it has the call of {spec.name!r}. "
                        f"{_advice(spec)}"
                    )
                return _data(spec, await answer)
            finally:
                outlet.forget(call.id, answered=answer.done() and not answer.cancelled())


def _data(spec: ToolSpec, output: Output) -> Any:
    if output.status == "success":
        return output.data
    said = output.error.message[:_MOST_TOLD] if output.error is not None else ""
    said = said or "It failed, and does not say why."
    if spec.effect is Effect.PURE:
        raise ToolError(said)
    raise SaidError(f"{said}\n{_advice(spec)}".rstrip())


def _advice(spec: ToolSpec) -> str:
    return "" if spec.effect.repeatable else _UNKNOWN
