"""What is checked before a statement is parsed: size, characters, number of tokens, depth.

The parser is recursive and was not made for hostile input. Everything it could choke on is
refused here, on the flat list of tokens, in time linear in the length of the text.
"""

from __future__ import annotations

import re

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType

from penstock.errors import SqlError

MAX_BYTES = 256 * 1024
MAX_TOKENS = 50_000
MAX_DEPTH = 32
"""Levels of parentheses, brackets, CASE, NOT and signs inside each other.

The parser needs about 21 frames of Python's stack for one level of parentheses; 32 levels fit
into the usual limit of 1,000 frames with room for the caller's own.
"""

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_PREFIX = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE}
_UNREADABLE = re.compile("[\0\ud800-\udfff]")
_UNCLOSED = re.compile(r"Missing (.+) from (\d+):(\d+)")


def read_tokens(sql: str) -> list[Token]:
    """The tokens of a statement that is safe to parse; SqlError if it is not."""
    _check_text(sql)
    try:
        tokens = DuckDB().tokenize(sql)
    except TokenError as error:
        raise _unreadable(sql, error) from None
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise SqlError("the statement is empty")
    if len(tokens) > MAX_TOKENS:
        raise SqlError(
            f"the statement has {len(tokens):,} words and signs; at most {MAX_TOKENS:,} are read"
        )
    _check_depth(sql, tokens)
    return tokens


def _check_text(sql: str) -> None:
    # Characters are counted first: encoding a text of gigabytes only to refuse it is a waste.
    size = len(sql) if len(sql) > MAX_BYTES else len(sql.encode(errors="replace"))
    if size > MAX_BYTES:
        raise SqlError(
            f"the statement is too long: {size:,} bytes, at most {MAX_BYTES:,} are read",
            hint="large data is published, not written into statements",
        )
    bad = _UNREADABLE.search(sql)
    if bad is not None:
        what = "a NUL character" if bad.group() == "\0" else "a lone surrogate"
        raise SqlError(f"the statement contains {what} at character {bad.start() + 1}")


def _check_depth(sql: str, tokens: list[Token]) -> None:
    open_levels: list[int] = []  # for each open parenthesis: levels of prefixes before it
    prefixes = 0
    depth = 0
    for token in tokens:
        kind = token.token_type
        if kind in _OPENING:
            open_levels.append(prefixes)
            prefixes = 0
            depth += 1
        elif kind in _CLOSING:
            depth -= prefixes
            prefixes = 0
            if open_levels:
                depth -= 1 + open_levels.pop()
        elif kind in _PREFIX:
            prefixes += 1
            depth += 1
        elif kind in (TokenType.AND, TokenType.OR, TokenType.COMMA):
            depth -= prefixes
            prefixes = 0
        if depth > MAX_DEPTH:
            raise SqlError(
                f"the statement is nested more than {MAX_DEPTH} levels deep",
                hint="AND and OR need no parentheses around every pair; NOT NOT x is x",
                sql=sql,
                position=token.start,
                length=token.end - token.start + 1,
            )


def _unreadable(sql: str, error: TokenError) -> SqlError:
    found = _UNCLOSED.search(str(error.__cause__ or error))
    if found is None:
        return SqlError("the statement cannot be read", detail=str(error))
    mark, line, column = found.group(1), int(found.group(2)), int(found.group(3))
    lines = sql.split("\n")
    position = sum(len(one) + 1 for one in lines[: line - 1]) + column - 1
    return SqlError(f"a text that starts with {mark} never ends", sql=sql, position=position)
