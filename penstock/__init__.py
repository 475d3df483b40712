"""Penstock: standing SQL queries at scale.

Subscriptions are SQL queries; publishers send changes; Penstock works out who must be told what
and tells each subscriber only what changed. Start with `Hub`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.client import Notification
    from penstock.errors import PenstockError
    from penstock.flow.changes import Change, Op
    from penstock.flow.explain import Explanation
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

# Loaded when first asked for: a worker of the pipeline is one of a dozen processes, and should not
# spend a second on what only the Hub needs.
_HOMES = {
    "Change": "penstock.flow.changes",
    "Explanation": "penstock.flow.explain",
    "Hub": "penstock.hub",
    "Notification": "penstock.client",
    "Op": "penstock.flow.changes",
    "PenstockError": "penstock.errors",
    "Subscription": "penstock.subscription",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
