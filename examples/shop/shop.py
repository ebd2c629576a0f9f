"""The functions that tools/shop.yaml names. A parcel's number tells how many were sent."""

from itertools import count

_parcels = count(1)


def find_order(customer: str) -> dict[str, str]:
    """The customer's last order."""
    return {"order": f"order-of-{customer}"}


async def ship_order(order: str) -> dict[str, str]:
    """Hand it to the carrier."""
    return {"shipped": order, "parcel": f"P-{next(_parcels)}"}


async def refund(order: str) -> dict[str, str]:
    """Give the money back."""
    return {"refunded": order}
