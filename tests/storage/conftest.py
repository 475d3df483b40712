"""What several modules of tests of storage ask for."""

from __future__ import annotations

import os

import pytest

from tests.storage.rolling import roll_early


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits for the disk."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    roll_early(monkeypatch, 4)
