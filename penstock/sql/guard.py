"""Checks before a statement is parsed: size, characters, number of tokens, depth.

The parser is recursive and was not made for hostile input. Everything it could choke on is refused
here, on the flat list of tokens, in linear time.
"""

from __future__ import annotations

import re

from sqlglot import Token, TokenError, TokenType

from penstock.errors import SqlError
from penstock.sql.dialect import DIALECT

MAX_BYTES = 256 * 1024
MAX_TOKENS = 50_000
MAX_BRACKETS = 1_000
"""The parser takes a quarter of a millisecond for each."""
MAX_NAME_LENGTH = 255
MAX_DEPTH = 32
"""Maximum nesting of parentheses, brackets, CASE, NOT and signs, plus links of a chain.

The parser needs about 21 Python stack frames per level of parentheses; 32 levels fit into the
default limit of 1,000 frames with room for the caller's own.
"""

LINK_LEVELS = 8
"""The weight of a link of x[1][1]... and x.f(1).f(1)...: the parser starts over at each of them,
and takes minutes for a few thousand. No subscription needs any."""

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_PREFIX = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE}
_CHAINING = {TokenType.L_BRACKET, TokenType.DOT}
_SEPARATING = {TokenType.AND, TokenType.OR, TokenType.COMMA}
_OPERANDS = {TokenType.NUMBER, TokenType.STRING, TokenType.VAR, TokenType.IDENTIFIER}
_NAMES = {TokenType.VAR, TokenType.IDENTIFIER}
_EXPECTING = {TokenType.COMMA, TokenType.ALIAS, TokenType.DOT, TokenType.PLUS, TokenType.DASH}
_STARTING = {TokenType.SELECT, TokenType.FROM, TokenType.WHERE, TokenType.L_PAREN}
_ENDING = {TokenType.FROM, TokenType.WHERE, TokenType.R_PAREN, TokenType.JOIN, TokenType.COMMA}
_ENDING |= {TokenType.INNER, TokenType.CROSS, TokenType.NATURAL, TokenType.LEFT, TokenType.RIGHT}
_UNREADABLE = re.compile("[\0\ud800-\udfff]")
_UNCLOSED = re.compile(r"Missing (.+) from \d+:(\d+)", re.DOTALL)


def read_tokens(sql: str) -> list[Token]:
    """The tokens of a statement that is safe to parse; SqlError if it is not."""
    _check_text(sql)
    try:
        tokens = DIALECT.tokenize(sql)
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
    brackets = sum(token.token_type == TokenType.L_BRACKET for token in tokens)
    if brackets > MAX_BRACKETS:
        raise SqlError(f"the statement has {brackets:,} brackets; lists are not supported")
    _check_words(sql, tokens)
    return tokens


def _check_text(sql: str) -> None:
    # Characters are counted first: a text of gigabytes should not be encoded.
    size = len(sql) if len(sql) > MAX_BYTES else len(sql.encode(errors="replace"))
    if size > MAX_BYTES:
        raise SqlError(
            f"the statement is too long: {size:,} bytes, at most {MAX_BYTES:,} are read",
            hint="large data is published, not written into statements",
        )
    bad = _UNREADABLE.search(sql)
    if bad is not None:
        what = "a NUL character" if bad.group() == "\0" else "a lone surrogate"
        raise SqlError(f"the statement contains {what}", detail=f"at character {bad.start() + 1}")


def _check_depth(sql: str, tokens: list[Token]) -> None:
    """Parentheses end where they are closed, prefixes and chains where their expression does."""
    enclosing: list[int] = []  # for each open parenthesis, the prefixes before it
    prefixes = 0
    total = 0
    before = TokenType.SEMICOLON
    for token in tokens:
        kind = token.token_type
        if kind in _CHAINING and before in _CLOSING:
            prefixes += LINK_LEVELS
            total += LINK_LEVELS
        if kind in _OPENING:
            enclosing.append(prefixes)
            prefixes = 0
            total += 1
        elif kind in _CLOSING and enclosing:
            total -= prefixes + 1
            prefixes = enclosing.pop()
        elif kind in _PREFIX and before not in _OPERANDS:
            prefixes += 1
            total += 1
        elif kind in _SEPARATING:
            total -= prefixes
            prefixes = 0
        before = kind
        if total > MAX_DEPTH:
            raise _at(
                token,
                sql,
                f"the statement is nested more than {MAX_DEPTH} levels deep",
                "AND and OR need no parentheses around every pair; NOT NOT x is x",
            )


def _check_words(sql: str, tokens: list[Token]) -> None:
    """One statement, with names of sensible length, and no comma, AS or dot with nothing after it.

    The parser would silently drop them.
    """
    count = 1
    for i, token in enumerate(tokens):
        kind = token.token_type
        before = tokens[i - 1].token_type if i else None
        behind = tokens[i + 1].token_type if i + 1 < len(tokens) else None
        if kind in _EXPECTING and (behind is None or _is_ending(tokens, i + 1)):
            raise _at(token, sql, f"syntax error: nothing follows {token.text}")
        alone = before is None or before in _STARTING
        joining = kind in (TokenType.COMMA, TokenType.ALIAS)
        if alone and (joining or (kind == TokenType.DOT and behind in _NAMES)):
            raise _at(token, sql, f"syntax error: nothing precedes {token.text}")
        if kind in _NAMES and len(token.text) > MAX_NAME_LENGTH:
            raise _at(token, sql, f"a name has at most {MAX_NAME_LENGTH} characters")
        count += kind == TokenType.SEMICOLON
    if count > 1:
        raise SqlError(
            f"one statement is expected, {count} were given", hint="send the statements one by one"
        )


def _is_ending(tokens: list[Token], i: int) -> bool:
    """Whether a token ends a list; left(...) and right(...) are functions."""
    opens = i + 1 < len(tokens) and tokens[i + 1].token_type == TokenType.L_PAREN
    kind = tokens[i].token_type
    return kind in _ENDING and not (opens and kind in (TokenType.LEFT, TokenType.RIGHT))


def _at(token: Token, sql: str, primary: str, hint: str = "") -> SqlError:
    length = token.end - token.start + 1
    return SqlError(primary, hint=hint, sql=sql, position=token.start, length=length)


def _unreadable(sql: str, error: TokenError) -> SqlError:
    found = _UNCLOSED.search(str(error.__cause__ or error))
    if found is None:
        return SqlError("the statement cannot be read", hint="is a comment never closed?")
    mark, start = found.group(1), int(found.group(2))
    return SqlError(f"the closing {mark} is missing", sql=sql, position=start, length=len(mark))
