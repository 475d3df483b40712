"""A home may be called whatever the file system allows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock import Hub
from penstock.registry import Registry
from penstock.storage import Home

NAMES = [
    "a?b=c",
    "a#b",
    "a%20b",
    "a b",
    "ä",
    ":memory:",
    "file:x",
    "-x",
    "a'b\"c",
    "a\nb",
    "a@b:c",
    os.fsdecode(b"\xff\xfe"),
]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_home_of_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    with Hub(name) as hub:
        hub.execute("CREATE TABLE stocks (id BIGINT PRIMARY KEY)")
        hub.subscribe("SELECT * FROM stocks")
    with Registry(Home.open(name)) as registry:
        assert [one.id for one in registry.subscriptions()] == [1]
    assert (tmp_path / name / "registry.db").stat().st_size > 0
    assert os.listdir(tmp_path) == [name]
