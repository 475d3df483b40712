"""The tables of catalog.db and registry.db."""

from __future__ import annotations

from penstock.registry.database import Table

relations = Table(
    "relations",
    {
        "offset": "INTEGER PRIMARY KEY NOT NULL",
        "name": "TEXT NOT NULL",
        "kind": "TEXT NOT NULL",
        "sql": "TEXT NOT NULL",
        "broken": "TEXT NOT NULL",
        "plan": "BLOB NOT NULL",
        "checksum": "INTEGER NOT NULL",
    },
)
subscriptions = Table(
    "subscriptions",
    {
        "id": "INTEGER PRIMARY KEY NOT NULL",
        "sql": "TEXT NOT NULL",
        "owner": "TEXT",
        "withdrawn_at": "INTEGER",
        "ended_by": "TEXT NOT NULL",
        "lease_seconds": "REAL",
        "expires_ms": "INTEGER",
        "plan": "BLOB NOT NULL",
        "broken": "TEXT NOT NULL",
        "decomposition": "BLOB",
        "initial": "TEXT NOT NULL",
        "ticket_hash": "BLOB",
        "checksum": "INTEGER NOT NULL",
        "suspended": "TEXT NOT NULL",
    },
    indexes={
        "withdrawals": "(withdrawn_at) WHERE withdrawn_at IS NOT NULL",
        "expiries": "(expires_ms) WHERE expires_ms IS NOT NULL AND withdrawn_at IS NULL",
    },
)
replans = Table(
    "replans",
    {
        "offset": "INTEGER PRIMARY KEY NOT NULL",
        "subscription": "INTEGER NOT NULL",
        "decomposition": "BLOB NOT NULL",
    },
    indexes={"replanned": "(subscription)"},
)
set_aside = Table(
    "set_aside",
    {
        "offset": "INTEGER PRIMARY KEY NOT NULL",
        "primary": "TEXT NOT NULL",
        "detail": "TEXT NOT NULL",
        "suspect": "INTEGER",
    },
)

CATALOG = (relations,)
REGISTRY = (subscriptions, replans, set_aside)
