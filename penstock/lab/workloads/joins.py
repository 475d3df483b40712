"""Select-joins of two tables, with the parameters of Chandramouli and Yang (2008), Table 2.

R(id, a, b, p) and S(id, b, c, p) join on b; a subscription has a range over R.a and one over S.c.
The centres of both ranges lie around a low or a high value, so interests are clustered; S values
lie between the two clusters of interests, so most rows affect few subscriptions. Numbers lie in [0,
100k] with three decimals; a payload has 100 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from penstock.catalog import Catalog, Row
from penstock.joins import Group, GroupStep, SpacePoints
from penstock.joins.array_codes import ArrayCodes
from penstock.joins.point_arrays import CodedRanges
from penstock.spaces import Edge, JoinValue, Side, Space
from penstock.sql import parse_relation

R_TABLE = "CREATE TABLE r (id BIGINT PRIMARY KEY, a DECIMAL(9,3), b INTEGER, p VARCHAR)"
S_TABLE = "CREATE TABLE s (id BIGINT PRIMARY KEY, b INTEGER, c DECIMAL(9,3), p VARCHAR)"
EDGE = Edge((Side("r", (2,)), Side("s", (1,))))
R_SPACE = Space("r", EDGE, 0, 2)
"""Rows of r, filtered by s.c."""
S_SPACE = Space("s", EDGE, 1, 1)
"""Rows of s, filtered by r.a."""

TOP_VALUE = 100_000
SCALE = 1000
"""Stored values are scaled: three decimals."""
PAYLOAD_BYTES = 100
ZIPF = 0.8
JOINLESS_SHARE = 0.3
"""The share of join values without a row in S."""

CENTRE_SPREADS = (10_000, 6_000)
"""Standard deviations of the centres of ranges over R.a and S.c."""

CHANGES = 2
"""The index of a stream of random numbers; 0 and 1 are for the first rows of R and S."""
DAILY_CHANGE = 0.02
"""Of a stock's price/earnings ratio."""

Random: TypeAlias = np.random.Generator
Numbers: TypeAlias = npt.NDArray[np.int64]


def _stored(values: npt.NDArray[np.float64]) -> Numbers:
    return np.rint(np.clip(values, 0, TOP_VALUE) * SCALE).astype(np.int64)


def _either(random: Random, low: float, high: float, spread: float, size: int) -> np.ndarray:
    """Around a low or a high value."""
    return np.where(random.random(size) < 0.5, low, high) + random.normal(0, spread, size)


def _widths(random: Random, mean: float, spread: float, size: int) -> np.ndarray:
    """The absolute value of a normal: of all ways to avoid negative widths the one whose skylines
    are closest to the published ones."""
    return np.abs(random.normal(mean, spread, size))


@dataclass(frozen=True)
class Interests:
    """The ranges of all subscriptions, as stored values."""

    a_low: Numbers
    a_high: Numbers
    c_low: Numbers
    c_high: Numbers

    @classmethod
    def draw(
        cls, subscriptions: int, random: Random, spreads: tuple[float, float] = CENTRE_SPREADS
    ) -> Interests:
        a = _either(random, 30_000, 70_000, spreads[0], subscriptions)
        a_width = _widths(random, 20_000, 5_000, subscriptions)
        c = _either(random, 15_000, 85_000, spreads[1], subscriptions)
        c_width = _widths(random, 6_000, 5_000, subscriptions)
        return cls(
            _stored(a - a_width / 2),
            _stored(a + a_width / 2),
            _stored(c - c_width / 2),
            _stored(c + c_width / 2),
        )


def _coded(low: Numbers, high: Numbers) -> CodedRanges:
    """Closed ranges of whole numbers as SQL binds them: from below `low` to below `high + 1`."""
    constants = np.unique(np.concatenate([low, high + 1]))
    codes = ArrayCodes(constants)
    first = 2 * np.searchsorted(constants, low) + 1
    behind = 2 * np.searchsorted(constants, high + 1) + 1
    return CodedRanges(codes, first, behind - 1)


