"""Selections with a payload: contents equal DuckDB, payloads travel once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import Hub
from penstock.errors import SqlError
from penstock.joins import scheme_names
from penstock.joins.initial_regions import MANY_NEWCOMERS
from penstock.messages import Message, decode_message
from penstock.sql import ShapeBinder, bind
from penstock.storage import Home
from penstock.testing import LocalPipeline
from penstock.testing.oracle import Oracle, comparable
from penstock.testing.scenario import Define, Publish, Subscribe, Withdraw
from tests.differential.stories import SELECTIONS, Story, stories
from tests.examples import examples
from tests.pipeline.telling import Chorus, Teller, values_of

PAYLOADS = ("a", "b", "a, b")


@st.composite
def payload_stories(draw: st.DrawFn) -> Story:
    """Stories of selections, some of which name a payload."""
    story = draw(stories(SELECTIONS, max_steps=20))
    steps = []
    for step in story.steps:
        if isinstance(step, Subscribe) and draw(st.integers(0, 3)):
            rest = step.sql.split(" FROM ", 1)[1]
            hint = f"/*+ payload({draw(st.sampled_from(PAYLOADS))}) */"
            step = replace(step, sql=f"SELECT {hint} id, k, b AS z, a FROM {rest}")
        steps.append(step)
    return Story(steps)


def tell(story: Story, hub: Hub, oracle: Oracle) -> None:
    subscriptions = {}
    for step in story.steps:
        match step:
            case Define(sql):
                hub.execute(sql)
                oracle.define(list(hub.catalog)[-1])
            case Subscribe(name, sql):
                subscriptions[name] = hub.subscribe(sql)
            case Withdraw(name):
                hub.unsubscribe(subscriptions.pop(name))
            case Publish(changes):
                hub.apply(changes)
                for change in changes:
                    oracle.apply(change)
        for name, subscription in subscriptions.items():
            content = comparable(row.values() for row in subscription.content())
            assert content == oracle.content(subscription.sql), f"{name}: {subscription.sql}"
            for told in subscription.notifications():
                assert len(told.key) == 1  # a row is known by its own key, not by its payload


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(payload_stories())
def test_contents_equal_the_sql(story: Story) -> None:
    with Hub() as hub, Oracle() as oracle:
        tell(story, hub, oracle)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", scheme_names())
@settings(max_examples=examples(8))
@given(story=payload_stories())
def test_with_every_scheme(scheme: str, story: Story) -> None:
    with (
        mock.patch("penstock.joins.schemes.auto.SCANNED_POINTS", 0),
        Hub(scheme=scheme) as hub,
        Oracle() as oracle,
    ):
        tell(story, hub, oracle)


@pytest.mark.slow
@settings(max_examples=examples(30))
@given(
    story=payload_stories(), batch_rows=st.integers(1, 5), many=st.sampled_from([1, MANY_NEWCOMERS])
)
def test_through_the_stages_of_the_pipeline(
    tmp_path_factory: pytest.TempPathFactory, story: Story, batch_rows: int, many: int
) -> None:
    teller = Teller(Home.create(tmp_path_factory.mktemp("payload") / "home"))
    with Oracle() as oracle:
        chorus = Chorus(oracle, teller.registry)
        pipeline = LocalPipeline(teller.home, batch_rows, many_newcomers=many)
        for number, step in enumerate(story.steps):
            teller.tell([step])
            chorus.tell([step])
            if number % 3 == 0:
                pipeline.run()
        pipeline.run()
        contents = {name: teller.content(name) for name in teller.ids}
        named = {name: None if c is None else values_of(c) for name, c in contents.items()}
        assert named == chorus.contents()


PHOTO = "p" * 5_000
PRODUCTS = "CREATE TABLE products (id BIGINT PRIMARY KEY, rating INTEGER, photo VARCHAR)"
GOOD = "SELECT id, rating, photo FROM products WHERE rating >= 4"


def sent(home: Path) -> list[Message]:
    messages = Home.open(home).messages
    return [decode_message(data) for batch in messages.batches() for data in messages.read(batch)]


def carrying_photos(home: Path) -> int:
    return sum(m.row is not None and PHOTO in m.row for m in sent(home))


def test_a_payload_is_sent_to_those_who_do_not_have_it(tmp_path: Path) -> None:
    with Hub(tmp_path / "home") as hub:
        hub.execute(PRODUCTS)
        good = hub.subscribe(GOOD, payload="photo")
        hub.insert("products", {"id": 1, "rating": 4, "photo": PHOTO})
        assert carrying_photos(tmp_path / "home") == 1
        for rating in (5, 4, 6, 5):
            hub.update("products", {"id": 1, "rating": rating})
        hub.insert("products", {"id": 2, "rating": 9, "photo": PHOTO})
        assert carrying_photos(tmp_path / "home") == 1, "it was there already"
        assert {row["photo"] for row in good.content()} == {PHOTO}
        kinds = [one.kind for one in good.notifications()]
        assert kinds == ["insert", "update", "update", "update", "update", "insert"]
        # It is given up with the last row that has it, and sent again when there is one again.
        for number in (1, 2):
            hub.update("products", {"id": number, "rating": 1})
        assert good.content() == []
        hub.update("products", {"id": 1, "rating": 7})
        assert carrying_photos(tmp_path / "home") == 2
        hub.update("products", {"id": 1, "photo": None})
        assert good.content() == [{"id": 1, "rating": 7, "photo": None}]
        (last,) = good.notifications()[-1:]
        assert (last.kind, last.key) == ("update", ((1,),))


def test_explain_says_what_travels_apart() -> None:
    with Hub() as hub:
        hub.execute(PRODUCTS)
        good = hub.subscribe(GOOD, payload=["photo"])
        change = {"table": "products", "op": "insert", "row": {"id": 1, "rating": 5}}
        explained = hub.explain(good, change)
        assert explained.reaches
        assert explained.payload == ("photo",)
        assert "photo: sent apart from the row" in str(explained)


def test_statements_of_one_shape_keep_their_hints() -> None:
    with Hub() as hub:
        hub.execute(PRODUCTS)
        binder = ShapeBinder(hub.catalog)
        for hint in ("", "/*+ payload(photo) */"):
            for rating in (3, 4):
                sql = f"SELECT {hint} * FROM products WHERE rating > {rating}"
                query = binder.bind(sql)
                assert query == bind(sql, hub.catalog)
                assert len(query.nodes) == (2 if hint else 1)


def test_a_home_can_be_opened_again(tmp_path: Path) -> None:
    with Hub(tmp_path / "home") as hub:
        hub.execute("CREATE STREAM ratings (product INTEGER, rating INTEGER, photo VARCHAR)")
        number = hub.subscribe("SELECT * FROM ratings WHERE rating > 2", payload="photo").id
        hub.insert("ratings", {"product": 1, "rating": 3, "photo": PHOTO})
    with Hub(tmp_path / "home") as hub:
        hub.insert("ratings", {"product": 1, "rating": 4, "photo": PHOTO})
        assert [row["rating"] for row in hub.subscription(number).content()] == [3, 4]
    assert carrying_photos(tmp_path / "home") == 1


@pytest.mark.parametrize(
    ("sql", "payload", "reason"),
    [
        (GOOD, "logo", "has no column logo"),
        (GOOD, "id", "part of the primary key"),
        ("SELECT id FROM products", "photo", "is not selected"),
        ("SELECT * FROM products p JOIN products q USING (id)", "photo", "one table only"),
        ("SELECT /*+ payload(photo) */ * FROM products", "photo", "already named"),
        ("SELECT /*+ parallel(8) */ * FROM products", (), "is not understood"),
        (GOOD, "photo) */ x /*", "cannot be a payload"),
        ("VALUES (1)", "photo", "needs a SELECT"),
    ],
)
def test_what_cannot_be_a_payload_is_refused(
    sql: str, payload: str | tuple[str, ...], reason: str
) -> None:
    with Hub() as hub:
        hub.execute(PRODUCTS)
        with pytest.raises(SqlError, match=reason):
            hub.subscribe(sql, payload=payload)
