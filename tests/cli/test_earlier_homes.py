"""Homes made by earlier builds open, hold what they held, and go on."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock import Hub
from penstock.pipeline.moved_checkpoint import correct_paths
from penstock.storage import Home
from tests.cli.conftest import Cli

HOMES = Path(__file__).parent.parent / "fixtures" / "homes"
PROCESSED, END = 223, 295


@pytest.fixture(params=["hub", "pipeline"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpack(request.param, tmp_path)


def unpack(name: str, directory: Path) -> Path:
    with tarfile.open(HOMES / f"{name}.tar.gz") as archive:
        archive.extractall(directory, filter="data")
    (directory / name).chmod(0o700)  # as it was made: archives give everybody access
    return directory / name


def stored_rows(home: Path, number: int) -> list[dict[str, Any]]:
    """What the earlier build has printed."""
    found = json.loads(home.with_name(f"{home.name}.{number}.json").read_bytes())
    rows: list[dict[str, Any]] = found["rows"]
    return rows


def as_text(rows: Iterable[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in rows)


def processed_to(home: Path) -> int:
    frontier = Home.open(home).messages.frontier
    assert frontier is not None
    return frontier.end


def check_sound(cli: Cli, home: Path) -> None:
    """Every file against its checksums, every content against DuckDB."""
    verdict = cli("verify", home, "--json").json
    # A remark: databases of an earlier release are derived from the log anew.
    assert [one for one in verdict["findings"] if one["severity"] != "remark"] == []
    assert len(verdict["compared"]) == 3


@pytest.mark.parametrize("number", [3, 4, 5])
def test_contents_are_what_they_were(home: Path, number: int, cli: Cli) -> None:
    shown = cli("content", home, number, "--json").json
    assert as_text(shown["rows"]) == as_text(stored_rows(home, number))
    assert len(shown["rows"]) > 10
    assert processed_to(home) == PROCESSED


def test_it_is_sound(home: Path, cli: Cli) -> None:
    assert Home.open(home).buckets == 8
    check_sound(cli, home)


def test_a_hub_goes_on(home: Path, cli: Cli) -> None:
    with Hub(home) as hub:
        assert processed_to(home) == END
        new = hub.subscribe("SELECT id FROM stocks WHERE id >= 70")
        assert {row["id"] for row in new.content()} == set(range(70, 80))
        hub.update("stocks", {"id": 79, "price": "11.00"})
        prices = {row["id"]: str(row["price"]) for row in hub.subscription(4).content()}
        assert prices[79] == "11.00"
        assert len(hub.quarantine()) == 3
        hub.unsubscribe(new)
    check_sound(cli, home)


def test_the_pipeline_goes_on(spark: SparkSession, cli: Cli, tmp_path: Path) -> None:
    home = unpack("pipeline", tmp_path)
    assert cli("run", home, "--once").code == 0
    assert processed_to(home) == END
    check_sound(cli, home)


def test_a_checkpoint_that_was_moved_names_its_own_files(tmp_path: Path, cli: Cli) -> None:
    checkpoint = unpack("pipeline", tmp_path) / "checkpoint"
    assert correct_paths(checkpoint) == 4
    assert correct_paths(checkpoint) == 0
    notes = sorted(checkpoint.glob("state/*/_metadata/v2/[0-9]*"))
    assert len(notes) == 4
    for note in notes:
        version, _, body = note.read_text().partition("\n")
        assert version == "v2"
        (store,) = json.loads(body)["stateStoreInfo"]
        (path,) = store["stateSchemaFilePaths"]
        assert path.startswith(f"file:{checkpoint}/state/")
        assert Path(path.removeprefix("file:")).is_file()
    check_sound(cli, checkpoint.parent)  # the checksums fit, too
