"""A failed query is told in a few lines; all of it is kept in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.pipeline.failures import distil, pipeline_error

JAVA = """
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(Python.scala)
Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:2898)
"""

FROM_A_WORKER = f"""[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted
Traceback (most recent call last):
  File "worker.py", line 10, in main
    process()
  File "log.py", line 77, in _read
    raise self._damaged()
penstock.errors.CorruptionError: 0000.log is damaged at byte 40: the checksum of a frame is wrong
  detail: file 0000.log; nothing from there on has been read
  hint: restore this file from a backup
{JAVA}"""

FROM_A_STRANGER = f"""[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Aborted
Traceback (most recent call last):
  File "worker.py", line 10, in main
ZeroDivisionError: division by zero
{JAVA}"""

# Errors that say nothing, or whose kind does not look like that of an error.
FROM_A_SILENT_STRANGER = f"""Job aborted
Traceback (most recent call last):
  File "worker.py", line 10, in main
BrokenPipeError
{JAVA}"""

FROM_ARROW = f"""Job aborted
Traceback (most recent call last):
  File "told.py", line 10, in _write
pyarrow.lib.ArrowInvalid: No space left on device
{JAVA}"""

# A worker with a full disk may not get all of it out.
FROM_A_TORN_TRACE = """[STREAM_FAILED] Query [id = 1] terminated with exception: Aborted
Traceback (most recent call last):
  File "worker.py", line 1"""

FROM_JAVA = """[STREAM_FAILED] Query [id = 1] terminated with exception: No space left on device
java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
"""

QUERY = """=== Streaming Query ===
Identifier: penstock [id = 1, runId = 2]
Current Committed Offsets: {org.apache.spark.sql.execution.PythonMicroBatchStream@1: {}}
"""

FROM_STATE = f"""[STREAM_FAILED] Query [id = 1] terminated with exception: [CANNOT_LOAD_STATE_STORE]
{QUERY}
org.apache.spark.sql.streaming.StreamingQueryException: [CANNOT_LOAD_STATE_STORE] An error occurred.
{QUERY}
\tat org.apache.spark.sql.execution.streaming.runtime.StreamExecution.runStream(Stream.scala:394)
Caused by: org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE] An error occurred.
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotLoadStore(Errors.scala:2941)
Caused by: org.apache.hadoop.fs.ChecksumException: Checksum error: file:/shop/checkpoint/5.changelog
\tat org.apache.hadoop.fs.FSInputChecker.verifySums(FSInputChecker.java:347)
\t... 1 more
"""

FROM_THE_QUERY = f"""[STREAM_FAILED] Query [id = 1] terminated with exception: No luck
{QUERY}
java.lang.IllegalStateException: No luck
{QUERY}
\tat org.apache.spark.sql.execution.streaming.runtime.StreamExecution.runStream(Stream.scala:394)
"""

FROM_STARTING = """An error occurred while calling o2137.start.
: org.apache.spark.SparkClassNotFoundException: [DATA_SOURCE_NOT_FOUND] Failed to find it.
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.dataSourceNotFoundError(Query.scala:770)
"""


def test_an_error_of_ours_speaks_for_itself() -> None:
    primary, detail = distil(FROM_A_WORKER)
    assert primary == "0000.log is damaged at byte 40: the checksum of a frame is wrong"
    assert detail.splitlines() == [
        "detail: file 0000.log; nothing from there on has been read",
        "hint: restore this file from a backup",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (FROM_A_STRANGER, "ZeroDivisionError: division by zero"),
        (FROM_JAVA, "IOException: No space left on device"),
        (
            FROM_STARTING,
            "SparkClassNotFoundException: [DATA_SOURCE_NOT_FOUND] Failed to find it.",
        ),
        (FROM_STATE, "ChecksumException: Checksum error: file:/shop/checkpoint/5.changelog"),
        (FROM_THE_QUERY, "IllegalStateException: No luck"),
        (FROM_A_SILENT_STRANGER, "BrokenPipeError"),
        (FROM_ARROW, "ArrowInvalid: No space left on device"),
        (FROM_A_TORN_TRACE, "[STREAM_FAILED] Query [id = 1] terminated with exception: Aborted"),
        ("\n\n  something else entirely", "something else entirely"),
        ("a\nCaused by: java.io.IOException\n\tat x", "java.io.IOException"),
        ("", "Spark gave no reason"),
    ],
)
def test_other_errors_are_named(text: str, expected: str) -> None:
    assert distil(text) == (expected, "")


def test_all_of_it_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "spark.log"
    error = pipeline_error(RuntimeError(FROM_A_WORKER), log)
    assert error.primary.startswith("the pipeline stopped: 0000.log is damaged")
    assert error.detail == "file 0000.log; nothing from there on has been read"
    assert error.hint.startswith("restore this file from a backup; ")
    assert "org.apache" not in str(error)
    assert str(log) in error.hint
    assert "DAGScheduler" in log.read_text()


@pytest.mark.parametrize(
    "text",
    [
        "org.apache.hadoop.fs.ChecksumException: Checksum error: file:/shop/checkpoint/offsets/1",
        "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state.",
        "java.io.FileNotFoundException: File file:/shop/checkpoint/state/0/0/1.zip does not exist",
    ],
)
def test_a_damaged_checkpoint_can_be_helped(text: str, tmp_path: Path) -> None:
    error = pipeline_error(RuntimeError(text), tmp_path / "logs" / "spark.log")
    assert f"penstock verify {tmp_path} says where" in error.hint
    assert f"remove what is in {tmp_path / 'checkpoint'}" in error.hint


def test_other_failures_do_not_blame_the_checkpoint(tmp_path: Path) -> None:
    for text in (FROM_A_WORKER, FROM_A_STRANGER, FROM_JAVA, FROM_STARTING):
        error = pipeline_error(RuntimeError(text), tmp_path / "logs" / "spark.log")
        assert "checkpoint" not in error.hint


def test_a_full_disk_can_be_helped(tmp_path: Path) -> None:
    error = pipeline_error(RuntimeError(FROM_JAVA), tmp_path / "logs" / "spark.log")
    assert error.hint.startswith(f"the disk seems to be full: make room for {tmp_path}")


def test_a_dead_worker_can_be_helped(tmp_path: Path) -> None:
    text = "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)"
    error = pipeline_error(RuntimeError(text), tmp_path / "logs" / "spark.log")
    assert error.hint.startswith("look how much memory was free, then run it again")


def test_it_is_told_even_if_it_cannot_be_kept(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("in the way")
    error = pipeline_error(RuntimeError(FROM_JAVA), tmp_path / "logs" / "spark.log")
    assert "No space left on device" in error.primary
