"""What a database knows of a value: a query of SQLite as an operator.

`LookUp` makes an operator of any query; `owner_of` asks a small table of number plates that comes
with it. By contract the answer depends on arguments and version only, so the version of a look-up
in a file is a digest of the file: a changed table is a new version.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.errors import OperatorError
from penstock.operators.interface import Argument, ArgumentRow, Operator, Output
from penstock.operators.validation import MAX_BINDINGS
from penstock.operators.value_types import VARCHAR

PLATES = (
    ("BX-1041", "Harbour Taxi"),
    ("BX-2210", "Bronx Bakery"),
    ("KC-0007", "Ada Lovelace"),
    ("KC-0007", "Lovelace and Daughters"),
    ("NY-9000", "City Police"),
    ("QN-5512", "Island Freight"),
)
"""Number plates and owners, made up; a car can have two."""
_CREATE_PLATES = "CREATE TABLE plates (plate TEXT NOT NULL, owner TEXT NOT NULL)"


class LookUp(Operator):
    """The rows that a query returns, with the arguments for its `?`, are the bindings."""

    def __init__(
        self,
        name: str,
        query: str,
        arguments: Sequence[Argument],
        outputs: Sequence[Output],
        database: Path | None = None,
    ) -> None:
        """`database`: a file of SQLite, opened for reading only; None: the table of plates."""
        self.name = name
        self.query = query
        self.arguments = tuple(arguments)
        self.outputs = tuple(outputs)
        self.database = database
        self.cost_seconds = 1e-4
        self.version = "1" if database is None else digest_of(database)

    def set_up(self) -> None:
        self._connection = _plates() if self.database is None else _opened(self.database)

    def evaluate(self, rows: Sequence[ArgumentRow]) -> list[list[Any]]:
        return [
            self._connection.execute(self.query, row).fetchmany(MAX_BINDINGS + 1) for row in rows
        ]

    def __getstate__(self) -> dict[str, object]:
        """Without the connection, which belongs to the process that set it up."""
        return {name: value for name, value in vars(self).items() if name != "_connection"}


def digest_of(database: Path) -> str:
    try:
        with database.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]
    except OSError as error:
        raise OperatorError(
            f"the database {database} cannot be read", detail=str(error.strerror)
        ) from error


def _opened(database: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)


def _plates() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.execute(_CREATE_PLATES)
    connection.executemany("INSERT INTO plates VALUES (?, ?)", PLATES)
    return connection


owner_of = LookUp(
    "ownerOf",
    "SELECT owner FROM plates WHERE plate = ? ORDER BY owner",
    [Argument("plate", VARCHAR)],
    [Output("owner", VARCHAR)],
)
