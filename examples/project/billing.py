"""The functions that tools/billing.yaml names."""

_paid = {"I-1": False, "I-2": False}


def open_invoices(customer: str) -> dict[str, list[str]]:
    """The invoices that are not paid."""
    return {customer: [invoice for invoice, paid in _paid.items() if not paid]}


async def mark_paid(invoice_id: str) -> dict[str, bool]:
    """Remember that it is paid."""
    _paid[invoice_id] = True
    return {"paid": True}


async def mark_open(invoice_id: str) -> dict[str, bool]:
    """Remember that it is not."""
    _paid[invoice_id] = False
    return {"paid": False}
