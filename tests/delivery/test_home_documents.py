"""Documents and views of a home, as its message log tells them; the Hub is the twin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import Hub
from penstock.delivery import (
    DocumentChange,
    HomeDocuments,
    TreeView,
    read_home_views,
    sample_documents,
    sample_rows,
)
from penstock.documents.document import parse_document
from penstock.documents.evaluation import evaluate, evaluate_through
from penstock.errors import CompactedError
from penstock.storage import BatchHeader, Home, MessageLog
from penstock.testing import LocalPipeline
from tests.service.news_home import PATHS, VIEWS, NewsHome, view_sql


class Followed:
    """What a follower has put together."""

    def __init__(self, home: Home, views: list[TreeView]) -> None:
        self.views = views
        self.documents = HomeDocuments(home, "news", 1)
        self.documents.follow(views)
        self.texts: dict[tuple[object, ...], str] = {}
        self.checked = 0

    def take(self, changes: list[DocumentChange]) -> None:
        for one in changes:
            self.texts.pop(one.key, None)
            if one.text is not None:
                self.texts[one.key] = one.text
                self._check_rows(one)

    def _check_rows(self, change: DocumentChange) -> None:
        """The nodes that the home has found lead to all matches."""
        assert change.text is not None
        document = parse_document(change.text)
        for view in self.views:
            if view.id in change.found:
                found = evaluate_through(view.pattern, document, change.found[view.id])
                assert found == evaluate(view.pattern, document)
                self.checked += 1

    def check(self, home: NewsHome) -> None:
        """All documents that there are."""
        rows = home.hub.subscribe("SELECT id, doc FROM news").content()
        assert self.texts == {(row["id"],): str(row["doc"]) for row in rows}


def followed(home: NewsHome, *numbers: int) -> Followed:
    opened = Home.open(home.path)
    views = read_home_views(opened).documents["news.doc"]
    return Followed(opened, [one for one in views if not numbers or one.id in numbers])


@pytest.mark.parametrize("seed", range(3))
def test_documents_are_followed(tmp_path: Path, seed: int) -> None:
    with NewsHome(tmp_path / "home", seed) as home:
        for sql in VIEWS[:5]:
            home.subscribe(sql)
        home.change(10)
        late = home.subscribe(VIEWS[5])
        one = followed(home)
        one.take(one.documents.new())
        one.check(home)
        for _ in range(5):
            home.change(4)
            one.take(one.documents.new())
            one.check(home)
        assert late in {view.id for view in one.views}


def test_a_log_that_is_read_again_tells_only_what_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a compaction, which takes the batches away that were read last."""
    with NewsHome(tmp_path / "home") as home:
        for sql in VIEWS[:3]:
            home.subscribe(sql)
        home.change(10)
        one = followed(home)
        one.take(one.documents.new())
        home.change(10)
        batches = MessageLog.batches

        def compacted(self: MessageLog, after: BatchHeader | None = None) -> Iterator[BatchHeader]:
            if after is not None:
                raise CompactedError("no longer there")
            return batches(self, after)

        monkeypatch.setattr(MessageLog, "batches", compacted)
        one.take(one.documents.new())
        monkeypatch.undo()
        one.check(home)
        home.change(3)
        one.take(one.documents.new())
        one.check(home)


def test_a_view_that_is_followed_later(tmp_path: Path) -> None:
    """What the home has found for it is looked up."""
    with NewsHome(tmp_path / "home") as home:
        home.subscribe(VIEWS[0])
        home.change(10)
        late = home.subscribe(VIEWS[1])
        home.change(5)
        one = followed(home, 1)
        one.take(one.documents.new())
        one.views = read_home_views(Home.open(home.path)).documents["news.doc"]
        assert [view.id for view in one.views] == [1, late]
        one.documents.follow(one.views)
        before = one.checked
        home.change(5)
        changes = one.documents.new()
        one.take(changes)
        assert one.checked == before + 2 * sum(change.text is not None for change in changes)
        one.check(home)
        one.documents.follow(one.views[1:])
        home.change(5)
        one.take(one.documents.new())
        one.check(home)


def test_rows_that_stay_when_their_document_changes(tmp_path: Path) -> None:
    """Nobody is told of them, and they are still there."""
    with NewsHome(tmp_path / "home") as home:
        number = home.subscribe(view_sql("//article", ("headline",)))
        article = "<article><headline>h</headline></article>"
        home.hub.insert("news", {"id": 1, "doc": f"<news>{article}</news>"})
        one = followed(home)
        one.take(one.documents.new())
        home.hub.update("news", {"id": 1, "doc": f"<news>{article}<x/></news>"})
        (change,) = one.documents.new()
        assert change.found == {number: frozenset({(2,)})}
        home.hub.update("news", {"id": 1, "doc": None})
        assert [change.text for change in one.documents.new()] == [None]


def test_the_pipeline_tells_the_same(tmp_path: Path) -> None:
    with NewsHome(tmp_path / "home") as home:
        for sql in VIEWS[:4]:
            home.subscribe(sql)
        home.change(8)
    opened = Home.open(home.path)
    views = read_home_views(opened).documents["news.doc"]
    by_hub = HomeDocuments(opened, "news", 1)
    by_hub.follow(views)
    expected = {one.key: (one.text, one.found) for one in by_hub.new() if one.text is not None}
    again = Home.create(tmp_path / "again")
    again.log.append([(record.kind, record.body) for record in opened.log.read(0)])
    LocalPipeline(again).run()
    by_pipeline = HomeDocuments(again, "news", 1)
    by_pipeline.follow(views)
    found = {one.key: (one.text, one.found) for one in by_pipeline.new() if one.text is not None}
    assert found == expected
    assert expected


def test_which_subscriptions_are_views(tmp_path: Path) -> None:
    with Hub(tmp_path / "home") as hub:
        hub.execute("CREATE TABLE news (id BIGINT PRIMARY KEY, day DATE, doc XML)")
        hub.execute("CREATE TABLE other (id BIGINT PRIMARY KEY, a INTEGER)")
        tree = view_sql(*PATHS[0])
        reasons = {
            hub.subscribe(tree).id: "",
            hub.subscribe(f"{tree} WHERE x.c0 = 'a'").id: "beside XMLTABLE",
            hub.subscribe(tree.replace("news.id", "news.day")).id: "it shows day",
            hub.subscribe("SELECT a FROM other WHERE a > 3").id: "",
            hub.subscribe("SELECT a FROM other WHERE a > 3 OR a < 1").id: "alternatives",
            hub.subscribe("SELECT a FROM other WHERE a + id > 3").id: "computes",
            hub.subscribe("SELECT a FROM other JOIN news ON other.id = news.id").id: "joins",
            hub.subscribe(tree, initial="none").id: "changes only",
        }
        hub.insert("other", {"id": 1, "a": 4})
        hub.insert("news", {"id": 1, "doc": "<article><headline>h</headline><author/></article>"})
    home = Home.open(tmp_path / "home")
    found = read_home_views(home)
    taken = [one.id for one in found.documents["news.doc"]]
    taken += [one.id for one in found.tables["other"]]
    assert taken == [number for number, reason in reasons.items() if not reason]
    for number, reason in reasons.items():
        assert reason in found.left_out.get(number, "")
    assert len(sample_documents(home, found.documents["news.doc"][0])) == 1
    assert sample_rows(home, "other") == [(1, 4)]
