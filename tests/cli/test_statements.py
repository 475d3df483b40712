"""Several statements in one text."""

from __future__ import annotations

import pytest

from penstock.cli.statements import split_statements


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  \n-- nothing\n/* at\nall */", []),
        ("SELECT 1", [("SELECT 1", 1)]),
        ("SELECT 1\n\n  SELECT 2  \n", [("SELECT 1", 1), ("SELECT 2", 3)]),
        ("SELECT 1;\n\nSELECT\n2;", [("SELECT 1", 1), ("SELECT\n2", 3)]),
        ("SELECT ';';SELECT 2", [("SELECT ';'", 1), ("SELECT 2", 1)]),
        ("SELECT 'it''s;';", [("SELECT 'it''s;'", 1)]),
        ('SELECT ";" FROM t;', [('SELECT ";" FROM t', 1)]),
        ("SELECT 1 -- not; yet\n+ 2;", [("SELECT 1 -- not; yet\n+ 2", 1)]),
        ("/* ; */ SELECT 1;;", [("/* ; */ SELECT 1", 1)]),
        ("SELECT 'never closed;", [("SELECT 'never closed;", 1)]),
    ],
)
def test_split(text: str, expected: list[tuple[str, int]]) -> None:
    assert [(one.sql, one.line) for one in split_statements(text)] == expected
