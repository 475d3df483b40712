"""What every evaluator does, and what only the one with processes can."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from typing import TypeAlias

import pytest

from penstock.errors import OperatorError
from penstock.operators import FailureKind, Operator, OperatorFailure, operator
from penstock.operators.evaluation import Evaluator, InProcessEvaluator
from penstock.operators.limits import MAX_LOST_ROWS
from penstock.operators.worker_process import ProcessEvaluator
from tests.operators.plugins import misbehaving as ops
from tests.operators.plugins.misbehaving import BAD

PATIENCE_SECONDS = 60.0
Rows: TypeAlias = list[tuple[int]]
ROWS: Rows = [(n,) for n in range(40)]


def failures_in(outcomes: Sequence[object]) -> dict[int, OperatorFailure]:
    return {n: one for n, one in enumerate(outcomes) if isinstance(one, OperatorFailure)}


def only_failure(evaluator: Evaluator, one: Operator, rows: Rows = ROWS) -> OperatorFailure:
    """Of rows with a bad one among them: it fails, and all others have their values."""
    outcomes = evaluator.evaluate(one, rows).outcomes
    failed = failures_in(outcomes)
    bad = rows.index((BAD,))
    assert list(failed) == [bad]
    assert [true for n, true in enumerate(outcomes) if n != bad] == [True] * (len(rows) - 1)
    assert (failed[bad].operator, failed[bad].version) == (one.name, one.version)
    return failed[bad]


class Contract:
    @pytest.fixture
    def evaluator(self) -> Iterator[Evaluator]:
        raise NotImplementedError

    def test_truth_values(self, evaluator: Evaluator) -> None:
        done = evaluator.evaluate(ops.is_even, ROWS)
        assert done.outcomes == [n % 2 == 0 for (n,) in ROWS]
        assert done.evaluated_rows == len(ROWS)
        assert done.seconds > 0

    def test_bindings(self, evaluator: Evaluator) -> None:
        done = evaluator.evaluate(ops.divisors, [(6,), (0,), (1,)])
        assert done.outcomes == [((1,), (2,), (3,), (6,)), (), ((1,),)]

    def test_no_rows(self, evaluator: Evaluator) -> None:
        assert evaluator.evaluate(ops.is_even, []).outcomes == []

    def test_null_is_unknown_unless_wanted(self, evaluator: Evaluator) -> None:
        done = evaluator.evaluate(ops.is_even, [(None,), (2,), (None,)])
        assert done.outcomes == [None, True, None]
        assert done.evaluated_rows == 1
        assert evaluator.evaluate(ops.is_null, [(None,), ("a",)]).outcomes == [True, False]

    def test_the_number_of_arguments(self, evaluator: Evaluator) -> None:
        with pytest.raises(OperatorError, match="takes 1 arguments"):
            evaluator.evaluate(ops.is_even, [(1, 2)])

    def test_a_parameter_travels_and_a_model_does_not(self, evaluator: Evaluator) -> None:
        assert evaluator.evaluate(ops.Model(7), [(6,), (7,)]).outcomes == [False, True]
        assert evaluator.evaluate(ops.Model(6), [(6,), (7,)]).outcomes == [True, True]

    @pytest.mark.parametrize(
        ("one", "reason"),
        [
            (ops.raises, "ValueError: thirteen"),
            (ops.raises_for_all, "ValueError: thirteen is among them"),
            (ops.exits, "SystemExit: 3"),
        ],
    )
    def test_raising(self, evaluator: Evaluator, one: Operator, reason: str) -> None:
        failed = only_failure(evaluator, one)
        assert (failed.kind, failed.reason) == (FailureKind.RAISED, reason)

    @pytest.mark.parametrize("one", [ops.returns_text, ops.returns_too_few])
    def test_garbage(self, evaluator: Evaluator, one: Operator) -> None:
        assert only_failure(evaluator, one).kind is FailureKind.GARBAGE

    def test_a_failed_set_up_fails_all_rows_at_once(self, evaluator: Evaluator) -> None:
        done = evaluator.evaluate(ops.Broken(), ROWS)
        assert len(failures_in(done.outcomes)) == len(ROWS)
        assert done.outcomes[0] == OperatorFailure(
            "broken", "1", FailureKind.RAISED, "set-up: FileNotFoundError: model.bin"
        )

    def test_using_it_after_a_failure(self, evaluator: Evaluator) -> None:
        only_failure(evaluator, ops.raises_for_all)
        assert evaluator.evaluate(ops.raises_for_all, [(1,)]).outcomes == [True]


class TestInProcess(Contract):
    @pytest.fixture
    def evaluator(self) -> Iterator[Evaluator]:
        with closing(InProcessEvaluator()) as made:
            yield made


class TestProcess(Contract):
    @pytest.fixture
    def evaluator(self) -> Iterator[Evaluator]:
        with ProcessEvaluator() as made:
            yield made

    def test_one_process_and_one_set_up_for_many_batches(self, evaluator: Evaluator) -> None:
        pids = {one for _ in range(3) for one in evaluator.evaluate(ops.where_am_i, ROWS).outcomes}
        assert len(pids) == 1
        assert pids != {((os.getpid(),),)}
        for _ in range(3):
            assert set(evaluator.evaluate(ops.set_ups, ROWS).outcomes) == {((1,),)}

    def test_what_an_operator_prints_and_reads_is_not_ours(self, evaluator: Evaluator) -> None:
        assert evaluator.evaluate(ops.prints, ROWS).outcomes == [True] * len(ROWS)

    @pytest.mark.slow
    def test_hanging(self, evaluator: Evaluator) -> None:
        failed = only_failure(evaluator, ops.hangs, [(1,), (BAD,), (3,)])
        assert (failed.kind, failed.reason) == (FailureKind.TIMEOUT, "no result after 5 seconds")

    def test_memory(self, evaluator: Evaluator) -> None:
        assert only_failure(evaluator, ops.allocates).kind is FailureKind.MEMORY

    @pytest.mark.slow
    def test_a_leak_costs_processes_and_no_row(self, evaluator: Evaluator) -> None:
        """What earlier rows have leaked is not held against the row that finds no memory."""
        assert evaluator.evaluate(ops.leaks, ROWS).outcomes == [True] * len(ROWS)

    def test_a_worker_killed_by_its_operator(self, evaluator: Evaluator) -> None:
        failed = only_failure(evaluator, ops.kills_itself)
        assert (failed.kind, failed.reason) == (FailureKind.DIED, "killed by SIGKILL")

    def test_a_worker_that_leaves(self, evaluator: Evaluator) -> None:
        failed = only_failure(evaluator, ops.leaves)
        assert (failed.kind, failed.reason) == (FailureKind.DIED, "exited with status 3")

    def test_noise_in_the_pipe(self, evaluator: Evaluator) -> None:
        assert only_failure(evaluator, ops.writes_everywhere).kind is FailureKind.GARBAGE

    @pytest.mark.slow
    def test_an_operator_that_always_hangs_is_given_up(self, evaluator: Evaluator) -> None:
        done = evaluator.evaluate(ops.hangs_always, ROWS)
        assert len(failures_in(done.outcomes)) == len(ROWS)
        last = done.outcomes[-1]
        assert isinstance(last, OperatorFailure)
        assert last.kind is FailureKind.TIMEOUT
        assert last.reason.startswith(f"not tried after {MAX_LOST_ROWS} such failures")

    def test_a_worker_killed_between_batches(self, evaluator: Evaluator) -> None:
        (before,) = evaluator.evaluate(ops.where_am_i, [(1,)]).outcomes
        assert isinstance(before, tuple)
        os.kill(int(str(before[0][0])), signal.SIGKILL)
        (after,) = evaluator.evaluate(ops.where_am_i, [(1,)]).outcomes
        assert isinstance(after, tuple)
        assert after != before

    def test_large_rows_go_in_parts(self, evaluator: Evaluator) -> None:
        large = [("x" * 3_000_000,)] * 5 + [("small",)]
        quick = ops.is_null
        evaluator.evaluate(quick, [("warm",)] * 16)
        assert evaluator.evaluate(quick, large).outcomes == [False] * 6

    def test_a_local_function_needs_another_pickler(self, evaluator: Evaluator) -> None:
        local = operator("local", [ops.N])(lambda n: n > 1)
        with pytest.raises(OperatorError, match="cannot be sent to another process"):
            evaluator.evaluate(local, [(1,)])

    def test_a_pickler_of_ones_own(self) -> None:
        local = operator("isEven", [ops.N])(lambda n: n > 1)
        with ProcessEvaluator(pickler=lambda _: pickle.dumps(ops.is_even)) as made:
            assert made.evaluate(local, [(1,), (4,)]).outcomes == [False, True]

    def test_few_processes_for_many_operators(self) -> None:
        with ProcessEvaluator(max_processes=1) as made:
            (first,) = made.evaluate(ops.where_am_i, [(1,)]).outcomes
            assert isinstance(first, tuple)
            made.evaluate(ops.is_even, [(1,)])
            with pytest.raises(ProcessLookupError):
                os.kill(int(str(first[0][0])), 0)

    def test_closing_ends_the_processes(self) -> None:
        made = ProcessEvaluator()
        (found,) = made.evaluate(ops.where_am_i, [(1,)]).outcomes
        assert isinstance(found, tuple)
        made.close()
        with pytest.raises(ProcessLookupError):
            os.kill(int(str(found[0][0])), 0)
        assert made.evaluate(ops.is_even, [(2,)]).outcomes == [True]
        made.close()


def test_a_fork_has_processes_of_its_own() -> None:
    """The workers of a pipeline are forks of a daemon; none listens to another's processes."""
    with ProcessEvaluator() as evaluator:
        (before,) = evaluator.evaluate(ops.where_am_i, [(1,)]).outcomes
        child = os.fork()
        if child == 0:
            with suppress(BaseException):
                (theirs,) = evaluator.evaluate(ops.where_am_i, [(1,)]).outcomes
                evaluator.close()
                os._exit(0 if isinstance(theirs, tuple) and theirs != before else 1)
            os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        assert evaluator.evaluate(ops.where_am_i, [(1,)]).outcomes == [before]


def test_no_process_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with (
        ProcessEvaluator() as evaluator,
        pytest.raises(OperatorError, match="no process can be started for operator isEven"),
    ):
        evaluator.evaluate(ops.is_even, [(1,)])


PARENT = """
import sys
from penstock.operators.worker_process import ProcessEvaluator
from tests.operators.plugins import misbehaving as ops
evaluator = ProcessEvaluator()
evaluator.evaluate(getattr(ops, sys.argv[1]), [(1,)])
sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.parametrize("doing", ["announces", "announces_and_sleeps", "announces_and_freezes"])
def test_a_worker_ends_with_its_killed_parent(doing: str) -> None:
    """Idle, in an operator that hangs, and in one that hangs without letting another thread run."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, doing],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert parent.stderr is not None
    worker = int(parent.stderr.readline())
    parent.kill()
    parent.wait()
    wait_for_the_end_of(worker)


def wait_for_the_end_of(pid: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError(f"process {pid} is still there")
