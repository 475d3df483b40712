"""Which lines of Penstock the tests reach: a pytest plugin, and a floor that `make test` holds.

    python -m pytest -n 2 -p tests.line_coverage --coverage-floor 80

SlipCover removes its probes once a line was reached, so measuring costs a tenth of the time;
coverage.py, which Python 3.11 calls for every line, nearly doubles it. Lines that run only in
processes that tests start (Spark's workers, commands) do not count. Modules whose bytecode must not
hold probes are left out: those with kernels, which numba compiles, and those with functions that
are sent to Spark's workers by value.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import slipcover

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "penstock"
REPORT = ROOT / "build" / "coverage.json"
_OF_WORKER = "line coverage"


def _without_probes() -> list[str]:
    kernels = [str(path) for path in PACKAGE.rglob("*.py") if "@njit" in path.read_text()]
    return [*kernels, str(PACKAGE / "history" / "*")]


class LineCoverage:
    """Instruments modules as they are imported; in one process, or in all workers of a run."""

    def __init__(self, floor: float) -> None:
        self._floor = floor
        omitted = _without_probes()
        self._probes = slipcover.Slipcover(immediate=True, source=[str(PACKAGE)], omit=omitted)
        matcher = slipcover.FileMatcher(sources=[str(PACKAGE)], omit=omitted)
        self._importing = slipcover.ImportManager(self._probes, matcher)
        self._importing.__enter__()
        self._found: dict[str, Any] = {}

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._add(self._probes.get_coverage())
        output = getattr(session.config, "workeroutput", None)
        if output is not None:  # a worker, whose controller waits for what it found
            output[_OF_WORKER] = json.dumps(self._found)
        elif self._percent() < self._floor and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)  # of xdist
    def pytest_testnodedown(self, node: Any) -> None:
        output = getattr(node, "workeroutput", None) or {}
        if _OF_WORKER in output:  # a worker that crashed has none
            self._add(json.loads(output[_OF_WORKER]))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        REPORT.parent.mkdir(exist_ok=True)
        REPORT.write_text(json.dumps(self._found))
        write = terminalreporter.write_line
        terminalreporter.section("line coverage")
        reached, missed = self._by_room("executed_lines"), self._by_room("missing_lines")
        for room in sorted(reached | missed):
            lines = reached[room] + missed[room]
            write(f"{100 * reached[room] / lines:5.1f} % of {lines:6,} lines  {room}")
        write(f"{self._percent():5.1f} % in all; at least {self._floor:g} % is asked for")
        write(f"lines that no test reached: {REPORT.relative_to(ROOT)}")

    def _add(self, found: dict[str, Any]) -> None:
        self._found = slipcover.merge_coverage(self._found, found) if self._found else found

    def _by_room(self, lines: str) -> Counter[str]:
        rooms: Counter[str] = Counter()
        for name, of_file in self._found["files"].items():
            parts = Path(name).resolve().relative_to(PACKAGE).parts
            rooms[f"penstock/{parts[0]}" if len(parts) > 1 else "penstock"] += len(of_file[lines])
        return rooms

    def _percent(self) -> float:
        return float(self._found["summary"]["percent_covered"])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--coverage-floor",
        type=float,
        default=0.0,
        help="Fail if the tests reach a smaller share of Penstock's lines, in percent.",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(LineCoverage(config.getoption("--coverage-floor")))
