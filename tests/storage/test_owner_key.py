"""The owner key: made once, for whom the home is, and found damaged if it is."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock import Hub
from penstock.errors import CorruptionError, HomeError
from penstock.storage import Home, MemoryHome
from penstock.storage.owner_key import KEY_NAME, make_owner_key


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_it_is_made_with_the_home(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "home")
    assert mode_of(home.path / KEY_NAME) == 0o600
    key = home.owner_key()
    assert len(key) == 43
    assert Home.open(home.path).owner_key() == key
    assert Home.create(tmp_path / "other").owner_key() != key
    assert len({MemoryHome().owner_key(), MemoryHome().owner_key(), key}) == 3


def test_members_of_the_group_may_use_it_too(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "home", group_access=True)
    assert mode_of(home.path / KEY_NAME) == 0o660


def test_a_home_that_everybody_may_read_keeps_it_to_its_owner(tmp_path: Path) -> None:
    """As homes of early releases are."""
    home = Home.create(tmp_path / "home")
    (home.path / KEY_NAME).unlink()
    home.path.chmod(0o755)
    home.owner_key()
    assert mode_of(home.path / KEY_NAME) == 0o600


def test_many_who_need_one_agree(tmp_path: Path) -> None:
    path = Home.create(tmp_path / "home").path
    for _ in range(5):
        (path / KEY_NAME).unlink()
        with ThreadPoolExecutor(8) as pool:
            keys = set(pool.map(lambda _: Home.open(path).owner_key(), range(8)))
        assert len(keys) == 1
    assert [one.name for one in path.glob("owner*")] == [KEY_NAME]


def test_one_in_use_is_never_replaced(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "home")
    key = home.owner_key()
    make_owner_key(home.path)
    assert home.owner_key() == key


def test_a_crash_while_making_the_home(tmp_path: Path) -> None:
    make_owner_key(tmp_path)
    (tmp_path / f"{KEY_NAME}.x7_.tmp").touch()
    assert Home.create(tmp_path).owner_key()


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"owner_key": "abc", "checksum": 1}'])
def test_damage(tmp_path: Path, content: bytes) -> None:
    home = Home.create(tmp_path / "home")
    (home.path / KEY_NAME).write_bytes(content)
    with pytest.raises(CorruptionError, match=r"owner\.key is damaged") as caught:
        home.owner_key()
    assert "remove it" in caught.value.hint
    with Hub(home.path) as hub:  # who needs no key is not disturbed
        hub.execute("CREATE TABLE stocks (id INT PRIMARY KEY)")
        hub.insert("stocks", {"id": 1})


def test_a_directory_in_its_place(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "home")
    (home.path / KEY_NAME).unlink()
    (home.path / KEY_NAME).mkdir()
    with pytest.raises(HomeError, match="cannot read the owner key"):
        home.owner_key()
