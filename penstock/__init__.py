"""Penstock: standing SQL queries at scale.

Subscriptions are SQL queries; publishers send changes; Penstock computes which subscribers are
affected and sends each of them only what changed. Start with `Hub`.
"""

from typing import TYPE_CHECKING

from penstock.doors import lazy_door

if TYPE_CHECKING:
    from penstock.client import Notification
    from penstock.delivery.subscription import Subscription
    from penstock.errors import PenstockError
    from penstock.flow.changes import Change, Op
    from penstock.flow.explain import Explanation
    from penstock.hub import Hub

__all__ = [
    "Change",
    "Explanation",
    "Hub",
    "Notification",
    "Op",
    "PenstockError",
    "Subscription",
]

__getattr__ = lazy_door(
    __name__,
    {
        "client": "Notification",
        "delivery.subscription": "Subscription",
        "errors": "PenstockError",
        "flow.changes": "Change Op",
        "flow.explain": "Explanation",
        "hub": "Hub",
    },
)
