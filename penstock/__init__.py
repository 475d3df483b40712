"""Penstock: standing SQL queries at scale.

Subscriptions are SQL queries; publishers send changes; Penstock works out who must be told what
and tells each subscriber only what changed. Start with `Hub`.
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

# Loaded when first asked for: a worker of the pipeline is one of a dozen processes, and should not
# spend a second on what only the Hub needs.
__getattr__ = lazy_door(
    __name__,
    {
        "Change": "penstock.flow.changes",
        "Explanation": "penstock.flow.explain",
        "Hub": "penstock.hub",
        "Notification": "penstock.client",
        "Op": "penstock.flow.changes",
        "PenstockError": "penstock.errors",
        "Subscription": "penstock.delivery.subscription",
    },
)
