"""How a call failed that ran, or may have. Import from `errors`."""

from typing import Any, ClassVar

from toolgate.trouble import ToolgateError


class CallFailed(ToolgateError):
    """The call ran, or may have."""


class ExecutionFailed(CallFailed):
    """The tool raised an error of its own; `details.outcome` says if it may have happened."""

    code = "execution_failed"
    # Whether what runs it is well, and has answered with this.
    is_answer: ClassVar[bool] = False
    # What a tool gave with its failure, where that is more than words.
    produced: Any = None


class ToolError(ExecutionFailed):
    """Raise this from a tool to say, in words for the model, why it did not do its work.

    It means that nothing happened: the ledger records the call as failed, not as unknown.
    `retryable`: the same call can succeed later; `retry_after`: in so many seconds.
    """

    code = "tool_error"

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        **details: Any,
    ) -> None:
        if retry_after is not None:
            details["retry_after"] = retry_after
        super().__init__(message, **details)
        self.retryable = retryable or retry_after is not None


class InputNeeded(ToolError):
    """The tool has questions before it begins: answer them, and call it again with the answers.

    `questions` are by name, as the door that the call came by can put them.
    """

    code = "input_required"

    def __init__(self, questions: dict[str, Any]) -> None:
        super().__init__(
            "The tool asks for more before it begins. Nothing ran: call it again with the answers.",
            retryable=True,
            questions=questions,
        )


class CannotAsk(ToolError):
    """The tool has questions that its caller cannot be asked; use a client that takes them."""

    code = "missing_capability"

    def __init__(self, needed: tuple[str, ...]) -> None:
        super().__init__(
            f"This tool asks its caller something ({', '.join(needed) or 'a question'}), and this "
            "one does not take that. Nothing ran.",
            retryable=True,
            needed=list(needed),
        )


class TimedOut(CallFailed):
    """The tool took too long; unless it is repeatable, check before you call again."""

    code = "timed_out"

    def __init__(self, message: str, *, produced: Any = None, **details: Any) -> None:
        super().__init__(message, **details)
        # What a tool that streams had produced by then.
        self.produced = produced


class InvalidOutput(CallFailed):
    """The tool ran, but its result is not JSON, not as listed, or far too large; correct it."""

    code = "invalid_output"


class ExtensionFailed(CallFailed):
    """An extension raised an error; the message says whether the tool had run."""

    code = "extension_failed"

    def __init__(self, message: str, *, ran: bool | None = None, **details: Any) -> None:
        super().__init__(message, **details)
        self.ran = ran