@dataclass
class JoinWorkload:
    """Subscriptions, the rows of both tables in their groups, and an unlimited number of
    changes."""

    subscriptions: int
    r_rows: int = 16_000
    s_rows: int = 5_100
    join_values: int = 100
    seed: int = 1
    interest_seed: int | None = None
    """The seed of the subscriptions, if it is another: the paper repeats runs with other events
    only. Rows of R, rows of S and changes are then drawn independently, so that more rows of one
    table change nothing about the rest."""
    centre_spreads: tuple[float, float] = CENTRE_SPREADS
    groups: dict[JoinValue, Group] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # Independent, so that the tables and changes of a seed are the same for any number of
        # subscriptions: the hundred centres that are drawn matter more than anything else.
        self._random = np.random.default_rng([self.seed, 0])
        interest_seed = self.seed if self.interest_seed is None else self.interest_seed
        self.interests = Interests.draw(
            self.subscriptions, np.random.default_rng([interest_seed, 1]), self.centre_spreads
        )
        self.catalog = Catalog()
        for offset, sql in enumerate((R_TABLE, S_TABLE)):
            self.catalog.add(parse_relation(sql), offset)
        values = self.join_values
        self._r_centres = _either(self._random, 25_000, 75_000, 3_000, values)
        self._s_centres = self._random.normal(50_000, 10_000, values)
        self._s_shares = self._random.permutation(1 / np.arange(1, values + 1) ** ZIPF)
        joinless = self._random.choice(values, round(JOINLESS_SHARE * values), replace=False)
        self._s_shares[joinless] = 0
        self._s_shares /= self._s_shares.sum()
        self._next_id = 0
        self._streams = [self._random] * 3
        if self.interest_seed is not None:
            self._streams = [np.random.default_rng([self.seed, 2 + i]) for i in range(3)]
        self._fill()
        self._random = self._streams[CHANGES]

    def _fill(self) -> None:
        self.groups = {(value,): Group() for value in range(self.join_values)}
        counts = np.rint(self._s_shares * self.s_rows).astype(int)
        per_value = np.full(self.join_values, self.r_rows // self.join_values)
        per_value[: self.r_rows % self.join_values] += 1
        for value in range(self.join_values):
            for side, count in ((0, per_value[value]), (1, counts[value])):
                self._random = self._streams[side]
                for row in self.draw_rows(side, value, int(count)):
                    self.groups[value,].sides[side][row[0],] = row  # type: ignore[index]

    def draw_rows(self, side: int, value: int, count: int) -> list[Row]:
        """New rows of R (side 0) or S (side 1) with one join value."""
        numbers = _stored(self.draw_numbers(side, value, count)).tolist()
        first = self._next_id
        self._next_id += count
        payload = "x" * PAYLOAD_BYTES
        if side == 0:
            return [(first + i, number, value, payload) for i, number in enumerate(numbers)]
        return [(first + i, value, number, payload) for i, number in enumerate(numbers)]

    def draw_numbers(self, side: int, value: int, count: int) -> npt.NDArray[np.float64]:
        """Values of R.a or S.c, for rows with one join value."""
        centre, spread = (self._r_centres, 8_000) if side == 0 else (self._s_centres, 3_000)
        return self._random.normal(centre[value], spread, count)

    @cached_property
    def spaces(self) -> list[SpacePoints]:
        """The points of all subscriptions: R-semijoins and S-semijoins."""
        over_a = _coded(self.interests.a_low, self.interests.a_high)
        over_c = _coded(self.interests.c_low, self.interests.c_high)
        return [
            SpacePoints.of_ranges(R_SPACE, self.catalog, 1, over_a, over_c),
            SpacePoints.of_ranges(S_SPACE, self.catalog, 2, over_c, over_a),
        ]

    def inserts(self, side: int, count: int) -> Iterator[tuple[JoinValue, GroupStep]]:
        """Inserts, each with a join value of its own (R: uniform, S: as its rows are
        distributed)."""
        shares = None if side == 0 else self._s_shares
        values = self._random.choice(self.join_values, count, p=shares)
        for offset, value in enumerate(values.tolist()):
            (row,) = self.draw_rows(side, value, 1)
            yield (value,), GroupStep(offset, 1, side, (row[0],), None, row)  # type: ignore[arg-type]

    def turnover(self, side: int, count: int) -> Iterator[tuple[JoinValue, GroupStep]]:
        """Inserts, each with a delete of the oldest row of the same join value, so that tables keep
        their size; apply them one by one as they are drawn."""
        for value, step in self.inserts(side, (count + 1) // 2):
            yield value, step
            rows = self.groups[value].sides[side]
            key = next(iter(rows))
            yield value, GroupStep(step.offset, 2, side, key, rows[key], None)


@dataclass
class StockJoinWorkload(JoinWorkload):
    """Stocks for R and ratings for S, modelled on section 6.1's real data, which is not available:
    price/earnings ratios wander by about 2 % a day; ratings from 1 to 5 are mapped to the range of
    values and perturbed."""

    s_rows: int = 2_300
    _ratios: dict[int, float] = field(default_factory=dict, repr=False)

    def draw_numbers(self, side: int, value: int, count: int) -> npt.NDArray[np.float64]:
        if side == 1:
            usual = 1 + 4 * self._s_centres[value] / TOP_VALUE
            ratings = np.clip(np.rint(self._random.normal(usual, 1.0, count)), 1, 5)
            return (ratings - 0.5) * TOP_VALUE / 5 + self._random.normal(0, 4_000, count)
        steps = np.exp(np.cumsum(self._random.normal(0, DAILY_CHANGE, count)))
        ratios = self._ratios.get(value, self._r_centres[value]) * steps
        if count:
            self._ratios[value] = float(np.clip(ratios[-1], 0.05 * TOP_VALUE, 0.95 * TOP_VALUE))
        return np.asarray(ratios, np.float64)
