"""catalog.db: the tables and streams that the log declares."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
from sqlalchemy import Connection, insert, select

from penstock.catalog import Catalog, Relation
from penstock.catalog.plain import plain_relation, relation_from_plain
from penstock.errors import PenstockError
from penstock.flow.faults import describe_fault, is_fault
from penstock.packing import pack, unpack
from penstock.registry.damage import damaged
from penstock.registry.database import DerivedDatabase
from penstock.registry.schema import CATALOG, relations
from penstock.storage import Record, RecordKind, RecordLog

_DDL = frozenset({RecordKind.DDL})
_UNREADABLE = (PenstockError, TypeError, ValueError, LookupError, msgspec.DecodeError)
_STORED = (relations.c.offset, relations.c.sql, relations.c.plan, relations.c.checksum)


class StoredCatalog:
    """The relations of a home. The `Catalog` it hands out grows in place as the log does."""

    def __init__(self, path: Path | None, *, shared: bool = False) -> None:
        self.database = DerivedDatabase(path, CATALOG, shared=shared)
        self._catalog = Catalog()
        self._loaded_to = 0
        self._guard = threading.Lock()

    def load(self) -> Catalog:
        """Everything that has been applied."""
        with self._guard, self.database.reading() as connection:
            applied = self.database.applied(connection)
            if applied == self._loaded_to:
                return self._catalog
            new = select(*_STORED).where(
                relations.c.offset >= self._loaded_to, relations.c.broken == ""
            )
            self._add(self._catalog, connection.execute(new.order_by(relations.c.offset)))
            self._loaded_to = max(self._loaded_to, applied)
            return self._catalog

    def _add(self, catalog: Catalog, stored: Iterable[Sequence[Any]]) -> None:
        """Relations as they were declared, without parsing their statements again."""
        for offset, sql, plan, checksum in stored:
            try:
                if _checksum(offset, sql, plan) != checksum:
                    raise ValueError("its checksum is wrong")
                catalog.add(relation_from_plain(unpack(plan)), offset)
            except (
                PenstockError,
                TypeError,
                ValueError,
                LookupError,
                msgspec.DecodeError,
            ) as error:
                why = f"the statement of offset {offset} is not as it was written ({error})"
                raise damaged(self.database.path, why.partition("\n")[0]) from error

    def apply(self, connection: Connection, log: RecordLog, to: int) -> None:
        """Apply the DDL before `to`, in the caller's transaction."""
        applied = self.database.applied(connection)
        if applied >= to:
            return
        declared = list(log.read(applied, to, _DDL))
        if declared:
            catalog = Catalog()
            known = select(*_STORED).where(relations.c.broken == "")
            self._add(catalog, connection.execute(known.order_by(relations.c.offset)))
            rows = [relation_row(record, catalog) for record in declared]
            connection.execute(insert(relations), rows)
        self.database.set_applied(connection, to)


def relation_row(record: Record, catalog: Catalog) -> dict[str, object]:
    """What is stored of a DDL record; the catalog, which holds those before it, grows."""
    sql, plan = record.body.decode(errors="replace"), b""
    try:
        relation = _declared(sql, catalog, record.offset)
        name, kind, broken = relation.name, relation.kind, ""
        plan = pack(plain_relation(relation))
    except PenstockError as error:  # accepted by another release
        name, kind, broken = "", "", str(error)
    except Exception as error:
        if not is_fault(error):
            raise
        name, kind, broken = "", "", describe_fault(error)
    return {
        "offset": record.offset,
        "name": name,
        "kind": kind,
        "sql": sql,
        "broken": broken,
        "plan": plan,
        "checksum": _checksum(record.offset, sql, plan),
    }


def _checksum(*fields: object) -> int:
    """SQLite itself does not notice a flipped bit in a value."""
    return crc32(pack(fields))


def _declared(sql: str, catalog: Catalog, offset: int) -> Relation:
    from penstock.sql import parse_relation  # a parser, which readers never need

    relation = parse_relation(sql)
    catalog.add(relation, offset)
    return relation
