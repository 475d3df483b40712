"""The text of one statement, its tokens, and errors that point into it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError
from sqlglot.tokens import Token

from penstock.errors import SqlError
from penstock.sql.guard import read_tokens

logging.getLogger("sqlglot").addHandler(logging.NullHandler())


class Source:
    """A statement that passed the guard. Raises every error about it, with its place."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.tokens: list[Token] = read_tokens(sql)

    def word(self, index: int) -> str:
        """The token at `index` in upper case; empty behind the end."""
        return self.tokens[index].text.upper() if index < len(self.tokens) else ""

    def parse(self, tokens: list[Token] | None = None) -> exp.Expr:
        """The only statement of the text."""
        dialect = DuckDB()
        parser = dialect.parser(error_level=ErrorLevel.IMMEDIATE)
        try:
            statements = parser.parse(tokens or self.tokens, self.sql)
        except ParseError as error:
            raise self._syntax_error(error) from None
        except SqlglotError as error:
            raise SqlError("the statement cannot be parsed", detail=str(error)) from None
        except RecursionError:
            raise SqlError(
                "the statement is nested too deeply", hint="remove parentheses that are not needed"
            ) from None
        found = [statement for statement in statements if statement is not None]
        if len(found) != 1:
            raise SqlError(
                f"one statement is expected, {len(found)} were given",
                hint="send the statements one by one",
            )
        return found[0]

    def _syntax_error(self, error: ParseError) -> SqlError:
        where = error.errors[0] if error.errors else {}
        highlight = str(where.get("highlight") or "")
        description = str(where.get("description") or "")
        position = self._offset(int(where.get("line") or 1), int(where.get("col") or 1), highlight)
        if description.startswith("Required keyword"):
            primary = f"something is missing at {highlight}"
        else:
            primary = f"syntax error at {highlight}" if highlight else "syntax error at the end"
        detail = description if "Expecting" in description else ""
        return SqlError(
            primary, detail=detail, sql=self.sql, position=position, length=max(1, len(highlight))
        )

    def _offset(self, line: int, column: int, highlight: str) -> int:
        """The parser counts lines from 1 and gives the column of a token's last character."""
        before = self.sql.split("\n")[: line - 1]
        return sum(len(one) + 1 for one in before) + column - max(1, len(highlight))

    def refuse(
        self, primary: str, at: exp.Expr | Token | None = None, *, detail: str = "", hint: str = ""
    ) -> SqlError:
        """An error that points at an expression or a token."""
        error = SqlError(primary, detail=detail, hint=hint)
        self.locate(error, at)
        return error

    def locate(self, error: SqlError, at: exp.Expr | Token | None) -> None:
        """Let an error point at an expression, unless it already points somewhere."""
        if error.position is not None or at is None:
            return
        start, end = (at.start, at.end) if isinstance(at, Token) else _span(at)
        if start is not None and end is not None:
            error.sql, error.position, error.length = self.sql, start, end - start + 1

    @contextmanager
    def pointing_at(self, expression: exp.Expr) -> Iterator[None]:
        """Errors that know no place get the place of this expression."""
        try:
            yield
        except SqlError as error:
            self.locate(error, expression)
            raise

    def token_of(self, *words: str) -> Token | None:
        """The first token with one of these words outside of quotes."""
        quoted = '"' + "'"
        return next(
            (
                token
                for token in self.tokens
                if token.text.upper() in words and self.sql[token.start] not in quoted
            ),
            None,
        )


def _span(expression: exp.Expr) -> tuple[int | None, int | None]:
    """The stretch of text an expression covers; of its surroundings, if it has no names."""
    spans: list[tuple[int, int]] = []
    here: exp.Expr | None = expression
    while here is not None and not spans:
        spans = [
            (part.meta["start"], part.meta["end"]) for part in here.walk() if "start" in part.meta
        ]
        here = here.parent
    if not spans:
        return None, None
    return min(start for start, _ in spans), max(end for _, end in spans)
