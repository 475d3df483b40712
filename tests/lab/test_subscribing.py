"""The benchmark of subscribing: that every statement in it is one, and that it counts right."""

from __future__ import annotations

import random

import pytest

from penstock.lab.benchmarks.subscribing import SHAPES, measured


@pytest.mark.parametrize("shape", SHAPES)
def test_all_are_registered(shape: str) -> None:
    chance = random.Random(1)
    result = measured([SHAPES[shape](chance) for _ in range(7)], at_once=3)
    assert (result["subscriptions"], result["at_once"]) == (7, 3)
