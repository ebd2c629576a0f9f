"""What callers may say in a request of their own: headers, and how long it may take."""

import re
from collections.abc import Mapping

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.means import Means
from toolgate.tools.web.fetching import SECONDS, seconds_left

LONGEST = 50.0
# Secrets of callers would stand in every record, and these open doors that are none of a model's.
_REFUSED = re.compile(
    r"authorization|proxy-.*|cookie2?|set-cookie|(x-)?api-?key|x-auth.*|.*[-_]token|token|.*secret.*"
    r"|.*password.*|forwarded|via|x-forwarded.*|x-real-ip|x-original.*|x-rewrite.*"
    r"|x-http-method.*|x-method-override|metadata.*|x-aws-.*|x-goog.*|x-amz-.*|x-ms-.*",
    re.IGNORECASE,
)


def headers(means: Means, given: Mapping[str, str], **own: str) -> dict[str, str]:
    """Those of a caller, with ours where it says nothing."""
    for name in given:
        if _REFUSED.fullmatch(name):
            raise ToolError(
                f"The header {name[:60]} is not taken from callers. A service that wants "
                "credentials is an HTTP tool that an operator defines, with a secret of its own."
            )
    said = {name.lower() for name in given}
    usual = {"User-Agent": means.settings.web.user_agent}
    usual |= {name.replace("_", "-"): value for name, value in own.items() if value}
    kept = {name: value for name, value in usual.items() if name.lower() not in said}
    return kept | dict(given)


def seconds(call: Call, timeout: float = SECONDS) -> float:
    """How long it may take, of what is left."""
    if not 0 < timeout <= LONGEST:
        raise ToolError(f"The timeout is more than 0 and at most {LONGEST:g} seconds.")
    return seconds_left(call, timeout)
