"""The read path: notifications of subscriptions from a cursor on, and the channels they take.

Loads without numba, pyarrow, sqlglot and pyspark: a reader or a broker needs none of them.
"""

from typing import TYPE_CHECKING

from penstock.doors import lazy_door

if TYPE_CHECKING:
    from penstock.delivery.batches import SubscriptionBatches
    from penstock.delivery.channels import CallbackChannel, Channel
    from penstock.delivery.cursors import CursorState, DurableCursors
    from penstock.delivery.delivery import SubscriptionDelivery
    from penstock.delivery.descriptions import (
        Description,
        description_from_plain,
        plain_description,
    )
    from penstock.delivery.fanout import Cut, FanOut
    from penstock.delivery.feed import MessageFeed
    from penstock.delivery.home_documents import DocumentChange, HomeDocuments
    from penstock.delivery.home_views import (
        HomeViews,
        Selection,
        ShownColumn,
        TreeView,
        read_home_views,
        sample_documents,
        sample_rows,
    )
    from penstock.delivery.json_lines import JsonLinesChannel
    from penstock.delivery.marks import MARKS
    from penstock.delivery.reader import END, ReadProgress, SubscriptionReader
    from penstock.delivery.received import ReceivedSubscription, Step
    from penstock.delivery.registration import Registration
    from penstock.delivery.subscription import Subscription

__all__ = [
    "END",
    "MARKS",
    "CallbackChannel",
    "Channel",
    "CursorState",
    "Cut",
    "Description",
    "DocumentChange",
    "DurableCursors",
    "FanOut",
    "HomeDocuments",
    "HomeViews",
    "JsonLinesChannel",
    "MessageFeed",
    "ReadProgress",
    "ReceivedSubscription",
    "Registration",
    "Selection",
    "ShownColumn",
    "Step",
    "Subscription",
    "SubscriptionBatches",
    "SubscriptionDelivery",
    "SubscriptionReader",
    "TreeView",
    "description_from_plain",
    "plain_description",
    "read_home_views",
    "sample_documents",
    "sample_rows",
]

# Loaded on first use: a command that reads one subscription needs a third of it.
__getattr__ = lazy_door(
    __name__,
    {
        "batches": "SubscriptionBatches",
        "channels": "CallbackChannel Channel",
        "cursors": "CursorState DurableCursors",
        "delivery": "SubscriptionDelivery",
        "descriptions": "Description description_from_plain plain_description",
        "fanout": "Cut FanOut",
        "feed": "MessageFeed",
        "home_documents": "DocumentChange HomeDocuments",
        "home_views": (
            "HomeViews Selection ShownColumn TreeView read_home_views sample_documents sample_rows"
        ),
        "json_lines": "JsonLinesChannel",
        "marks": "MARKS",
        "reader": "END ReadProgress SubscriptionReader",
        "received": "ReceivedSubscription Step",
        "registration": "Registration",
        "subscription": "Subscription",
    },
)
