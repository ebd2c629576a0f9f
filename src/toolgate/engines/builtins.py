"""Which built-in functions a policy may call: the same ones, whichever engine decides."""

from functools import cache

from toolgate.engines.interpreter import Interpreter

_OUTSIDE = "reaches out of the policy; hand what it needs over as data or as a fact of the context"
_CHANCE = "answers differently each time; a decision has to be repeatable"
_ASIDE = "writes beside the decision; give a reason in `deny` or `restrict` instead"
_MUCH = "lets one call decide how much memory is taken; write the values out, or give them as data"
FORBIDDEN = {
    "http.send": _OUTSIDE,
    "net.lookup_ip_addr": _OUTSIDE,
    "opa.runtime": "shows the environment of the process, secrets included",
    "rego.parse_module": "reads policies from texts; write them as files",
    "json.match_schema": "can fetch what a schema refers to; arguments are checked before",
    "json.verify_schema": "can fetch what a schema refers to",
    "rand.intn": _CHANCE,
    "uuid.rfc4122": _CHANCE,
    "time.now_ns": "reads a clock of its own; use input.time",
    "numbers.range": _MUCH,
    "numbers.range_step": _MUCH,
    "net.cidr_expand": _MUCH,
    "graph.reachable_paths": _MUCH,
    "trace": _ASIDE,
    "print": _ASIDE,
}


@cache
def supported() -> frozenset[str]:
    """Those that the in-process engine has, by its own account."""
    interpreter = Interpreter()
    interpreter.add_module("builtins", "package builtins\n\nruntime := opa.runtime()\n")
    return frozenset(interpreter.ask("data.builtins.runtime", b"{}")["builtins"])


def complaint(name: str) -> str:
    """What is wrong with calling this built-in function; empty where nothing is."""
    if name in FORBIDDEN:
        return f"{name} {FORBIDDEN[name]}"
    return "" if name in supported() else f"{name} is no function that the engine knows"
