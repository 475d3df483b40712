"""Preflight checks before a run: damage that would otherwise go unnoticed.

All other damage is detected when it is read, and `penstock verify` reads everything.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

from penstock.catalog import Catalog
from penstock.errors import CorruptionError, HomeError
from penstock.registry import (
    HomeOperators,
    Registry,
    StoredCatalog,
    relation_row,
    relations,
)
from penstock.storage import Home, RecordKind

_DDL = frozenset({RecordKind.DDL})
_REBUILD = "make it again from the log: penstock rebuild {home}"


def check_before_run(home: Home) -> None:
    """CorruptionError if records, the last messages or tables are not as they were written."""
    home.log.check_end()
    frontier = home.messages.frontier
    if frontier is not None and frontier != home.messages.base:
        home.messages.read(frontier)
    _check_tables(home)


def check_operators(home: Home) -> None:
    """OperatorError, by name, if an operator that subscriptions call is missing. The versions found
    are recorded as those in use from the end of the message log on."""
    registry = Registry(home)
    catalog = registry.catalog()
    names = registry.operators_in_use() if catalog.operators else ()
    if names:
        frontier = home.messages.frontier
        with closing(HomeOperators(registry.catalog, home.path)) as operators:
            operators.note_versions(names, 0 if frontier is None else frontier.end, catalog)


def _check_tables(home: Home) -> None:
    """SQLite detects inconsistent pages, but not a flipped bit inside a statement; and with a wrong
    column in a table, good events would end in quarantine.

    Every statement is compared with its own record only: reading a long log takes long.
    """
    end, logged = home.log.end, Catalog()
    for offset, _, _, sql, broken, plan, checksum in _stored_tables(home):
        record = next(home.log.read(offset, offset + 1, _DDL), None) if offset < end else None
        row = {} if record is None else relation_row(record, logged)
        logged_as = [row.get(name) for name in ("sql", "plan", "checksum")]
        if (logged_as, bool(row.get("broken"))) != ([sql, plan, checksum], bool(broken)):
            raise CorruptionError(
                f"{home.catalog_db} is damaged: its tables are not those of the log",
                detail="it is derived from the log, so nothing is lost",
                hint=_REBUILD.format(home=home.path),
            )


def _stored_tables(home: Home) -> list[tuple[Any, ...]]:
    try:
        catalog = StoredCatalog(home.catalog_db, shared=home.shared)
        try:
            return catalog.database.dump()[relations.name]
        finally:
            catalog.database.close()
    except HomeError as error:
        # SQLite does not say why it cannot read or write.
        rebuild = _REBUILD.format(home=home.path)
        error.hint = error.hint or f"is there room on that disk? if there is, {rebuild}"
        raise
