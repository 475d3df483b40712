"""Processes of a run are killed twenty times: `make soak SEED=7` chooses other moments."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.pipeline.killing import killed_at_random

pytestmark = [pytest.mark.soak, pytest.mark.spark]
WORKERS = 18  # and Java, and the driver


def test_killed_twenty_times_at_random(tmp_path: Path) -> None:
    killed_at_random(tmp_path, WORKERS, random.Random(int(os.environ.get("PENSTOCK_SEED", "1"))))
