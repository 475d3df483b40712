"""A home may be called whatever the file system allows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock import Hub
from penstock.errors import HomeError
from penstock.registry import Registry
from penstock.storage import Home
from penstock.storage.home import MAX_PATH_BYTES

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


def deep(directory: Path, length: int) -> Path:
    """A path of so many bytes."""
    path = directory.resolve()
    while length - len(bytes(path)) > 200:
        path /= "d" * 100
    path /= "d" * (length - len(bytes(path)) - 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def test_the_longest_path_of_a_home(tmp_path: Path) -> None:
    path = deep(tmp_path, MAX_PATH_BYTES)
    with Hub(path) as hub:
        hub.execute("CREATE TABLE stocks (id BIGINT PRIMARY KEY)")
        hub.subscribe("SELECT * FROM stocks")
        hub.insert("stocks", {"id": 1})
    with Hub(path) as hub:
        assert hub.subscription(1).content() == [{"id": 1}]


@pytest.mark.parametrize("way", ["absolute", "relative", "link"])
def test_a_path_that_is_too_long_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """It would be a home whose databases SQLite cannot open."""
    path = deep(tmp_path, MAX_PATH_BYTES + 1)
    given = path
    if way == "relative":
        monkeypatch.chdir(path.parent)
        given = Path(path.name)
    elif way == "link":
        given = tmp_path / "home"
        given.symlink_to(path)
    for use in (Hub, Home.create, Home.open):
        with pytest.raises(HomeError, match="has at most 492 bytes"):
            use(given)
    assert not path.exists()
