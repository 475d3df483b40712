"""10,000 storms over networks of brokers: `make soak SEED=7` begins at another one."""

from __future__ import annotations

import os

import pytest

from tests.network.storms import weather

pytestmark = pytest.mark.soak
STORMS = 10_000


def test_ten_thousand_storms() -> None:
    first = STORMS * int(os.environ.get("PENSTOCK_SEED", "1"))
    for seed in range(first, first + STORMS):
        try:
            weather(seed)
        except BaseException as error:
            error.add_note(f"seed {seed}: tests.network.storms.weather({seed}) runs it again")
            raise
