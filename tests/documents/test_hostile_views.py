"""Documents that are small, and would give an XMLTABLE more than there is memory for."""

from __future__ import annotations

from penstock import Hub

PAIRS = (
    "SELECT t.id, x.u, x.v FROM t, XMLTABLE('//a' PASSING doc "
    "COLUMNS u VARCHAR PATH '.', v {} PATH './/a') AS x"
)
LEVELS = 60


def nested(text: str) -> str:
    return "<a>" * LEVELS + text + "</a>" * LEVELS


def test_texts_within_texts_have_a_limit() -> None:
    """Every level has the text of all below it: 50 kB in 150 levels were a gigabyte."""
    with Hub() as hub:
        hub.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, doc XML)")
        pairs = hub.subscribe(PAIRS.format("VARCHAR"))
        parts = hub.subscribe(PAIRS.format("XML"))
        ids = hub.subscribe("SELECT id FROM t WHERE doc IS NOT NULL")
        hub.insert("t", {"id": 1, "doc": nested("x" * 100_000)})
        assert pairs.content() == parts.content() == []
        hub.update("t", {"id": 1, "doc": nested("x" * 50)})
        assert len(pairs.content()) == len(parts.content()) == LEVELS * (LEVELS - 1) // 2
        hub.update("t", {"id": 1, "doc": nested("x" * 100_000)})
        assert pairs.content() == parts.content() == []
        assert len(ids.content()) == 1
