"""Checks for what the parser accepts although it is wrong, or drops silently.

It reads many dialects and is lenient: it accepts reserved words and strings as names, reads
`BETWEEN 1 2`, and forgets the star after a table. A subscription that does not mean what its text
says is worse than a refusal, so a parsed statement is checked against its text.
"""

from __future__ import annotations

from itertools import pairwise

from sqlglot import Token, TokenType, exp

from penstock.sql.source import Source

_WORDS = """
ALL ANALYSE ANALYZE AND ANTI ANY ARRAY AS ASC ASOF ASYMMETRIC BETWEEN BOTH CASE CAST CHECK
COLLATE COLUMN CONSTRAINT CREATE CROSS DEFAULT DEFERRABLE DESC DESCRIBE DISTINCT DO ELSE END
EXCEPT EXISTS FALSE FETCH FOR FOREIGN FROM FULL GLOB GROUP HAVING ILIKE IN INITIALLY INNER
INTERSECT INTO IS ISNULL JOIN LAMBDA LATERAL LEADING LEFT LIKE LIMIT NATURAL NOT NOTNULL NULL
OFFSET ON ONLY OR ORDER OUTER OVERLAPS PIVOT PLACING POSITIONAL PRIMARY QUALIFY REFERENCES
RETURNING RIGHT SELECT SEMI SHOW SIMILAR SOME SUMMARIZE SYMMETRIC TABLE TABLESAMPLE THEN TO
TRAILING TRUE UNION UNIQUE UNPIVOT USING VARIADIC WHEN WHERE WINDOW WITH
"""
RESERVED = frozenset(_WORDS.split())
"""Words that are names only in double quotes, as in DuckDB and nearly everywhere."""

_COUNTED = (
    (TokenType.STAR, "a star", (exp.Star, exp.Mul)),
    (TokenType.AND, "an AND", (exp.And, exp.Between)),
    (TokenType.OR, "an OR", (exp.Or,)),
)
"""Tokens that appear exactly as often as these expressions do."""

_BEFORE_ALL_COLUMNS = (TokenType.SELECT, TokenType.COMMA, TokenType.DOT)
"""After these tokens a star means all columns, elsewhere it multiplies."""


def check_names(source: Source, statement: exp.Expr) -> None:
    """Names are unreserved words, or are in double quotes."""
    for identifier in statement.find_all(exp.Identifier):
        start = identifier.meta.get("start")
        first = source.sql[start] if start is not None else '"'
        if first == "'":
            raise source.refuse(
                f"'{identifier.name}' is a string, and a name is expected here",
                identifier,
                hint="names stand in double quotes, or in none",
            )
        if not (first.isalpha() or first in '_"'):
            raise source.refuse(f"{identifier.name} is not a name", identifier)
        if first != '"' and identifier.name.upper() in RESERVED:
            raise source.refuse(
                f"{identifier.name} is a reserved word",
                identifier,
                hint=f'as a name it is written "{identifier.name}"',
            )


def check_nothing_dropped(source: Source, select: exp.Select) -> None:
    """Every star, AND and OR of the text is in the parsed statement, and vice versa."""
    parts = list(select.walk())
    for kind, what, expressions in _COUNTED:
        tokens = [token for token in source.tokens if token.token_type == kind]
        if len(tokens) != sum(isinstance(part, expressions) for part in parts):
            raise source.refuse(
                f"syntax error: {what} is missing or misplaced",
                tokens[-1] if tokens else source.token_of("WHERE"),
            )
    in_using = False
    before = None
    for token, following in pairwise(source.tokens):
        in_using = token.token_type == TokenType.USING or (
            in_using and token.token_type != TokenType.R_PAREN
        )
        mistake = _mistake(token, following, in_using)
        if token.token_type == TokenType.STAR and before in _BEFORE_ALL_COLUMNS:
            mistake = _mistake_after_star(following)
        if mistake:
            raise source.refuse(f"syntax error: {mistake}", token)
        before = token.token_type


def _mistake_after_star(following: Token) -> str:
    """What is wrong with the token after a star that means all columns."""
    if following.token_type in (TokenType.COMMA, TokenType.FROM):
        return ""
    return f"{following.text} behind *"


def _mistake(token: Token, following: Token, in_using: bool) -> str:
    """What is wrong with two adjacent tokens in a SELECT that the parser accepted."""
    kind, next_kind = token.token_type, following.token_type
    apart = token.end + 1 < following.start
    if kind == TokenType.NOT and token.text == "!":
        return "NOT is not written as !"
    if kind == TokenType.NULLSAFE_EQ:
        return "<=> is written IS NOT DISTINCT FROM"
    if kind == TokenType.NOT and next_kind == TokenType.IS:
        return "NOT before IS"
    if kind == next_kind == TokenType.STRING:
        return "two strings side by side"
    if kind == TokenType.USING and next_kind != TokenType.L_PAREN:
        return "( expected behind USING"
    if kind == TokenType.DOT and in_using:
        return "USING lists plain columns"
    if kind == TokenType.DOT and next_kind == TokenType.NUMBER and apart:
        return f"a space in the number .{following.text}"
    return ""
