"""Tables, streams and subscriptions, kept in SQLite and derived from the log."""

from penstock.registry.records import (
    statement_bytes,
    subscribe_body,
    subscribe_owner,
    subscribe_sql,
    withdraw_body,
    withdrawn_id,
)
from penstock.registry.registry import Registry, rebuild
from penstock.registry.subscriptions import StoredSubscription, SubscriptionChanges

__all__ = [
    "Registry",
    "StoredSubscription",
    "SubscriptionChanges",
    "rebuild",
    "statement_bytes",
    "subscribe_body",
    "subscribe_owner",
    "subscribe_sql",
    "withdraw_body",
    "withdrawn_id",
]
