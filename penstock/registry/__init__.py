"""Tables, streams and subscriptions, kept in SQLite and derived from the log."""

from penstock.registry.records import (
    Subscribed,
    replan_body,
    replan_of,
    statement_bytes,
    subscribe_body,
    subscribed,
    withdraw_body,
    withdrawn_id,
)
from penstock.registry.registry import MAX_SUBSCRIPTIONS_AT_ONCE, Registry, rebuild
from penstock.registry.subscriptions import StoredSubscription, SubscriptionChanges

__all__ = [
    "MAX_SUBSCRIPTIONS_AT_ONCE",
    "Registry",
    "StoredSubscription",
    "Subscribed",
    "SubscriptionChanges",
    "rebuild",
    "replan_body",
    "replan_of",
    "statement_bytes",
    "subscribe_body",
    "subscribed",
    "withdraw_body",
    "withdrawn_id",
]
