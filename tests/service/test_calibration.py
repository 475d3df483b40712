"""How many others a site can feed: the search, and the measurement it makes."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import PlanError
from penstock.service import calibrate_site
from penstock.service.calibration import largest_within


@given(st.integers(0, 500), st.integers(1, 300))
def test_the_largest_number_within_a_limit_is_found(limit: int, most: int) -> None:
    asked: list[int] = []

    async def measure(number: int) -> float:
        asked.append(number)
        return float(number)

    found = asyncio.run(largest_within(measure, limit + 0.5, most))
    assert found.feeds == min(limit, most)
    assert len(asked) == len(set(asked)) <= 2 + 2 * most.bit_length()
    assert list(found.measured) == sorted(asked)


@pytest.mark.parametrize(("within", "most"), [(0.0, 5), (-1.0, 5), (1.0, 0)])
def test_limits_that_say_nothing(within: float, most: int) -> None:
    with pytest.raises(PlanError, match="A calibration needs"):
        asyncio.run(calibrate_site(within, most=most))


def test_a_site_measures_itself() -> None:
    """With an hour for each document every number will do."""
    found = asyncio.run(calibrate_site(3600.0, most=5))
    assert found.feeds == 5
    assert set(found.measured) == {1, 2, 4, 5}
    assert min(found.measured.values()) > 0
