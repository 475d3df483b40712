"""Plain comparisons are read at once: the same trees, with the same places, as the parser makes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError

from penstock.sql.dialect import DIALECT, PenstockParser


class _Unhurried(PenstockParser):
    """Descends through all levels of precedence for every comparison."""

    def _parse_plain_comparison(self) -> exp.Expr | None:
        return None


def _nodes(sql: str, parser: type[PenstockParser]) -> list[Any]:
    """Every node of the tree with what it holds; the error, if the text cannot be parsed."""
    try:
        tokens = DIALECT.tokenize(sql)
        read = parser(dialect=DIALECT, error_level=ErrorLevel.IMMEDIATE).parse(tokens, sql)
    except SqlglotError as error:
        return [str(error)]
    return [_shown(node) for tree in read if tree is not None for node in tree.walk()]


def _shown(node: exp.Expr) -> tuple[Any, ...]:
    own = {name: value for name, value in node.args.items() if not isinstance(value, exp.Expr)}
    shown = {name: value for name, value in own.items() if not isinstance(value, list)}
    return type(node), shown, node.meta, node.comments, node.arg_key


_VOCABULARY = """
a b price "a" x.y f(a) (a) current_date date interval null true :p ? $1
1 1.5 .5 1e3 0x1F 1_000 'x' 'it''s' 'a' e'n'
= <> != < <= > >= == <=> := => || + - * [1] ::int ( ) , ; -- /*c*/
case end not and or is in like between distinct from at time zone collate escape
"""
_WORDS = st.sampled_from(_VOCABULARY.split())
_PLAIN = st.tuples(
    st.sampled_from(
        ["a", "b", "price", '"a"', "x.a", "current_date", "date", "a/*c*/", "a -- c\n"]
    ),
    st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">=", "==", "<=>", "= /*c*/", "LIKE"]),
    st.sampled_from(
        ["1", "1.50", "'x'", "'1' 'x'", "1e3", "-1", "1 /*c*/", "b", "NULL", "'x'::DATE"]
    ),
).map(" ".join)
_CONDITIONS = st.recursive(
    _PLAIN | st.lists(_WORDS, min_size=1, max_size=5).map(" ".join),
    lambda parts: st.one_of(
        st.tuples(parts, st.sampled_from([" AND ", " OR ", "\nAND ", ", "]), parts).map("".join),
        parts.map("NOT {}".format),
        parts.map("({})".format),
        parts.map("(({}) = (a < 1))".format),
        parts.map("CASE WHEN {} THEN 1 END > 0".format),
    ),
    max_leaves=6,
)


@given(condition=_CONDITIONS)
def test_trees_are_those_of_the_parser(condition: str) -> None:
    for sql in (f"SELECT * FROM t WHERE {condition}", f"SELECT {condition} FROM t"):
        assert _nodes(sql, PenstockParser) == _nodes(sql, _Unhurried)


@pytest.mark.parametrize(
    ("condition", "plain"),
    [
        ("a = 1", 1),
        ("a <> 'x' AND (b < 1.5)", 2),
        ("NOT a >= 1e3 OR b > 'it''s' AND c <= 0", 3),
        ("a = 1 + 1 AND x.a = 1 AND a = b", 0),
    ],
)
def test_plain_comparisons_are_recognised(
    condition: str, plain: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were none of them, the test above would compare the parser with itself."""
    found: list[exp.Expr] = []
    recognise = PenstockParser._parse_plain_comparison

    def counted(parser: PenstockParser) -> exp.Expr | None:
        one = recognise(parser)
        found.extend([one] if one is not None else [])
        return one

    monkeypatch.setattr(PenstockParser, "_parse_plain_comparison", counted)
    _nodes(f"SELECT * FROM t WHERE {condition}", PenstockParser)
    assert len(found) == plain
