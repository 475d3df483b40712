"""Shared matching: both gears find exactly the patterns that match one by one."""

from __future__ import annotations

from typing import Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.documents import fast_matching
from penstock.documents.document import Document, parse_document
from penstock.documents.evaluation import matches
from penstock.documents.fast_matching import FastMatcher
from penstock.documents.pattern_states import PatternStates
from penstock.documents.patterns import PatternNode, TreePattern
from penstock.documents.plain_matching import PlainMatcher
from penstock.lab.workloads import xmark
from tests.documents.strategies import documents, patterns


class Matching(Protocol):
    def matching(self, document: Document) -> list[int]: ...


GEARS = pytest.mark.parametrize("gear", [PlainMatcher, FastMatcher])


def one_by_one(views: list[TreePattern], document: Document) -> list[int]:
    return [number for number, view in enumerate(views) if matches(view, document)]


@GEARS
@given(views=st.lists(patterns(most=6), max_size=30), many=st.lists(documents(), max_size=3))
def test_all_matching_patterns_are_found(
    gear: type[PlainMatcher], views: list[TreePattern], many: list[Document]
) -> None:
    matcher = gear(views)
    for document in many:
        assert matcher.matching(document) == one_by_one(views, document)


@GEARS
def test_views_over_auctions(gear: type[PlainMatcher]) -> None:
    views = xmark.unique_views(300, seed=3)
    matcher = gear(views)
    found = 0
    for text in xmark.documents(5, seed=4):
        document = parse_document(text)
        expected = one_by_one(views, document)
        assert matcher.matching(document) == expected
        found += len(expected)
    assert found > 100


def test_a_pool_that_is_too_small_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_matching, "_POOL", 1)
    views = xmark.unique_views(100, seed=3)
    matcher = FastMatcher(views)
    (text,) = xmark.documents(1, seed=4)
    document = parse_document(text)
    expected = one_by_one(views, document)
    assert matcher.matching(document) == expected
    assert matcher.matching(document) == expected


def test_equal_subtrees_are_one_state() -> None:
    leaf = PatternNode("b", 0)
    one = TreePattern((PatternNode("a", -1), leaf))
    other = TreePattern((PatternNode("c", -1, val=True), leaf))
    assert len(PatternStates.of([one, other, one]).states) == 3
