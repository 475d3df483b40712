"""Bound queries survive being stored."""

from __future__ import annotations

from penstock.packing import pack, unpack
from penstock.query import plain_query, query_from_plain
from penstock.sql import bind
from tests.sql.fixture_files import case_files, read_cases, read_schema


def test_stored_and_read_again() -> None:
    catalog = read_schema()
    cases = [case for path in case_files() for case in read_cases(path)]
    understood = [case for case in cases if case.expected.startswith("from ")]
    assert len(understood) > 100
    for case in understood:
        query = bind(case.sql, catalog)
        assert query_from_plain(unpack(pack(plain_query(query))), catalog) == query
