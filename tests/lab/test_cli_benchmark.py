"""The benchmark of commands: everything it measures runs, and CPU time of the child counts."""

from __future__ import annotations

import pytest

from penstock.lab.benchmarks import cli as benchmark
from penstock.lab.benchmarks.cli import CASES, Case, Usage, measure, measured


@pytest.mark.slow
@pytest.mark.parametrize("case", [one for one in CASES if not one.needs_spark], ids=lambda c: c[0])
def test_everything_runs(case: Case) -> None:
    usage = measure(case)
    assert usage.cpu_seconds > 0
    assert usage.wall_seconds > 0


def test_what_fails_is_not_measured() -> None:
    with pytest.raises(RuntimeError, match="nothing failed"):
        measure(Case("nothing", ("-c", "raise SystemExit(3)"), 1.0))


def test_the_work_of_the_child_counts() -> None:
    idle = measure(Case("idle", ("-c", "pass"), 1.0))
    work = "import time\nwhile time.process_time() < 0.3: pass"
    assert measure(Case("busy", ("-c", work), 1.0)).cpu_seconds >= 0.25 > idle.cpu_seconds / 10


def test_the_median_is_shown() -> None:
    usages = [Usage(3, 30), Usage(1, 10), Usage(2, 50)]
    result = measured(Case("any", (), 1.0, is_limit_of_wall=True), usages)
    assert (result["cpu_s"], result["best_cpu_s"], result["wall_s"]) == (2, 1, 30)
    assert (result["limited"], result["repetitions"]) == ("wall", 3)


def test_every_command_that_has_a_limit_is_there() -> None:
    names = {case.name for case in benchmark.CASES}
    wanted = ("execute", "subscribe", "publish", "content", "tail")
    assert {f"penstock {name}" for name in wanted} <= names
