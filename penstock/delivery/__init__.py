"""The one read path: notifications of subscriptions from a cursor on, and the channels they take.

Loads without numba, pyarrow, sqlglot and pyspark: a reader or a broker needs none of them.
"""

from typing import TYPE_CHECKING

from penstock.doors import lazy_door

if TYPE_CHECKING:
    from penstock.delivery.batches import SubscriptionBatches
    from penstock.delivery.channels import CallbackChannel, Channel
    from penstock.delivery.cursors import CursorState, DurableCursors
    from penstock.delivery.delivery import SubscriptionDelivery
    from penstock.delivery.fanout import Cut, FanOut
    from penstock.delivery.json_lines import JsonLinesChannel
    from penstock.delivery.reader import END, ReadProgress, SubscriptionReader
    from penstock.delivery.registration import Registration
    from penstock.delivery.subscription import Subscription

__all__ = [
    "END",
    "CallbackChannel",
    "Channel",
    "CursorState",
    "Cut",
    "DurableCursors",
    "FanOut",
    "JsonLinesChannel",
    "ReadProgress",
    "Registration",
    "Subscription",
    "SubscriptionBatches",
    "SubscriptionDelivery",
    "SubscriptionReader",
]

# Loaded when first asked for: a command that reads one subscription needs a third of it.
__getattr__ = lazy_door(
    __name__,
    {
        "batches": "SubscriptionBatches",
        "channels": "CallbackChannel Channel",
        "cursors": "CursorState DurableCursors",
        "delivery": "SubscriptionDelivery",
        "fanout": "Cut FanOut",
        "json_lines": "JsonLinesChannel",
        "reader": "END ReadProgress SubscriptionReader",
        "registration": "Registration",
        "subscription": "Subscription",
    },
)
