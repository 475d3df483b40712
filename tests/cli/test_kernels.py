"""`penstock kernels`: status and preparation, with a set of one small kernel in place of all."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from penstock.kernels import cache_directory, fast_gear, preparation
from penstock.kernels.cache_directory import DIRECTORY_VARIABLE
from penstock.kernels.preparation import GEAR_VARIABLE, KernelSet
from penstock.pipeline import class_archive
from tests.cli.conftest import Cli

SMALL = KernelSet("fast-gear", ("spaces",), "tests.kernels.test_cache:warm_up")
BROKEN = KernelSet("fast-gear", ("spaces",), "tests.kernels.test_cache:no_such_function")


@pytest.fixture(autouse=True)
def empty_directory(tmp_path: Path) -> Iterator[None]:
    """No kernel is compiled, and nobody asks for a gear."""
    root = str(Path(__file__).parents[2])
    variables = {DIRECTORY_VARIABLE: str(tmp_path), "PYTHONPATH": root}
    variables[class_archive.DIRECTORY_VARIABLE] = ""
    with mock.patch.dict(os.environ, variables):
        del os.environ[GEAR_VARIABLE]
        preparation.start_preparation.cache_clear()
        yield
    preparation.start_preparation.cache_clear()


@pytest.mark.slow
def test_from_not_compiled_to_compiled(cli: Cli, tmp_path: Path) -> None:
    with mock.patch.object(fast_gear, "FAST_GEAR", SMALL):
        before = cli("kernels", "status", "--json").json
        assert (before["ready"], before["being_compiled"]) == (False, False)
        assert before["directory"].startswith(str(tmp_path))
        assert "not compiled yet" in cli("kernels", "status").out
        assert cli("kernels", "prepare", "--json").json == {
            "ready": True,
            "archive": "none is kept",
        }
        assert cli("kernels", "status", "--json").json["ready"]
        assert "are compiled" in cli("kernels", "status").out
        with mock.patch.object(subprocess, "Popen", side_effect=AssertionError):
            assert "are compiled" in cli("kernels", "prepare").out


def test_while_another_process_is_at_it(cli: Cli) -> None:
    with mock.patch.object(fast_gear, "FAST_GEAR", SMALL), preparation._locked(SMALL):
        assert cli("kernels", "status", "--json").json["being_compiled"]
        assert "being compiled" in cli("kernels", "prepare").out


def test_a_failure_is_told(cli: Cli) -> None:
    with mock.patch.object(fast_gear, "FAST_GEAR", BROKEN):
        ran = cli("kernels", "prepare")
    assert ran.code == 1
    assert "could not be compiled" in ran.err
    assert "the plain gear is used instead" in ran.err


@pytest.mark.parametrize("how", [[], ["--beside"], ["--json"]])
def test_no_place_for_them_is_a_failure(cli: Cli, how: list[str]) -> None:
    with mock.patch.object(cache_directory, "_directory", return_value=None):
        ran = cli("kernels", "prepare", *how)
        assert "no writable directory" in cli("kernels", "status").out
    assert ran.code == 1
    assert "no writable directory" in ran.err
    assert DIRECTORY_VARIABLE in ran.err


@pytest.mark.usefixtures("no_kernels_to_compile")
def test_the_archive_of_classes(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made by a process that fails, by one that another process is ahead of, and by one that does
    what it should."""
    monkeypatch.setenv(class_archive.DIRECTORY_VARIABLE, str(tmp_path / "java"))
    archive = class_archive.class_archive()
    assert archive is not None

    def state() -> str:
        found = cli("kernels", "status", "--json").json
        assert found["archive_directory"] == str(archive.directory)
        assert found["archive"] in cli("kernels", "status").out
        return str(found["archive"])

    assert state() == "not made yet"
    with archive.being_made():
        assert state() == "being made"
        assert "being made" in cli("kernels", "prepare").out
    class_archive.note_failure(archive, "no space left")
    assert state() == "could not be made (no space left)"
    assert class_archive.start_making(archive) is None  # nobody tries again by himself

    def made(module: str, how: str) -> mock.Mock:
        assert (module, how) == ("penstock.pipeline.making_archives", "beside")
        archive.file.touch()
        return mock.Mock()

    with mock.patch.object(class_archive, "start_beside", side_effect=made):
        assert cli("kernels", "prepare", "--json").json["archive"] == "made"
    assert state() == "made"


@pytest.fixture
def no_kernels_to_compile() -> Iterator[None]:
    with mock.patch("penstock.kernels.preparation.kernels_ready", return_value=True):
        yield


def test_the_plan_says_that_kernels_are_not_ready(cli: Cli, home: Path) -> None:
    cli("subscribe", home, "SELECT * FROM stocks WHERE per > 3")
    plan = cli("explain", home, "--plan", "--json").json["plan"]
    assert {(one["gear"], one["why"]) for one in plan} == {
        ("plain", "the kernels are not compiled on this machine yet")
    }
    with mock.patch.dict(os.environ, {GEAR_VARIABLE: "fast"}):
        plan = cli("explain", home, "--plan", "--json").json["plan"]
    assert {one["gear"] for one in plan} == {"fast"}
