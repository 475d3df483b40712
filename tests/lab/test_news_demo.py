"""The demonstration of views that feed views."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from penstock.errors import PenstockError
from penstock.lab.memory_sites import MemorySites
from penstock.lab.news_demo import NewsDemo, run_news_demo


class Quiet:
    def step(self, what: str) -> nullcontext[None]:
        assert what
        return nullcontext()


def demo(path: Path) -> NewsDemo:
    options = {"views": 30, "documents": 6, "sites": 4, "feeds": 3, "seed": 2}
    return run_news_demo(path / "home", Quiet(), **options)


def test_the_source_is_relieved(tmp_path: Path) -> None:
    done = demo(tmp_path)
    assert done.alone.views == 30
    assert done.relieved.views < done.alone.views
    assert done.relieved.rows < done.alone.rows
    assert done.relieved.bytes < done.alone.bytes
    assert done.moved == 8  # 30 views at 4 sites
    assert done.planned.plan.levels().max() > 1


def test_a_wrong_content_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = MemorySites.read

    def read_less(self: MemorySites, views: list[int]) -> object:
        found = read(self, views)
        next(iter(found.values())).contents.clear()
        return found

    monkeypatch.setattr(MemorySites, "read", read_less)
    with pytest.raises(PenstockError, match="differs from what the Hub returns"):
        demo(tmp_path)
