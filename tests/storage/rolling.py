"""Rolling as soon as there are a few files."""

from __future__ import annotations

import pytest

from penstock.storage import tiers


def roll_early(monkeypatch: pytest.MonkeyPatch, fan_in: int) -> None:
    """`fan_in`: a power of two."""
    monkeypatch.setattr(tiers, "FAN_IN", fan_in)
    monkeypatch.setattr(tiers, "_TIER_BITS", fan_in.bit_length() - 1)
