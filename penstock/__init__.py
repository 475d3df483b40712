"""Penstock: standing SQL queries at scale.

Subscriptions are SQL queries; publishers send changes; Penstock works out who must be told what
and tells each subscriber only what changed. Start with `Hub`.
"""

from penstock.client import Notification
from penstock.engine.changes import Change, Op
from penstock.engine.explain import Explanation
from penstock.errors import PenstockError
from penstock.hub import Hub
from penstock.subscription import Subscription

__all__ = [
    "Change",
    "Explanation",
    "Hub",
    "Notification",
    "Op",
    "PenstockError",
    "Subscription",
]
