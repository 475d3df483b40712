"""Compares the SQLite files with the log they are derived from.

SQLite detects inconsistent pages, but not a flipped bit inside a value. So every row is compared
with the record it came from, and what is not in the log (the plan of a query) with its checksum.
Missing files and those of another version are created on the next use.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from penstock.catalog import Catalog
from penstock.errors import PenstockError, RecordError
from penstock.ingest import decode_taken
from penstock.maintenance.findings import Finding, damage, remark
from penstock.registry import (
    SCHEMA_VERSION,
    Lease,
    Subscribed,
    from_rows,
    relation_row,
    renewed,
    replan_of,
    replan_row,
    subscribed,
    withdrawn,
)
from penstock.spaces import Replan
from penstock.storage import Home, Record, RecordKind, set_aside_of

_REBUILD = "make it again from the log: penstock rebuild {home}"
_KINDS = frozenset(
    {
        RecordKind.DDL,
        RecordKind.SUBSCRIBE,
        RecordKind.WITHDRAW,
        RecordKind.REPLAN,
        RecordKind.RENEW,
        RecordKind.TAKEN,
        RecordKind.SET_ASIDE,
    }
)


@dataclass
class Logged:
    """The tables and subscriptions according to the log."""

    statements: list[Record] = field(default_factory=list)
    subscribed: dict[int, Subscribed] = field(default_factory=dict)
    withdrawn: dict[int, tuple[int, str]] = field(default_factory=dict)
    """When, and why."""
    leases: list[tuple[int, int, Lease]] = field(default_factory=list)
    """(offset, subscription, lease) of every renewal."""
    replanned: list[Replan] = field(default_factory=list)
    taken: list[Record] = field(default_factory=list)
    aside: dict[int, int] = field(default_factory=dict)
    """Records that are not processed, and the first record that says so."""

    @classmethod
    def of(cls, home: Home, end: int) -> Logged:
        logged = cls()
        for record in home.log.read(0, end, _KINDS):
            try:
                logged._note(record)
            except RecordError:  # the registry sets it aside
                logged.aside.setdefault(record.offset, record.offset)
        return logged

    def _note(self, record: Record) -> None:
        match record.kind:
            case RecordKind.DDL:
                self.statements.append(record)
            case RecordKind.SUBSCRIBE:
                self.subscribed[record.offset] = _subscribed(record.body)
            case RecordKind.TAKEN:
                self.taken.append(record)
            case RecordKind.REPLAN:
                self.replanned.append(replan_of(record))
            case RecordKind.RENEW:
                self.leases.append((record.offset, *renewed(record.body)))
            case RecordKind.SET_ASIDE:
                found = set_aside_of(record)
                if found is not None:
                    self.aside.setdefault(found.offset, record.offset)
            case _:
                gone = withdrawn(record.body)
                self.withdrawn[gone.id] = (record.offset, gone.reason)

    def aside_before(self, applied: int) -> set[int]:
        return {one for one, said in self.aside.items() if said < applied}


def _subscribed(body: bytes) -> Subscribed:
    try:
        return subscribed(body)
    except PenstockError:
        return Subscribed("")  # of another release: the registry lists it as broken


def check_databases(home: Home, logged: Logged, log_end: int, copies: Home) -> Iterator[Finding]:
    """Compare the databases, given by their `copies`, with the log."""
    for path, compare in (
        (home.catalog_db, _catalog),
        (home.registry_db, _registry),
        (home.sources_db, _sources),
    ):
        if path == home.sources_db and not path.exists():
            continue  # exists only if files were ingested
        if not path.exists():
            yield remark(path, "it is not there", "it is made from the log at the next use")
            continue
        wrong = _wrong(copies.catalog_db.with_name(path.name), logged, log_end, compare)
        if wrong == _OTHER_VERSION:
            yield remark(path, wrong, "it is made from the log at the next use")
        elif wrong:
            yield damage(path, wrong, _REBUILD.format(home=home.path))


def _wrong(path: Path, logged: Logged, log_end: int, compare: Any) -> str:
    if not path.exists():
        return "it cannot be read"
    try:
        with closing(sqlite3.connect(path)) as database:
            return _check(database, logged, log_end, compare)
    except (sqlite3.Error, PenstockError, msgspec.MsgspecError) as error:
        return str(error).partition("\n")[0]
    except (TypeError, ValueError, LookupError) as error:
        return f"a value in it cannot be read ({error})"


_OTHER_VERSION = "another release made it"


def _check(database: sqlite3.Connection, logged: Logged, log_end: int, compare: Any) -> str:
    """What is wrong with a file; empty if nothing is."""
    verdict = database.execute("PRAGMA integrity_check").fetchone()[0]
    if verdict != "ok":
        return f"SQLite finds it damaged: {verdict.splitlines()[0]}"
    if database.execute("PRAGMA user_version").fetchone()[0] != SCHEMA_VERSION:
        return _OTHER_VERSION
    progress = database.execute("SELECT one, applied FROM progress").fetchall()
    if len(progress) != 1 or not isinstance(progress[0][1], int):
        return "it does not say how much of the log it knows"
    applied = progress[0][1]
    if applied > log_end:
        return f"it has seen {applied} records, but the log has only {log_end}"
    wrong: str = compare(database, logged, applied)
    return wrong


def _catalog(database: sqlite3.Connection, logged: Logged, applied: int) -> str:
    catalog = Catalog()
    derived = (relation_row(one, catalog) for one in logged.statements if one.offset < applied)
    expected = [tuple(row.values()) for row in derived]
    columns = "offset, name, kind, sql, broken, plan, checksum"
    rows = database.execute(f"SELECT {columns} FROM relations ORDER BY offset")
    return "" if rows.fetchall() == expected else "its tables are not those of the log"


def _registry(database: sqlite3.Connection, logged: Logged, applied: int) -> str:
    columns = """id, sql, owner, withdrawn_at, ended_by, lease_seconds, expires_ms, plan, broken,
        decomposition, initial, ticket_hash, checksum, suspended"""
    rows = database.execute(f"SELECT {columns} FROM subscriptions ORDER BY id")
    found = from_rows(rows)  # raises if a checksum is wrong
    expected = {number: said for number, said in logged.subscribed.items() if number < applied}
    for offset, number, lease in logged.leases:
        if offset < applied and number in expected:
            expected[number] = expected[number]._replace(lease=lease)
    if {one.id: one.said for one in found} != expected:
        return "its subscriptions are not those of the log"
    for one in found:
        ended = logged.withdrawn.get(one.id)
        known = ended if ended is not None and ended[0] < applied else (None, "")
        if (one.withdrawn_at, one.ended_by) != known:
            return f"when subscription {one.id} was withdrawn is not as the log says"
    aside = logged.aside_before(applied)
    rows = database.execute("SELECT offset FROM set_aside")
    is_aside = {one.id for one in found if one.suspended}
    if {offset for (offset,) in rows} != aside or is_aside != aside & expected.keys():
        return "the records that it sets aside are not those of the log"
    rows = database.execute("SELECT offset, subscription, decomposition FROM replans")
    kept = [one for one in logged.replanned if one.offset < applied and one.offset not in aside]
    moved = [tuple(replan_row(one).values()) for one in kept]
    return "" if sorted(rows) == moved else "its decompositions are not those of the log"


def _sources(database: sqlite3.Connection, logged: Logged, applied: int) -> str:
    expected: dict[tuple[str, str], tuple[object, ...]] = {}
    for record in logged.taken:
        if record.offset < applied:
            body = decode_taken(record.body)
            rest = (body.events, int(body.complete), body.refused, record.offset)
            expected[body.file, body.digest] = rest
    rows = database.execute("SELECT name, digest, events, complete, refused, offset FROM files")
    found = {(name, digest): tuple(rest) for name, digest, *rest in rows}
    return "" if found == expected else "the files it knows are not those of the log"
