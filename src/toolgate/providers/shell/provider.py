"""Commands of this machine, each in a sandbox. No shell reads them, and none runs on the host."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

import msgspec
import orjson

from toolgate import clock
from toolgate.call import Call
from toolgate.errors import (
    ExecutionFailed,
    InvalidArguments,
    InvalidOutput,
    ToolError,
    UnsupportedProvider,
)
from toolgate.executor.resilience.deadline import out_of_time, timed_out
from toolgate.net.hidden import value_without
from toolgate.providers.shell.argv import check_text
from toolgate.providers.shell.command import Command, command
from toolgate.providers.shell.env import PLAIN
from toolgate.providers.shell.places import Surroundings
from toolgate.providers.shell.secret import Secrets, covered, hidden_of
from toolgate.providers.shell.template import Absent, Template, Unfit, text_of
from toolgate.sandbox.sandbox import Ended, Finished, Sandbox
from toolgate.spec.document import NON_FINITE, has_non_finite
from toolgate.spec.tool import ToolSpec


class Chosen(Sandbox, Protocol):
    """A sandbox that holds, or says why there is none."""

    @property
    def refusal(self) -> str:
        """Why nothing can run; nothing where it can."""
        ...


Choose = Callable[[], Awaitable[Chosen]]
# Of what a failed command wrote, so much is told: its last words, which say why.
_MOST_TOLD = 2_000
_MOST_STDIN = 16 * 1024 * 1024
_NO_SECRETS = Secrets()
_WHY = {
    Ended.BY_SIGNAL: "was ended by a signal",
    Ended.OUT_OF_MEMORY: "used more memory than it may, and was ended",
    Ended.TOO_MUCH_OUTPUT: "wrote more than it may, and was ended",
    Ended.TOO_MUCH_WRITTEN: "put more into its folders than it may, and was ended",
}


class ShellProvider:
    """Runs one program a call. `choose` finds what keeps it in, and is asked once."""

    def __init__(
        self, around: Surroundings, choose: Choose, secrets: Secrets = _NO_SECRETS
    ) -> None:
        self._around = around
        self._secrets = secrets
        self._choose = choose
        self._choosing = asyncio.Lock()
        self._sandbox: Chosen | None = None
        self._commands: dict[str, tuple[ToolSpec, Command]] = {}

    async def prepare(self) -> Chosen:
        """Find the sandbox, which takes a moment; from then on it is known if there is none."""
        async with self._choosing:
            if self._sandbox is None:
                self._sandbox = await self._choose()
            return self._sandbox

    def unusable(self, spec: ToolSpec) -> str | None:
        """Read its command, and keep it."""
        kept = self._commands.get(spec.name)
        if kept is None or kept[0] is not spec:
            try:
                self._commands[spec.name] = spec, self._read(spec)
            except ValueError as error:
                reason = str(error)
                return f"config{reason}" if reason.startswith(".") else f"config {reason}"
        return None if self._sandbox is None else self._sandbox.refusal or None

    def unfit(self, spec: ToolSpec, args: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
        """What no command can be made from."""
        kept = self._commands.get(spec.name)
        if kept is None or kept[0] is not spec:
            return ()
        try:
            _filled(kept[1], args)
        except Unfit as unfit:
            return [_problem(unfit)]
        return ()

    async def run(self, call: Call) -> Any:
        """Run it to its end, or to the end of the call's time."""
        found = self._granted(call.spec)
        try:
            argv, stdin, env = _filled(found, call.args)
        except Unfit as unfit:
            raise InvalidArguments(call.spec.name, [_problem(unfit)]) from None
        sandbox = self._sandbox or await self.prepare()
        left = (call.until_ns - clock.monotonic_ns()) / 1e9
        if left <= 0:
            raise out_of_time(call)
        seconds = min(left, found.policy.seconds or left)
        held = self._secrets.variables(call.spec.name, found.secrets)
        policy = msgspec.structs.replace(found.policy, env=env | held, seconds=seconds)
        finished = await sandbox.run(argv, policy, stdin=stdin, folder=found.folder)
        hidden = hidden_of(held)
        return _result(call, found, covered(finished, hidden), hidden)

    def _granted(self, spec: ToolSpec) -> Command:
        """A call runs what it was granted, also when a reload has put another in its place."""
        kept = self._commands.get(spec.name)
        if kept is not None and kept[0] is spec:
            return kept[1]
        try:
            return self._read(spec)
        except ValueError as error:
            raise UnsupportedProvider(f"{spec.name!r} cannot run any more: {error}.") from None

    def _read(self, spec: ToolSpec) -> Command:
        found = command(spec, self._around)
        self._secrets.variables(spec.name, found.secrets)
        return found


