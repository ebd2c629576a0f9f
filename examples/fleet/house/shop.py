"""The shop's tools. A charge leaves a line in the books: one for each that happened."""

import hashlib
import os
from pathlib import Path
from typing import Any

BOOKS = Path(os.environ.get("SHOP_BOOKS", "books.txt"))


def quote(items: int) -> dict[str, Any]:
    """So much apiece, and less for many."""
    return {"total": round(items * (9.5 if items > 10 else 12.0), 2)}


def report(account: str) -> dict[str, Any]:
    """Takes its time, as reports do."""
    digest = account.encode()
    for _ in range(200_000):
        digest = hashlib.sha256(digest).digest()
    return {"account": account, "sales": int.from_bytes(digest[:3]), "by": os.getpid()}


def charge(account: str, amount: float) -> dict[str, Any]:
    """In one write, which other processes do not come between."""
    with BOOKS.open("a", encoding="utf-8") as books:
        books.write(f"{account} {amount}\n")
    return {"charged": amount, "by": os.getpid()}
