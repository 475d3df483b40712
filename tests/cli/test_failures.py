"""Failures: text for people, codes for scripts, no traceback unless asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.cli.failures import exit_code_of, failure_text
from penstock.errors import CorruptionError, LockedError, PipelineError
from penstock.storage import Home
from tests.cli.conftest import Cli

PENSTOCK = [sys.executable, "-c", "from penstock.cli.main import main; main()"]


def fail_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every command that opens a home fail."""

    def open_home(_path: Path) -> Home:
        raise error

    monkeypatch.setattr(Home, "open", open_home)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CorruptionError("x is damaged at byte 7"), 7),
        (LockedError("x is being processed"), 8),
        (PipelineError("Spark cannot run here"), 9),
        (KeyboardInterrupt(), 130),
        (PermissionError(13, "Permission denied", "x"), 1),
        (RuntimeError("out of luck"), 1),
    ],
)
def test_codes(cli: Cli, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int) -> None:
    fail_with(error, monkeypatch)
    ran = cli("tables", "shop")
    assert ran.code == code
    assert ran.out == ""
    assert "Traceback" not in ran.err


def test_primary_detail_and_hint(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    error = PipelineError("no Spark", detail="no Java", hint="one of\n  this\n  that")
    fail_with(error, monkeypatch)
    assert cli("tables", "shop").err.splitlines() == [
        "error: no Spark",
        "  detail: no Java",
        "  hint: one of",
        "      this",
        "      that",
    ]


def test_failure_as_json(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(LockedError("x is being processed", hint="wait"), monkeypatch)
    ran = cli("tables", "shop", "--json")
    assert json.loads(ran.out) == {
        "error": {
            "exit_code": 8,
            "kind": "LockedError",
            "primary": "x is being processed",
            "detail": "",
            "hint": "wait",
        }
    }
    assert ran.err.startswith("error: x is being processed")


def test_a_clock_beyond_what_python_can_handle(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    beyond = OverflowError("timestamp too large to convert to C _PyTime_t")
    fail_with(beyond, monkeypatch)
    ran = cli("tables", "shop")
    assert ran.err.startswith("error: the system clock is beyond")
    assert "hint: correct the clock" in ran.err
    assert "bug in Penstock" not in ran.err


def test_the_command_line_is_there_before_anything_asks_for_the_time() -> None:
    """`logging` does when it is imported: then nobody would be there to explain it."""
    code = "import sys, penstock.cli.main; print('logging' in sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert ran.stdout == "False\n"


def test_a_full_disk(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(OSError(28, "No space left on device", "/shop/x"), monkeypatch)
    ran = cli("tables", "shop")
    assert "error: No space left on device (/shop/x)" in ran.err
    assert "hint: make room" in ran.err


def test_what_is_nobodys_fault_but_ours(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(RuntimeError("out of luck"), monkeypatch)
    ran = cli("tables", "shop", "--json")
    assert "bug in Penstock" in ran.err
    assert json.loads(ran.out)["error"]["primary"] == "out of luck"
    assert "Traceback" in cli("--debug", "tables", "shop").err
    monkeypatch.setenv("PENSTOCK_DEBUG", "1")
    assert "Traceback" in cli("tables", "shop").err


def test_errors_of_the_operating_system_are_not_our_fault() -> None:
    text = failure_text(PermissionError(13, "Permission denied", "x.csv"))
    assert text == "error: Permission denied (x.csv)"
    assert exit_code_of(BrokenPipeError()) == 141


def test_usage(cli: Cli, home: Path) -> None:
    ran = cli("content", home)
    assert ran.code == 2
    assert "ID" in ran.err
    assert cli("content", home, "1", "--nonsense").code == 2


def test_home_in_use(cli: Cli, home: Path) -> None:
    """Looking, publishing and subscribing go on; only processing has to wait."""
    with Home.open(home).processing_lock("pipeline"):
        assert cli("subscribe", home, "SELECT * FROM stocks").code == 0


@pytest.mark.slow
def test_reader_that_goes_away(home: Path) -> None:
    """As in `penstock tables shop | head -0`: no complaint, and no traceback."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = subprocess.run(
            [*PENSTOCK, "tables", home, "--json"],
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writing)
    assert (ran.returncode, ran.stderr) == (141, b"")


@pytest.mark.slow
def test_poor_terminal(home: Path) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    ran = subprocess.run(
        [*PENSTOCK, "tables", home], capture_output=True, env=environment, check=False
    )
    assert ran.returncode == 0
    assert b"stocks" in ran.stdout