def _filled(found: Command, args: Mapping[str, Any]) -> tuple[list[str], bytes, dict[str, str]]:
    """Words, standard input and variables for these arguments, or `Unfit`."""
    argv = [found.program, *found.argv.built(args)[1:]]
    stdin = b"" if found.stdin is None else _read(found, found.stdin, args)
    env = dict(PLAIN)
    for name, text in found.env.items():
        env[name] = _text(found, text, args)
        check_text(next(iter(text.names), ""), env[name])
    return argv, stdin, env


def _problem(unfit: Unfit) -> tuple[str, str]:
    return (f"/{unfit.name}" if unfit.name else ""), unfit.reason


def _read(found: Command, text: Template, args: Mapping[str, Any]) -> bytes:
    raw = _text(found, text, args).encode()
    if len(raw) > _MOST_STDIN:
        raise Unfit("", f"make {len(raw):,} bytes of input; at most {_MOST_STDIN:,} are taken")
    return raw


def _text(found: Command, text: Template, args: Mapping[str, Any]) -> str:
    try:
        filled = text_of(text, args, found.argv.defaults)
        filled.encode()
    except Absent as absent:
        raise Unfit(absent.name, "is missing, and the command needs it") from None
    except UnicodeEncodeError:
        raise Unfit(text.names[0], "holds half of a character; send whole text") from None
    return filled


def _result(call: Call, found: Command, finished: Finished, hidden: tuple[bytes, ...] = ()) -> Any:
    if finished.ended is Ended.OUT_OF_TIME:
        raise timed_out(call, seconds=finished.seconds)
    if finished.ended is not Ended.BY_ITSELF or finished.code not in found.ok:
        _fail(call, found, finished)
    if found.output == "full":
        return {
            "exit_code": finished.code,
            "stdout": finished.stdout.decode(errors="replace"),
            "stderr": finished.stderr.decode(errors="replace"),
        }
    if found.output == "text":
        return finished.stdout.decode(errors="replace")
    return _json(call, finished.stdout, hidden)


def _json(call: Call, raw: bytes, hidden: tuple[bytes, ...]) -> Any:
    try:
        value = orjson.loads(raw)
        is_finite = not has_non_finite(value)
        value = value_without(value, raw, hidden)
    except (orjson.JSONDecodeError, TypeError) as error:
        raise InvalidOutput(
            f"{call.spec.name!r} ran, but what it wrote is not JSON ({error})."
        ) from None
    if not is_finite:
        raise InvalidOutput(f"{call.spec.name!r} ran, but what it wrote is not JSON ({NON_FINITE})")
    return value


def _fail(call: Call, found: Command, finished: Finished) -> NoReturn:
    """A code that is not zero does not prove that nothing happened; its definition may say so."""
    name = call.spec.name
    why = _WHY.get(finished.ended, f"ended with exit code {finished.code}")
    said = _last_words(finished.stderr) or _last_words(finished.stdout)
    told = f" It said: {said}" if said else ""
    is_refusal = finished.ended is Ended.BY_ITSELF and finished.code in found.refused
    if is_refusal:
        raise ToolError(f"{name!r} {why}: it did nothing.{told}", exit_code=finished.code)
    advice = (
        "The same call may fail again: change the arguments, or do without it."
        if call.spec.effect.repeatable
        else "It may have taken effect: check before you call it again."
    )
    raise ExecutionFailed(f"{name!r} {why}. {advice}{told}", exit_code=finished.code)


def _last_words(raw: bytes) -> str:
    text = raw[-4 * _MOST_TOLD :].decode(errors="replace").strip()
    # What steers a terminal stays out of messages and logs.
    text = "".join(char if char.isprintable() or char in "\n\t" else "?" for char in text)
    return text if len(text) <= _MOST_TOLD else "…" + text[-_MOST_TOLD:]
