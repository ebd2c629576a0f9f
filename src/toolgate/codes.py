"""Codes of answers and of calls on record that no error stands for: they are never raised."""

from collections.abc import Mapping

RESULTS: Mapping[str, str] = {
    "outcome_unknown": "The call was begun before, and nobody saw how it ended. It is not repeated "
    "by itself: check what it did, or have it settled.",
    "lease_lost": "The call ran here, but was given up as lost before it ended. What is on record "
    "stands; check before you call again.",
    "undone": "The call was done and taken back. To do it again, begin a new turn.",
    "skipped": "A call or step before it did not end well, so this one did not run.",
    "not_happened": "The probe says that it did not happen. Call again to do it.",
    "not_recovered": "Its process was lost, and nobody could go on with it; `state` says whether "
    "it may have happened.",
    "queued": "A worker will run the call. It is not done yet: ask for its result by its id, and "
    "do not call it again.",
    "undelivered": "No worker could run the call; nothing more is tried by itself. An operator "
    "can look at it, and have it tried again.",
    "not_run": "On record only: an extension answered, and the tool did not run.",
    "cancelled": "On record only: whoever called went away, or the process ended.",
    "compensation_failed": "On record only: the call could not be taken back, and still stands.",
}
