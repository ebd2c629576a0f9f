"""`python -m benchmarks`: every benchmark, each in a process of its own; fails when a bar does."""

import subprocess
import sys

EVERY = (
    "call",
    "gate",
    "catalog",
    "malformed",
    "limits",
    "store",
    "side_effects",
    "start",
    "doors",
    "proxy",
    "growth",
    "links",
    "net",
    "http_tool",
    "upstream",
    "others",
    "overload",
    "neighbours",
    "sandbox",
    "tools",
    "native",
    "queue",
    "nodes",
)


def main() -> int:
    """Run them one after the other, so that none disturbs another's figures."""
    failed = [
        name
        for name in EVERY
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode  # noqa: S603
    ]
    print("failed:", *failed) if failed else print("every bar holds")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
