"""Rows of a relation as they are stored and shown, and the catalog that knows since when."""

from __future__ import annotations

import math

import pytest

from penstock.catalog import Catalog, Column, DoubleType, IntegerType, Relation, StringType
from penstock.errors import CatalogError, ChangeError

STOCKS = Relation(
    "stocks",
    (
        Column("id", IntegerType(), nullable=False),
        Column("Symbol", StringType(4)),
        Column("per", DoubleType()),
    ),
    key=(0, 2),
)
TRADES = Relation("trades", (Column("volume", IntegerType()),), key=(), is_stream=True)


def test_a_row_is_stored_by_name_in_any_case() -> None:
    assert STOCKS.store_row({"SYMBOL": "GOOG", "Id": 4}) == (4, "GOOG", None)


def test_a_row_is_shown_with_declared_names() -> None:
    assert STOCKS.show_row((4, "GOOG", None)) == {"id": 4, "Symbol": "GOOG", "per": None}


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"id": 1, "price": 5}, "table stocks has no column price"),
        ({"id": 1, "ID": 1}, "column ID of stocks is given twice"),
        ({"symbol": "A"}, "column id of stocks must not be NULL"),
        ({"id": 1, "symbol": "GOOGLE"}, "column Symbol of stocks: 'GOOGLE' is not a VARCHAR(4)"),
    ],
)
def test_a_row_that_does_not_fit(values: dict[str, object], reason: str) -> None:
    with pytest.raises(ChangeError) as caught:
        STOCKS.store_row(values)
    assert caught.value.primary == reason


def test_equal_keys_are_equal_whatever_their_spelling() -> None:
    assert STOCKS.key_of((1, "A", 0.0), 7) == STOCKS.key_of((1, "B", -0.0), 8)
    assert STOCKS.key_of((1, "A", math.nan), 7) == STOCKS.key_of((1, "A", -math.nan), 7)
    assert STOCKS.show_key(STOCKS.key_of((1, "A", 2.5), 7)) == {"id": 1, "per": 2.5}


def test_an_event_without_a_key_is_known_by_its_offset() -> None:
    assert TRADES.key_of((5,), 7) == (7,)
    assert TRADES.show_key((7,)) == {"offset": 7}


def test_the_catalog_knows_since_when() -> None:
    catalog = Catalog()
    catalog.add(STOCKS, 3)
    assert catalog.get("STOCKS") is STOCKS
    assert catalog.get("stocks", 3) is None
    assert catalog.get("stocks", 4) is STOCKS
    assert catalog.get("trades") is None
    assert catalog["Stocks"] is STOCKS
    assert (catalog.names(), len(catalog), list(catalog)) == (["stocks"], 1, [STOCKS])


def test_a_name_is_declared_once() -> None:
    catalog = Catalog()
    catalog.add(STOCKS, 0)
    with pytest.raises(CatalogError, match="table Stocks already exists"):
        catalog.check_new(Relation("Stocks", STOCKS.columns, (0,)))
