"""A decision is a value with a reason."""

import msgspec


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What one phase says, by which rule, and the smallest change that would make it a yes."""

    phase: str
    allowed: bool
    rule: str
    reason: str
    remedy: str = ""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Every phase's verdict on one tool for one caller; for operators, not for callers."""

    tool: str
    allowed: bool
    verdicts: tuple[Verdict, ...]

    @property
    def deciding(self) -> Verdict:
        """The first refusal, or the last yes."""
        return next((one for one in self.verdicts if not one.allowed), self.verdicts[-1])
