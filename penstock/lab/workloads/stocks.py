"""Stocks and analysts' reviews: the running example of select-join subscriptions, made big.

People look for stocks whose price/earnings ratio (per) lies in a range and that have reviews with a
rating in another range (Chandramouli and Yang, 2008). Their ranges are drawn around a few shared
themes. Prices wander, reviews are written, revised and withdrawn, and a few symbols are in the news
much more often than the others.

The workload knows its rows, and evaluates its queries in its own plain way, for comparison with
Penstock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from penstock.flow.changes import Change, Op
from penstock.lab.workloads.stock_texts import Random, draw_opinion, draw_symbols

CREATE_STOCKS = (
    "CREATE TABLE stocks (id BIGINT PRIMARY KEY, symbol VARCHAR NOT NULL, per DOUBLE NOT NULL)"
)
CREATE_REVIEWS = (
    "CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol VARCHAR NOT NULL, "
    "rating INTEGER NOT NULL, text VARCHAR)"
)

SYMBOLS = 100
LISTINGS = 150
"""Some companies are listed on more than one exchange."""
ZIPF = 0.8
"""The k-th symbol is in the news in proportion to 1 / k ** ZIPF."""

Answer: TypeAlias = list[tuple[object, ...]]


class Stock(NamedTuple):
    id: int
    symbol: str
    per: float


class Review(NamedTuple):
    id: int
    symbol: str
    rating: int
    text: str


class _Theme(NamedTuple):
    """The ranges of a group of subscribers."""

    per: tuple[float, float]
    rating: tuple[int, int]


THEMES = (
    _Theme((45, 55), (6, 8)),
    _Theme((9, 12), (7, 8)),
    _Theme((14, 17), (9, 10)),
    _Theme((5, 7), (1, 2)),
    _Theme((25, 30), (5, 6)),
    _Theme((32, 38), (8, 9)),
    _Theme((18, 22), (3, 4)),
    _Theme((70, 85), (9, 10)),
    _Theme((60, 70), (1, 2)),
    _Theme((100, 130), (4, 6)),
)


@dataclass(frozen=True, slots=True)
class Interest:
    """One subscription: ranges of per and rating; None for a table it does not read."""

    per: tuple[float, float] | None
    rating: tuple[int, int] | None

    @property
    def sql(self) -> str:
        if self.rating is None:
            return f"SELECT * FROM stocks WHERE {self._per_condition}"
        if self.per is None:
            return f"SELECT id, symbol, rating FROM reviews WHERE {self._rating_condition}"
        return (
            "SELECT * FROM stocks JOIN reviews USING (symbol) "
            f"WHERE {self._per_condition} AND {self._rating_condition}"
        )

    @property
    def _per_condition(self) -> str:
        assert self.per is not None
        return f"per BETWEEN {self.per[0]:g} AND {self.per[1]:g}"

    @property
    def _rating_condition(self) -> str:
        assert self.rating is not None
        low, high = self.rating
        if low == high:
            return f"rating = {low}"
        return f"rating >= {low}" if high == 10 else f"rating BETWEEN {low} AND {high}"

    def answer(self, rows: Rows) -> Answer:
        """The result of the query, by testing every pair of rows."""
        stocks = [s for s in rows.stocks.values() if _within(s.per, self.per)]
        if self.rating is None:
            return [tuple(s) for s in stocks]
        reviews = [r for r in rows.reviews.values() if _within(r.rating, self.rating)]
        if self.per is None:
            return [(r.id, r.symbol, r.rating) for r in reviews]
        return [
            (s.id, s.symbol, s.per, r.id, r.rating, r.text)
            for s in stocks
            for r in reviews
            if s.symbol == r.symbol
        ]


def _within(value: float, bounds: tuple[float, float] | None) -> bool:
    return bounds is None or bounds[0] <= value <= bounds[1]


def draw_interests(count: int, seed: int) -> list[Interest]:
    """Subscriptions around the themes; one in five reads a single table."""
    random = np.random.default_rng([seed, 1])
    popularity = _zipf(len(THEMES), 1.0)
    return [
        _interest(THEMES[random.choice(len(THEMES), p=popularity)], random) for _ in range(count)
    ]


def _interest(theme: _Theme, random: Random) -> Interest:
    low, high = theme.per
    blur = 0.25 * (high - low)
    ends = sorted(_half(end + random.normal(0, blur)) for end in (low, high))
    per = (max(0.0, ends[0]), max(0.5, ends[1]))
    ratings = sorted(int(np.clip(end + random.integers(-1, 2), 1, 10)) for end in theme.rating)
    kind = random.random()
    if kind < 0.1:
        return Interest(per, None)
    if kind < 0.2:
        return Interest(None, (ratings[0], ratings[1]))
    return Interest(per, (ratings[0], ratings[1]))


def _half(value: float) -> float:
    return round(2 * value) / 2


@dataclass
class Rows:
    """The rows of the tables."""

    stocks: dict[int, Stock] = field(default_factory=dict)
    reviews: dict[int, Review] = field(default_factory=dict)


class Market:
    """Generates changes in sequence, and knows the resulting rows."""

    def __init__(self, seed: int) -> None:
        self.rows = Rows()
        self._random = np.random.default_rng([seed, 2])
        self._symbols = draw_symbols(SYMBOLS, self._random)
        self._popularity = _zipf(SYMBOLS, ZIPF)
        self._last_id = 0

    def changes(self, count: int) -> Iterator[Change]:
        """The listings first, then their changes."""
        listings = min(count, LISTINGS)
        for number in range(listings):
            yield self._list(self._symbols[number] if number < SYMBOLS else self._symbol())
        kinds: list[tuple[float, Callable[[], Change]]] = [
            (0.45, self._move_price),
            (0.30, self._write_review),
            (0.08, self._revise_review),
            (0.12, self._withdraw_review),
            (0.05, self._relist),
        ]
        weights = [weight for weight, _ in kinds]
        for kind in self._random.choice(len(kinds), size=count - listings, p=weights):
            yield kinds[kind][1]()

    def _list(self, symbol: str) -> Change:
        per = float(np.clip(self._random.lognormal(3.3, 0.8), 2, 150))
        stock = Stock(self._new_id(), symbol, round(per, 1))
        self.rows.stocks[stock.id] = stock
        return Change("stocks", Op.INSERT, stock._asdict())

    def _relist(self) -> Change:
        """A company leaves an exchange, or enters one: their number stays about the same."""
        if len(self.rows.stocks) < LISTINGS:
            return self._list(self._symbol())
        gone = self._any(self.rows.stocks)
        del self.rows.stocks[gone]
        return Change("stocks", Op.DELETE, {"id": gone})

    def _move_price(self) -> Change:
        symbol = self._symbol()
        listed = [s for s in self.rows.stocks.values() if s.symbol == symbol]
        if not listed:
            return self._list(symbol)
        stock = listed[self._random.integers(len(listed))]
        per = float(np.clip(stock.per * self._random.lognormal(0, 0.06), 2, 150))
        self.rows.stocks[stock.id] = stock._replace(per=round(per, 1))
        return Change("stocks", Op.UPDATE, {"id": stock.id, "per": round(per, 1)})

    def _write_review(self) -> Change:
        symbol, rating = self._symbol(), int(self._random.integers(1, 11))
        review = Review(self._new_id(), symbol, rating, draw_opinion(symbol, rating, self._random))
        self.rows.reviews[review.id] = review
        return Change("reviews", Op.INSERT, review._asdict())

    def _revise_review(self) -> Change:
        if not self.rows.reviews:
            return self._write_review()
        review = self.rows.reviews[self._any(self.rows.reviews)]
        rating = int(np.clip(review.rating + self._random.choice((-2, -1, 1, 2)), 1, 10))
        text = draw_opinion(review.symbol, rating, self._random)
        self.rows.reviews[review.id] = review._replace(rating=rating, text=text)
        return Change("reviews", Op.UPDATE, {"id": review.id, "rating": rating, "text": text})

    def _withdraw_review(self) -> Change:
        if not self.rows.reviews:
            return self._write_review()
        gone = self._any(self.rows.reviews)
        del self.rows.reviews[gone]
        return Change("reviews", Op.DELETE, {"id": gone})

    def _symbol(self) -> str:
        return self._symbols[self._random.choice(SYMBOLS, p=self._popularity)]

    def _any(self, rows: dict[int, Stock] | dict[int, Review]) -> int:
        return list(rows)[self._random.integers(len(rows))]

    def _new_id(self) -> int:
        self._last_id += 1
        return self._last_id


def _zipf(count: int, exponent: float) -> npt.NDArray[np.float64]:
    weights = np.arange(1, count + 1) ** -exponent
    return np.asarray(weights / weights.sum(), np.float64)
