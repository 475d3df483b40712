"""The tables of catalog.db and registry.db."""

from __future__ import annotations

from sqlalchemy import Column, Float, Index, Integer, LargeBinary, MetaData, String, Table

from penstock.registry.database import progress_table

CATALOG = MetaData()
progress_table(CATALOG)
relations = Table(
    "relations",
    CATALOG,
    Column("offset", Integer, primary_key=True),
    Column("name", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("sql", String, nullable=False),
    Column("broken", String, nullable=False),
    Column("plan", LargeBinary, nullable=False),
    Column("checksum", Integer, nullable=False),
)

REGISTRY = MetaData()
progress_table(REGISTRY)
subscriptions = Table(
    "subscriptions",
    REGISTRY,
    Column("id", Integer, primary_key=True),
    Column("sql", String, nullable=False),
    Column("owner", String),
    Column("withdrawn_at", Integer),
    Column("ended_by", String, nullable=False),
    Column("lease_seconds", Float),
    Column("expires_ms", Integer),
    Column("plan", LargeBinary, nullable=False),
    Column("broken", String, nullable=False),
    Column("decomposition", LargeBinary),
    Column("initial", String, nullable=False),
    Column("checksum", Integer, nullable=False),
    Column("suspended", String, nullable=False),
)
replans = Table(
    "replans",
    REGISTRY,
    Column("offset", Integer, primary_key=True),
    Column("subscription", Integer, nullable=False, index=True),
    Column("decomposition", LargeBinary, nullable=False),
)
set_aside = Table(
    "set_aside",
    REGISTRY,
    Column("offset", Integer, primary_key=True),
    Column("primary", String, nullable=False),
    Column("detail", String, nullable=False),
    Column("suspect", Integer),
)
Index(
    "withdrawals",
    subscriptions.c.withdrawn_at,
    sqlite_where=subscriptions.c.withdrawn_at.is_not(None),
)
Index(
    "expiries",
    subscriptions.c.expires_ms,
    sqlite_where=subscriptions.c.expires_ms.is_not(None) & subscriptions.c.withdrawn_at.is_(None),
)
