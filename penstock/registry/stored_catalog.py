"""catalog.db: the tables and streams that the log declares."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from sqlite3 import Connection
from typing import Any
from zlib import crc32

import msgspec

from penstock.catalog import Catalog, Relation
from penstock.catalog.plain import plain_relation, relation_from_plain
from penstock.catalog.signatures import Signature, plain_signature, signature_from_plain
from penstock.errors import PenstockError
from penstock.flow.faults import describe_fault, is_fault
from penstock.packing import pack, unpack
from penstock.registry.damage import damaged
from penstock.registry.database import DerivedDatabase
from penstock.registry.schema import CATALOG, relations
from penstock.storage import Record, RecordKind, RecordLog

_DDL = frozenset({RecordKind.DDL})
_UNREADABLE = (PenstockError, TypeError, ValueError, LookupError, msgspec.DecodeError)
_STORED = "SELECT offset, sql, plan, checksum FROM relations WHERE broken = ''"


class StoredCatalog:
    """The relations of a home. The `Catalog` it returns grows in place as the log does."""

    def __init__(self, path: Path | None, *, shared: bool = False) -> None:
        self.database = DerivedDatabase(path, CATALOG, shared=shared)
        self._catalog = Catalog()
        self._loaded_to = 0
        self._guard = threading.Lock()

    def load(self) -> Catalog:
        """All applied relations."""
        with self._guard, self.database.reading() as connection:
            applied = self.database.applied(connection)
            if applied == self._loaded_to:
                return self._catalog
            new = f"{_STORED} AND offset >= ? ORDER BY offset"
            self._add(self._catalog, connection.execute(new, (self._loaded_to,)))
            self._loaded_to = max(self._loaded_to, applied)
            return self._catalog

    def _add(self, catalog: Catalog, stored: Iterable[Sequence[Any]]) -> None:
        """Add relations as declared, without parsing their statements again."""
        for offset, sql, plan, checksum in stored:
            try:
                if _checksum(offset, sql, plan) != checksum:
                    raise ValueError("its checksum is wrong")
                catalog.add(_from_plain(unpack(plan)), offset)
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
            self._add(catalog, connection.execute(f"{_STORED} ORDER BY offset"))
            relations.insert(connection, [relation_row(record, catalog) for record in declared])
        self.database.set_applied(connection, to)


def relation_row(record: Record, catalog: Catalog) -> dict[str, object]:
    """The stored row of a DDL record; adds it to the catalog, which holds those before it."""
    sql, plan = record.body.decode(errors="replace"), b""
    try:
        relation = _declared(sql, catalog, record.offset)
        name, kind, broken = relation.name, relation.kind, ""
        plan = pack(_plain(relation))
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


def _plain(declared: Relation | Signature) -> object:
    if isinstance(declared, Signature):
        return plain_signature(declared)
    return plain_relation(declared)


def _from_plain(plain: Any) -> Relation | Signature:
    return signature_from_plain(plain) if isinstance(plain, dict) else relation_from_plain(plain)


def _checksum(*fields: object) -> int:
    """SQLite does not detect a flipped bit in a value."""
    return crc32(pack(fields))


def _declared(sql: str, catalog: Catalog, offset: int) -> Relation | Signature:
    from penstock.sql import parse_declaration  # lazy: a parser, which readers never need

    relation = parse_declaration(sql)
    catalog.add(relation, offset)
    return relation
