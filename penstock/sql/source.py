"""The text of one statement, its tokens, and errors that point into it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sqlglot import ErrorLevel, ParseError, Token, exp
from sqlglot.errors import SqlglotError

from penstock.errors import SqlError
from penstock.sql.dialect import DIALECT
from penstock.sql.guard import read_tokens

_PARSER_BUGS = (SqlglotError, ValueError, TypeError, AttributeError, LookupError)
"""What the parser may raise besides a ParseError on unexpected text."""


class Source:
    """A statement that passed the guard. Raises every error about it, with its position."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.tokens = read_tokens(sql)
        self._tree: exp.Expr | None = None

    def word(self, index: int) -> str:
        """The token at `index` in upper case; empty after the end."""
        return self.tokens[index].text.upper() if index < len(self.tokens) else ""

    def parse(self, tokens: Sequence[Token] = ()) -> exp.Expr:
        """The only statement of the text (or of other tokens that replace it)."""
        parser = DIALECT.parser(error_level=ErrorLevel.IMMEDIATE)
        try:
            statements = parser.parse(list(tokens or self.tokens), self.sql)
        except ParseError as error:
            raise self._syntax_error(error) from None
        except _PARSER_BUGS as error:
            raise SqlError("the statement cannot be parsed", detail=str(error)) from None
        if len(statements) != 1 or statements[0] is None:
            raise SqlError("the statement cannot be parsed")
        self._tree = statements[0]
        return self._tree

    def _free_tree(self) -> None:
        """Cut the links from nodes to their parents, so that the tree is freed when it is dropped.

        As cycles, the trees of refused statements would wait for the garbage collector, which then
        takes seconds for a few long ones, within whatever comes next.
        """
        waiting: list[object] = [self._tree]
        self._tree = None
        while waiting:
            node = waiting.pop()
            if isinstance(node, exp.Expr):
                node.parent = None
                waiting.extend(node.args.values())
            elif isinstance(node, list):
                waiting.extend(node)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """For everything that is done with the tree: if the statement is refused, it is freed.

        The guard limits the depth, but the caller may have used up most of the stack.
        """
        try:
            yield
        except SqlError:
            self._free_tree()
            raise
        except RecursionError:
            self._free_tree()
            raise SqlError(
                "the statement is nested too deeply", hint="remove parentheses that are not needed"
            ) from None

    def _syntax_error(self, error: ParseError) -> SqlError:
        where = error.errors[0] if error.errors else {}
        highlight = str(where.get("highlight") or "")
        description = str(where.get("description") or "")
        # Lines are counted from 1; the column is that of the last character of the token.
        line, column = int(where.get("line") or 1), int(where.get("col") or 1)
        before = sum(len(one) + 1 for one in self.sql.split("\n")[: line - 1])
        position = before + column - max(1, len(highlight))
        near = highlight if len(highlight) <= 60 else f"{highlight[:57]}..."
        primary = f"syntax error at {near}"
        if description.startswith("Required keyword"):
            primary = f"syntax error: something is missing near {near}"
        elif description.startswith("Expecting"):
            primary = f"syntax error: {description[len('Expecting ') :]} expected near {near}"
        return SqlError(primary, sql=self.sql, position=position, length=max(1, len(highlight)))

    def refuse(
        self, primary: str, at: exp.Expr | Token | None = None, *, detail: str = "", hint: str = ""
    ) -> SqlError:
        """An error that points at an expression or a token."""
        error = SqlError(primary, detail=detail, hint=hint)
        self.locate(error, at)
        return error

    def locate(self, error: SqlError, at: exp.Expr | Token | None) -> None:
        """Set the position of an error to an expression or a token, unless it has one."""
        if error.position is not None or at is None:
            return
        if isinstance(at, exp.Expr):
            at = at if _words(at) else self.token_of(*_keywords(at)) or at
        span = (at.start, at.end) if isinstance(at, Token) else _span(at)
        if span is not None:
            error.sql, error.position, error.length = self.sql, span[0], span[1] - span[0] + 1

    def pointing_at(self, at: exp.Expr | Token | None) -> _PointingAt:
        """Errors without a position get this one."""
        return _PointingAt(self, at)

    def token_after(self, expression: exp.Expr) -> Token | None:
        """The token right after an expression."""
        span = _span(expression)
        return next((t for t in self.tokens if span is not None and t.start > span[1]), None)

    def token_of(self, *words: str) -> Token | None:
        """The first token that is one of these words, unquoted."""
        for token in self.tokens:
            if token.text.upper() in words and self.sql[token.start] not in "\"'":
                return token
        return None

    def word_before(self, expression: exp.Expr, *own: str) -> str:
        """The token before an expression, in upper case. `own`: words that it may begin with
        itself, since keywords have no position."""
        span = _span(expression)
        before = [token for token in self.tokens if span is not None and token.end < span[0]]
        words = [token.text.upper() for token in before]
        while words and words[-1] in own:
            words.pop()
        return words[-1] if words else ""


class _PointingAt:
    """A class, because a long statement has thousands of positions, and generators are slow."""

    __slots__ = ("at", "source")

    def __init__(self, source: Source, at: exp.Expr | Token | None) -> None:
        self.source = source
        self.at = at

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, SqlError):
            self.source.locate(error, self.at)


def _words(expression: exp.Expr) -> list[tuple[int, int]]:
    """The positions of the names and constants in an expression; keywords have none."""
    metas = [part.meta for part in expression.walk() if "start" in part.meta]
    return [(meta["start"], meta["end"]) for meta in metas]


def _keywords(expression: exp.Expr) -> list[str]:
    """The keywords of an expression without names and constants."""
    keywords = [expression.name.upper(), expression.key.upper()]
    if isinstance(expression, exp.Func):
        keywords += [name.upper() for name in expression.sql_names()]
    return [keyword for keyword in keywords if keyword]


def _span(expression: exp.Expr) -> tuple[int, int] | None:
    """The range of text of an expression, or of its parent if it has no words of its own."""
    here: exp.Expr | None = expression
    while here is not None:
        words = _words(here)
        if words:
            return min(start for start, _ in words), max(end for _, end in words)
        here = here.parent
    return None
