"""Whether the name of an operation says that it changes something, whatever its method is."""

import re
from itertools import pairwise

from toolgate.sources.openapi.operations import Operation

_BETWEEN = re.compile(r"[^A-Za-z0-9]+")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_IN_BRACES = re.compile(r"\{[^{}]*\}")
# Beside a name they say the method again: `GET_accounts`, `read_item_items_get`.
_METHODS = frozenset({"get", "head", "options"})
_READING = frozenset({
    "browse", "check", "compare", "count", "describe", "diff", "download", "exists", "explain",
    "export", "fetch", "find", "get", "has", "head", "info", "inspect", "is", "list", "load",
    "lookup", "peek", "ping", "poll", "preview", "query", "read", "retrieve", "scan", "search",
    "see", "select", "show", "stat", "stats", "status", "summarize", "test", "validate", "view",
    "watch",
})  # fmt: skip
_CHANGING = frozenset({
    "abort", "accept", "activate", "add", "apply", "approve", "archive", "assign", "attach", "ban",
    "block", "book", "buy", "call", "cancel", "capture", "charge", "checkout", "clear", "clone",
    "close", "commit", "complete", "completed", "confirm", "connect", "copy", "create",
    "deactivate", "decline", "delete", "deny", "deploy", "destroy", "detach", "disable",
    "disconnect", "dismiss", "drop", "edit", "enable", "end", "erase", "exchange", "exec",
    "execute", "expire", "fail", "failed", "finish", "flush", "forward", "grant", "import",
    "insert", "install", "invite", "invoke", "join", "kick", "kill", "launch", "leave", "lock",
    "login", "logout", "mark", "merge", "migrate", "modify", "move", "mute", "notify", "open",
    "order", "patch", "pause", "pay", "pin", "post", "proxy", "publish", "purchase", "purge",
    "push", "put", "reboot", "refund", "register", "reject", "release", "remove", "rename",
    "renew", "replace", "request", "reset", "restart", "restore", "restrict", "resume", "revoke",
    "rotate", "run", "save", "schedule", "send", "set", "share", "sign", "signout", "start", "stop",
    "submit", "subscribe", "suspend", "sync", "terminate", "toggle", "transfer", "trash", "trigger",
    "truncate", "unarchive", "unblock", "uninstall", "unlink", "unlock", "unmute", "unpin",
    "unregister", "unsubscribe", "update", "upgrade", "upload", "upsert", "wipe", "write",
})  # fmt: skip
# They are nothing else than verbs: where a path ends with one, no name is believed that reads.
_PLAINLY = frozenset({
    "cancel", "create", "delete", "destroy", "purge", "remove", "revoke", "send", "uninstall",
    "update",
})  # fmt: skip
# Behind these, also a name that begins with reading goes on with something else.
_AND = frozenset({"and", "or", "then"})


def changing(operation: Operation) -> str:
    """The word in an operation's name or path that says so, or nothing.

    A name that begins or ends with reading (`getInvite`, `invites.list`) reads. A wrong guess costs
    an operator a line in an overlay; the other way round, something could be done twice.
    """
    segments = _segments(operation.id)
    if segments:
        words = [word for segment in segments for word in segment]
        if segments[0][0] in _READING or segments[-1][0] in _READING:
            pairs = pairwise(words)
            both = next((one for before, one in pairs if before in _AND and one in _CHANGING), "")
            return both or (last if (last := _in_path(operation.path)) in _PLAINLY else "")
        if found := next((word for word in words if word in _CHANGING), ""):
            return found
    return _in_path(operation.path)


def _in_path(path: str) -> str:
    """A path says so in the last part that is no argument: `/cookies/delete`, `/delete/{id}`."""
    plain = _IN_BRACES.sub(" ", path.partition("?")[0])
    parts = [part for part in plain.split("/") if _BETWEEN.sub("", part)]
    segments = _segments(parts[-1]) if parts else []
    if not segments or segments[-1][0] in _READING:
        return ""
    return next((segment[0] for segment in segments if segment[0] in _CHANGING), "")


def _segments(name: str) -> list[list[str]]:
    """The words between dots, dashes and lines: `chat.postMessage` is [[chat], [post, message]]."""
    parts = [_WORD.findall(part) for part in _BETWEEN.split(name[:500])]
    found = [[word.lower() for word in part] for part in parts if part]
    for end in (0, -1):
        if len(found) > 1 and found[end] in ([one] for one in _METHODS):
            del found[end]
    return found
