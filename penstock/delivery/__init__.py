"""The one read path: notifications of subscriptions from a cursor on, and the channels they take.

Loads without numba, pyarrow, sqlglot and pyspark: a reader or a broker needs none of them.
"""

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
