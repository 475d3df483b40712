"""Tables, streams and subscriptions, kept in SQLite and derived from the log."""

from typing import TYPE_CHECKING

from penstock.doors import lazy_door

if TYPE_CHECKING:
    from penstock.registry.commands import MAX_SUBSCRIPTIONS_AT_ONCE, Candidate, Command
    from penstock.registry.database import (
        SCHEMA_VERSION,
        DerivedDatabase,
        progress_table,
        remove_database,
    )
    from penstock.registry.decomposition_choice import Analysed
    from penstock.registry.leases import Clock, Lease, Leases, ran_out, read_clock
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
    from penstock.registry.registry_rows import from_rows, replan_row
    from penstock.registry.schema import relations
    from penstock.registry.stored_catalog import StoredCatalog, relation_row
    from penstock.registry.stored_registry import Registry, rebuild
    from penstock.registry.stored_subscription import (
        StoredSubscription,
        SubscriptionChanges,
        suspended,
    )

__all__ = [
    "LEASE_RAN_OUT",
    "MAX_SUBSCRIPTIONS_AT_ONCE",
    "SCHEMA_VERSION",
    "Analysed",
    "Candidate",
    "Clock",
    "Command",
    "DerivedDatabase",
    "Lease",
    "Leases",
    "Registry",
    "StoredCatalog",
    "StoredSubscription",
    "Subscribed",
    "SubscriptionChanges",
    "Withdrawal",
    "from_rows",
    "owner_name",
    "progress_table",
    "ran_out",
    "read_clock",
    "rebuild",
    "relation_row",
    "relations",
    "remove_database",
    "renew_body",
    "renewed",
    "replan_body",
    "replan_of",
    "replan_row",
    "statement_bytes",
    "subscribe_body",
    "subscribed",
    "suspended",
    "withdraw_body",
    "withdrawn",
]

__getattr__ = lazy_door(
    __name__,
    {
        "commands": "Candidate Command MAX_SUBSCRIPTIONS_AT_ONCE",
        "database": "DerivedDatabase SCHEMA_VERSION progress_table remove_database",
        "decomposition_choice": "Analysed",
        "leases": "Clock Lease Leases ran_out read_clock",
        "records": (
            "LEASE_RAN_OUT Subscribed Withdrawal owner_name renew_body renewed replan_body "
            "replan_of statement_bytes subscribe_body subscribed withdraw_body withdrawn"
        ),
        "registry_rows": "from_rows replan_row",
        "schema": "relations",
        "stored_catalog": "StoredCatalog relation_row",
        "stored_registry": "Registry rebuild",
        "stored_subscription": "StoredSubscription SubscriptionChanges suspended",
    },
)
