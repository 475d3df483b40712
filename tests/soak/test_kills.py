"""Processes of a run are killed twenty times: `make soak SEED=7` chooses other moments."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from penstock.storage import Home
from tests.pipeline.disturbing import fill, undisturbed
from tests.pipeline.killing import (
    BATCH_ROWS,
    assert_as_if_nothing_had_happened,
    kill_at_random,
    records_for,
)

pytestmark = [pytest.mark.soak, pytest.mark.spark]
WORKERS = 18  # and Java, and the driver


def test_killed_twenty_times_at_random(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "home")
    fill(home, records_for(WORKERS))
    expected = undisturbed(home, tmp_path, BATCH_ROWS)
    chance = random.Random(int(os.environ.get("PENSTOCK_SEED", "1")))
    kill_at_random(home, tmp_path, WORKERS, chance)
    assert_as_if_nothing_had_happened(home, expected)
