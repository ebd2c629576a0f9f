"""What a program is told of its surroundings: variables, and who it is."""

from collections.abc import Mapping

from toolgate.errors import ProviderUnavailable
from toolgate.sandbox.egress.listening import PORT
from toolgate.sandbox.policy import Policy

# Its own folder, whatever this machine has there.
WORK = "/tmp"  # noqa: S108
SHARED = "/dev/shm"  # noqa: S108
USER = 1000
_USUAL: Mapping[str, str] = {
    "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
    "HOME": WORK,
    "TMPDIR": WORK,
    "LANG": "C.UTF-8",
    "USER": "tool",
}
# By which programs know their proxy; Node has to be told to look.
_PROXY = f"http://127.0.0.1:{PORT}"
_PROXIED: Mapping[str, str] = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), _PROXY),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), ""),
    "NODE_USE_ENV_PROXY": "1",
}


def variables(policy: Policy) -> Mapping[str, str]:
    """Nothing of ours: a few that programs expect, and what the policy says."""
    for name, value in policy.env.items():
        if not name or "=" in name or "\0" in name or "\0" in value:
            raise ProviderUnavailable(
                "A variable for the sandbox has a name or a value that none can have; correct it."
            )
    return {**_USUAL, **policy.env, **(_PROXIED if policy.hosts else {})}


def accounts() -> Mapping[str, str]:
    """Files that say who the program is; the users of this machine are not told."""
    return {
        "/etc/passwd": f"tool:x:{USER}:{USER}::{WORK}:/bin/sh\n",
        "/etc/group": f"tool:x:{USER}:\n",
        "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    }
