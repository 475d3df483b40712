"""The journal of a home's operators, in a SQLite file that the processes of a machine share."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from sqlite3 import Connection

from penstock.operators.journal import MAX_LEFT_OUT, LeftOut, add_version, find_version
from penstock.operators.shared_file import SharedFile

FORMAT = 1
OPERATOR_JOURNAL = "operator_journal.db"
"""In a home."""

_STATEMENTS = (
    "CREATE TABLE versions (operator TEXT, since INTEGER, version TEXT)",
    """CREATE TABLE left_out (subscription INTEGER, relation TEXT, key BLOB, shown_key TEXT,
    reason TEXT, PRIMARY KEY (subscription, relation, key))""",
    "CREATE INDEX by_row ON left_out (relation, key)",
)


class FileJournal:
    """In a file of a home. Versions recorded by another process become visible on the next open:
    they are recorded before a home is processed, and so before they are needed."""

    def __init__(self, path: Path) -> None:
        self._file = SharedFile(path, FORMAT, _STATEMENTS)
        self._versions: dict[str, list[tuple[int, str]]] | None = None

    def note_version(self, operator: str, version: str, since: int | None) -> None:
        def note(connection: Connection) -> None:
            connection.execute("BEGIN IMMEDIATE")
            known = _read_versions(connection).get(operator, [])
            if add_version(known, version, since):
                connection.execute("INSERT INTO versions VALUES (?, ?, ?)", (operator, *known[-1]))
            connection.execute("COMMIT")

        self._file.use(note, None)
        self._versions = None

    def version_at(self, operator: str, offset: int) -> str | None:
        return find_version(self._known(operator), offset)

    def has_changed(self, operator: str) -> bool:
        return len(self._known(operator)) > 1

    def _known(self, operator: str) -> list[tuple[int, str]]:
        if self._versions is None:
            nothing: dict[str, list[tuple[int, str]]] = {}
            self._versions = self._file.use(_read_versions, nothing)
        return self._versions.get(operator, [])

    def note_left_out(self, rows: Iterable[LeftOut]) -> None:
        noted = list(rows)

        def note(connection: Connection) -> None:
            (there,) = connection.execute("SELECT count(*) FROM left_out").fetchone()
            connection.executemany(
                "INSERT OR REPLACE INTO left_out VALUES (?, ?, ?, ?, ?)",
                noted[: max(0, MAX_LEFT_OUT - there)],
            )

        if noted:
            self._file.use(note, None)

    def forget_left_out(self, table: str, keys: Iterable[bytes]) -> None:
        def forget(connection: Connection) -> None:
            if connection.execute("SELECT 1 FROM left_out LIMIT 1").fetchone():
                delete = "DELETE FROM left_out WHERE relation = ? AND key = ?"
                connection.executemany(delete, [(table, key) for key in keys])

        self._file.use(forget, None)

    def left_out(self) -> list[LeftOut]:
        def read(connection: Connection) -> list[LeftOut]:
            order = "ORDER BY subscription, relation, key"
            return [LeftOut(*row) for row in connection.execute(f"SELECT * FROM left_out {order}")]

        return self._file.use(read, []) if self._file.path.exists() else []

    def close(self) -> None:
        self._file.close()


def journal_of(home: Path) -> FileJournal:
    """The journal of a home's operators."""
    return FileJournal(home / OPERATOR_JOURNAL)


def _read_versions(connection: Connection) -> dict[str, list[tuple[int, str]]]:
    found: dict[str, list[tuple[int, str]]] = {}
    rows = connection.execute("SELECT operator, since, version FROM versions ORDER BY rowid")
    for operator, since, version in rows:
        found.setdefault(operator, []).append((since, version))
    return found
