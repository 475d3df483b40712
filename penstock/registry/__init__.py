"""Tables, streams and subscriptions, kept in SQLite and derived from the log."""

from typing import TYPE_CHECKING

from penstock.doors import lazy_door

if TYPE_CHECKING:
    from penstock.registry.commands import MAX_SUBSCRIPTIONS_AT_ONCE, Candidate, Command
    from penstock.registry.database import (
        SCHEMA_VERSION,
        DerivedDatabase,
        Table,
        remove_database,
    )
    from penstock.registry.decomposition_choice import AnalysedStatistics
    from penstock.registry.installed_operators import declaring_installed
    from penstock.registry.leases import Clock, Lease, Leases, ran_out, read_clock
    from penstock.registry.left_out import rows_left_out
    from penstock.registry.operator_runtime import (
        HomeOperators,
        calls_of,
        check_signature,
        signature_of,
    )
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
    from penstock.registry.subscriber_commands import SubscriberCommands
    from penstock.registry.tickets import OWNER, Owner, Tickets, logged_ticket_hash

__all__ = [
    "LEASE_RAN_OUT",
    "MAX_SUBSCRIPTIONS_AT_ONCE",
    "OWNER",
    "SCHEMA_VERSION",
    "AnalysedStatistics",
    "Candidate",
    "Clock",
    "Command",
    "DerivedDatabase",
    "HomeOperators",
    "Lease",
    "Leases",
    "Owner",
    "Registry",
    "StoredCatalog",
    "StoredSubscription",
    "Subscribed",
    "SubscriberCommands",
    "SubscriptionChanges",
    "Table",
    "Tickets",
    "Withdrawal",
    "calls_of",
    "check_signature",
    "declaring_installed",
    "from_rows",
    "logged_ticket_hash",
    "owner_name",
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
    "rows_left_out",
    "signature_of",
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
        "database": "DerivedDatabase SCHEMA_VERSION Table remove_database",
        "decomposition_choice": "AnalysedStatistics",
        "installed_operators": "declaring_installed",
        "leases": "Clock Lease Leases ran_out read_clock",
        "left_out": "rows_left_out",
        "operator_runtime": "HomeOperators calls_of check_signature signature_of",
        "records": (
            "LEASE_RAN_OUT Subscribed Withdrawal owner_name renew_body renewed replan_body "
            "replan_of statement_bytes subscribe_body subscribed withdraw_body withdrawn"
        ),
        "registry_rows": "from_rows replan_row",
        "schema": "relations",
        "stored_catalog": "StoredCatalog relation_row",
        "stored_registry": "Registry rebuild",
        "stored_subscription": "StoredSubscription SubscriptionChanges suspended",
        "subscriber_commands": "SubscriberCommands",
        "tickets": "OWNER Owner Tickets logged_ticket_hash",
    },
)
