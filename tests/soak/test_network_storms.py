"""10,000 storms over networks of brokers: `make soak SEED=7` begins at another one."""

from __future__ import annotations

import os

import pytest

from tests.network.storms import weather_of

pytestmark = pytest.mark.soak
STORMS = 10_000


def test_ten_thousand_storms() -> None:
    first = STORMS * int(os.environ.get("PENSTOCK_SEED", "1"))
    weather_of(range(first, first + STORMS))
