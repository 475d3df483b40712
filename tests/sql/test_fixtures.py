"""Every case of tests/fixtures/sql means what the file says."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.catalog import Catalog
from tests.sql.fixture_files import Case, case_files, meaning, read_cases, read_schema

CASES = [
    pytest.param(path, case, id=f"{path.stem}: {case.title}")
    for path in case_files()
    for case in read_cases(path)
]


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return read_schema()


@pytest.mark.parametrize(("path", "case"), CASES)
def test_meaning(path: Path, case: Case, catalog: Catalog) -> None:
    assert meaning(path, case.sql, catalog) == case.expected


def test_titles_are_distinct() -> None:
    for path in case_files():
        titles = [case.title for case in read_cases(path)]
        assert len(titles) == len(set(titles)), path.name
