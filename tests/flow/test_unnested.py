"""One change of a document changes many rows of an unnested relation."""

from __future__ import annotations

import pkgutil
from collections import Counter

import pytest

from penstock import Hub, Subscription
from penstock.catalog import Catalog
from penstock.flow.changes import Delta
from penstock.flow.index import Index
from penstock.flow.plain import steps_of
from penstock.sql import bind, parse_declaration

JOINED = (
    "SELECT n.id, p.rank FROM news n, XMLTABLE('//a' PASSING n.doc COLUMNS a VARCHAR PATH '.', "
    "b INTEGER PATH '@b') AS x, people p WHERE x.a = p.name AND x.b > 1"
)


def joined_index() -> tuple[Catalog, Index]:
    catalog = Catalog()
    for sql in (
        "CREATE TABLE news (id BIGINT PRIMARY KEY, doc XML)",
        "CREATE TABLE people (name VARCHAR PRIMARY KEY, rank INTEGER)",
    ):
        catalog.add(parse_declaration(sql), 0)
    index = Index(catalog)
    index.add(1, bind(JOINED, catalog))
    return catalog, index


def document(*rows: tuple[int, str]) -> str:
    inner = "".join(f'<a b="{b}">{a}</a>' for b, a in rows)
    return f"<n>{inner}</n>"


def deltas_of(before: str | None, after: str | None) -> tuple[Index, list[Delta]]:
    catalog, index = joined_index()
    news = catalog["news"]
    old, new = (None if text is None else (7, text) for text in (before, after))
    table = index.derived.unnested(news)
    assert table is not None
    return index, table.deltas([Delta(5, news, (7,), old, new)])


def test_rows_that_stay_the_same_are_left_alone() -> None:
    text = document((1, "Ada"), (2, "Bob"))
    _, same = deltas_of(text, text)
    assert same == []
    _, gone = deltas_of(text, None)
    assert [(one.key, one.new) for one in gone] == [((7, "1.2"), None), ((7, "3.4"), None)]


def test_each_row_has_steps_of_its_own() -> None:
    """Messages of one position may be applied in any order; those of several rows must not be:
    a joining row that the first of them hides may be shown by the next."""
    index, run = deltas_of(
        document((1, "Ada"), (2, "Ada"), (3, "Bob")), document((2, "Ada"), (1, "Ada"), (3, "Cy"))
    )
    assert len(run) == 3
    for groups in steps_of(index, run).values():
        for steps in groups.values():
            places = [(step.offset, step.step) for step in steps]
            assert places == sorted(set(places))
        assert len(groups) == 3


def many_views(hub: Hub, count: int) -> list[Subscription]:
    queries = [
        f"SELECT id, x.v FROM news, XMLTABLE('//a[@b = {i % 50}]' PASSING doc "
        f"COLUMNS v VARCHAR PATH './/c{i}') AS x"
        for i in range(count)
    ]
    return [hub.subscribe(one) for one in queries]


def test_a_document_is_parsed_and_matched_once_for_all_subscriptions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By counting: one pass over a document, whoever subscribes; views that match are evaluated."""
    counted: Counter[str] = Counter()
    count_calls(monkeypatch, counted, "penstock.flow.unnested.parse_stored", "parsed")
    count_calls(monkeypatch, counted, "penstock.documents.unnesting.View.rows", "evaluated")
    for gear in ("plain_matching.PlainMatcher", "fast_matching.FastMatcher"):
        count_calls(monkeypatch, counted, f"penstock.documents.{gear}.matching", "matched")
    with Hub() as hub:
        hub.execute("CREATE TABLE news (id BIGINT PRIMARY KEY, place VARCHAR, doc XML)")
        subscriptions = many_views(hub, 300)
        counted.clear()
        hub.insert("news", {"id": 1, "doc": "<n><a b='7'><c7>x</c7><c57>y</c57></a></n>"})
        tiers = counted["matched"]
        assert tiers <= 8  # those of a few hundred views
        assert counted == {"parsed": 1, "matched": tiers, "evaluated": 2}
        assert [sum(map(len, (one.content(),))) for one in subscriptions].count(1) == 2
        counted.clear()
        hub.update("news", {"id": 1, "place": "here"})  # the document is the same
        assert counted == {"parsed": 1, "matched": tiers, "evaluated": 2}
        counted.clear()
        hub.update("news", {"id": 1, "doc": "<n><a b='8'><c8>x</c8></a></n>"})
        assert (counted["parsed"], counted["evaluated"]) == (2, 3)


def count_calls(
    monkeypatch: pytest.MonkeyPatch, counted: Counter[str], where: str, what: str
) -> None:
    module, _, name = where.rpartition(".")
    holder = pkgutil.resolve_name(module)
    call = getattr(holder, name)

    def counting(*arguments: object) -> object:
        counted[what] += 1
        return call(*arguments)

    monkeypatch.setattr(holder, name, counting)


def test_documents_that_are_not_read_are_no_part_of_rows() -> None:
    _, run = deltas_of(None, document((1, "Ada")))
    assert [one.new for one in run] == [(7, None, "1.2", "Ada", 1)]
    _, same = deltas_of(document((1, "Ada")), "<n><a b='1'>Ada</a><c/></n>")
    assert same == []
