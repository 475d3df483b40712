"""Texts that spell numbers are texts: numpy and Python would read most of these as numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import Hub
from penstock.joins import scheme_names
from penstock.joins.array_codes import ArrayCodes, as_numbers
from penstock.testing.oracle import Oracle, comparable

WORDS = ["10115", " 5 ", "-5", "+5", "1_000", "٣", "1e5", "nan", "inf", "0x10", "true", ""]
PERSONS = "CREATE TABLE persons (id BIGINT PRIMARY KEY, k INTEGER, zip VARCHAR)"
SHOPS = "CREATE TABLE shops (id BIGINT PRIMARY KEY, k INTEGER, zip VARCHAR)"
QUERIES = [
    "SELECT * FROM persons WHERE zip = '{word}'",
    "SELECT * FROM persons JOIN shops USING (k) WHERE persons.zip <= '{word}'",
    "SELECT * FROM persons JOIN shops USING (k) WHERE shops.zip >= '{word}'",
    "SELECT * FROM persons p JOIN shops s ON p.zip = s.zip WHERE s.zip IN ('{word}', '7')",
]


@pytest.mark.parametrize("word", WORDS)
def test_words_are_not_taken_for_numbers(word: str) -> None:
    assert as_numbers([word]) is None
    assert as_numbers([5, None]) is None
    codes = ArrayCodes([word])
    assert codes.constant(0) == word
    assert codes.all_values([word, None, word + "0"]).tolist() == [1, -1, 2]


def told(hub: Hub, oracle: Oracle, sql: str, word: str) -> None:
    """A few rows with the word and others beside it, compared with DuckDB."""
    subscription = hub.subscribe(sql)
    for number, zipped in enumerate([word, None, "10116", word + "0"]):
        for table in ("persons", "shops"):
            row = {"id": number, "k": number % 2, "zip": zipped}
            hub.insert(table, row)
    for table in ("persons", "shops"):
        hub.delete(table, {"id": 3})
        hub.update(table, {"id": 1, "zip": word})
        relation = hub.catalog[table]
        oracle.load(relation, map(relation.store_row, hub.rows(table)))
    content = comparable(row.values() for row in subscription.content())
    assert content == oracle.content(sql)
    assert content


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("query", QUERIES)
def test_conditions_on_such_words(query: str, word: str) -> None:
    with Hub() as hub, Oracle() as oracle:
        hub.execute(PERSONS)
        hub.execute(SHOPS)
        told(hub, oracle, query.format(word=word), word)


@pytest.mark.parametrize("scheme", scheme_names())
def test_every_scheme(scheme: str) -> None:
    with Hub(scheme=scheme) as hub, Oracle() as oracle:
        hub.execute(PERSONS)
        hub.execute(SHOPS)
        told(hub, oracle, QUERIES[2].format(word="10115"), "10115")


def test_a_home_that_such_a_subscription_stopped_opens_again(tmp_path: Path) -> None:
    with Hub(tmp_path / "home") as hub:
        hub.execute(PERSONS)
        number = hub.subscribe("SELECT * FROM persons WHERE zip = '10115'").id
        hub.insert("persons", {"id": 1, "k": 1, "zip": "10115"})
    with Hub(tmp_path / "home") as hub:
        assert len(hub.subscription(number).content()) == 1
