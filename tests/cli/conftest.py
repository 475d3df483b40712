"""A home to work on, and the command line to work on it with."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock import Hub
from penstock.cli.main import app
from penstock.registry import Registry
from penstock.storage import Home


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON object on standard output."""
        assert self.code == 0, self.err
        (line,) = self.out.splitlines()
        return json.loads(line)


Cli = Callable[..., Ran]


@pytest.fixture
def cli() -> Cli:
    def run(*arguments: object, input: str | bytes | None = None) -> Ran:
        ended = CliRunner().invoke(app, [str(one) for one in arguments], input=input)
        return Ran(ended.exit_code, ended.stdout, ended.stderr)

    return run


@pytest.fixture(scope="session")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What every home of these tests begins as; made once."""
    path = tmp_path_factory.mktemp("pattern") / "shop"
    registry = Registry(Home.create(path))
    registry.define(
        "CREATE TABLE stocks (id BIGINT PRIMARY KEY, symbol VARCHAR NOT NULL, per DOUBLE)"
    )
    registry.define("CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol VARCHAR, rating INTEGER)")
    registry.close()
    return path


@pytest.fixture
def home(tmp_path: Path, pattern: Path) -> Path:
    """A home with the tables `stocks` and `reviews`, and so with 2 records in its log."""
    return Path(shutil.copytree(pattern, tmp_path / "shop"))


@pytest.fixture
def process(home: Path) -> Callable[[], None]:
    """Processes the home, as `penstock run HOME --once` does, but without Spark."""

    def run() -> None:
        with Hub(home):
            pass

    return run


def lines(*events: object) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


def insert(table: str, **row: object) -> dict[str, object]:
    return {"table": table, "op": "insert", "row": row}
