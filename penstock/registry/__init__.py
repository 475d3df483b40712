"""Tables, streams and subscriptions, kept in SQLite and derived from the log."""

from penstock.registry.commands import MAX_SUBSCRIPTIONS_AT_ONCE
from penstock.registry.leases import Lease, Leases
from penstock.registry.records import (
    LEASE_RAN_OUT,
    Subscribed,
    Withdrawal,
    owner_name,
    renew_body,
    renewed,
    replan_body,
    replan_of,
    statement_bytes,
    subscribe_body,
    subscribed,
    withdraw_body,
    withdrawn,
)
from penstock.registry.registry import Registry, rebuild
from penstock.registry.subscriptions import StoredSubscription, SubscriptionChanges

__all__ = [
    "LEASE_RAN_OUT",
    "MAX_SUBSCRIPTIONS_AT_ONCE",
    "Lease",
    "Leases",
    "Registry",
    "StoredSubscription",
    "Subscribed",
    "SubscriptionChanges",
    "Withdrawal",
    "owner_name",
    "rebuild",
    "renew_body",
    "renewed",
    "replan_body",
    "replan_of",
    "statement_bytes",
    "subscribe_body",
    "subscribed",
    "withdraw_body",
    "withdrawn",
]
