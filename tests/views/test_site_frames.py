"""What sites say to each other comes back as it was, and nothing else is taken for it."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.documents.document import Document
from penstock.documents.evaluation import evaluate
from penstock.documents.patterns import TreePattern
from penstock.errors import NetworkError
from penstock.packing import pack
from penstock.views.site_frames import (
    AskState,
    Join,
    Locate,
    Located,
    Reached,
    SiteFrame,
    State,
    decode_site_frame,
    encode_site_frame,
)
from penstock.views.site_host import Batch, Gap, Hosted, Hosting, Read
from penstock.views.sites import Assign, Results
from tests.documents.strategies import documents, patterns

PLAIN: list[SiteFrame] = [
    Read(1, 2, 3, 4, 5),
    Gap(1, 9),
    Join("127.0.0.1:7", 30),
    Reached(3, 7),
    Locate(4),
    Located(4, True, True, None, 3, 9, (("a", -1, 2, False, ["StringType", None]),)),
    Located(4, True, False, "here", 3, 9, ()),
    AskState(),
    State({"views": 3}),
    Batch(7, (Results(1, 2, None, (1, "a"), 5, True), Results(1, 3, ()))),
]


@pytest.mark.parametrize("frame", PLAIN, ids=repr)
def test_frames_come_back(frame: SiteFrame) -> None:
    assert decode_site_frame(encode_site_frame(frame)) == frame


@given(patterns(), documents(depth=2))
def test_results_and_patterns_come_back(pattern: TreePattern, document: Document) -> None:
    rows = tuple(evaluate(pattern, document))
    batch = Batch(1, (Results(2, 3, rows, (4,), 5),))
    assert decode_site_frame(encode_site_frame(batch)) == batch
    hosted = Hosted(1, pattern, (Assign(0, ()), Assign(4, ((2, pattern),))))
    hosting = Hosting(5, (hosted,), {1: "a:1", 2: "b:2"})
    assert decode_site_frame(encode_site_frame(hosting)) == hosting


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        pack(7),
        pack([99]),
        pack([-1]),
        pack([0, 1, 2, 3]),
        pack([0, 1, 2, 3, 4, -5]),
        pack([0, "a", 2, 3, 4, 5]),
        pack([1, 1, [[1, 2]]]),
        pack([1, 1, [[1, 2, [[[0, 0]]], [], 0, False]]]),
        pack([3, 1, [[1, [], [[0, []]]]], {}]),
        pack([3, 1, [[1, [["a", -1, "/", True, False, None]], []]], {}]),
        pack([3, 1, [[1, [["a", 5, "/", True, False, None]], [[0, []]]]], {}]),
        pack([3, 1, [[1, [["a", -1, "?", True, False, None]], [[0, []]]]], {}]),
        pack([3, 1, [[1, [["a", -1, "/", True, False, ["<", "text"]]], [[0, []]]]], {}]),
        pack([4, 7, 30]),
        pack([7, 1, True, True, None, 1, 1, [["a"]]]),
    ],
)
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(NetworkError, match="cannot be read"):
        decode_site_frame(data)


@given(st.binary(max_size=60))
def test_any_bytes(data: bytes) -> None:
    with contextlib.suppress(NetworkError):
        decode_site_frame(data)
