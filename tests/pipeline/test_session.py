"""The settings hold, the console stays quiet, nothing is left behind, failures are explained."""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import py4j
import pyspark
import pytest
from pyspark.sql import SparkSession

from penstock.errors import PipelineError
from penstock.pipeline.allocator import ENVIRONMENT, keep_memory
from penstock.pipeline.in_java import settings_elsewhere
from penstock.pipeline.session import (
    MAX_SOCKET_DIRECTORY,
    STATE_PARTITIONS,
    _socket_directory,
    retrying,
    spark_session,
)
from penstock.pipeline.spark_home import lean_spark_home

pytestmark = pytest.mark.spark

SUBPROCESS_TIMEOUT_SECONDS = 180

STATEFUL_STREAM = """
    import sys, time
    from pathlib import Path
    import pandas as pd
    from pyspark.sql.streaming import StatefulProcessor
    from penstock.pipeline.session import spark_session

    class Count(StatefulProcessor):
        def init(self, handle):
            self.count = handle.getValueState("count", "n long")

        def handleInputRows(self, key, rows, timerValues):
            old = self.count.get()
            n = (old[0] if old else 0) + sum(len(part) for part in rows)
            self.count.update((n,))
            print("a worker prints")
            yield pd.DataFrame({"bucket": [key[0]], "n": [n]})

        def close(self):
            pass

    spark = spark_session(master="local[2]", log_file=Path("logs/spark.log"))
    stream = (
        spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 100).load()
        .selectExpr("cast(value % 4 as int) bucket").groupBy("bucket")
        .transformWithStateInPandas(Count(), "bucket int, n long", "append", "none")
        .writeStream.format("noop").option("checkpointLocation", "checkpoint").start()
    )
    while not any(p["batchId"] >= 1 for p in stream.recentProgress):
        time.sleep(0.1)
        if stream.exception():
            raise stream.exception()
    stream.stop()
    print("done")
"""


def run_python(code: str, directory: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, with temporary files of its own."""
    temporary = directory / "tmp"
    temporary.mkdir(exist_ok=True)
    work = directory / "work"
    work.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=work,
        env={**os.environ, "TMPDIR": str(temporary), **environ},
        capture_output=True,
        text=True,
        timeout=SUBPROCESS_TIMEOUT_SECONDS,
        check=False,
    )


def wait_until(condition: object, seconds: float = 30) -> None:
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def make_executable(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_settings_that_state_depends_on(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.shuffle.partitions") == str(STATE_PARTITIONS)
    provider = spark.conf.get("spark.sql.streaming.stateStore.providerClass")
    assert provider is not None
    assert provider.endswith("RocksDBStateStoreProvider")
    manager = spark.conf.get("spark.sql.streaming.checkpointFileManagerClass")
    assert manager is not None
    assert manager.endswith("FileSystemBasedCheckpointFileManager")
    changelog = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
    assert spark.conf.get(changelog) == "true"


def test_grouping_uses_the_state_partitions(spark: SparkSession) -> None:
    # With adaptive execution Spark would merge small partitions again.
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        grouped = spark.range(1000).groupBy("id").count()
        assert grouped.rdd.getNumPartitions() == STATE_PARTITIONS
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")


def test_timestamps_are_utc(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    shown = spark.sql("SELECT string(timestamp_seconds(0)) AS t").first()
    assert shown is not None
    assert shown["t"] == "1970-01-01 00:00:00"
    frame: Any = spark.sql("SELECT timestamp_seconds(0) AS t").toPandas()
    assert frame["t"][0] == datetime(1970, 1, 1)


def test_workers_run_this_python(spark: SparkSession) -> None:
    def executables(batches):  # type: ignore[no-untyped-def]
        import sys

        import pyarrow as pa

        for batch in batches:
            yield pa.RecordBatch.from_pydict({"path": [sys.executable] * batch.num_rows})

    rows = spark.range(4).mapInArrow(executables, "path string").collect()
    assert {row.path for row in rows} == {sys.executable}


def test_workers_find_compiled_modules(spark: SparkSession) -> None:
    """Those of an archive would be compiled in every process anew."""

    def modules(_: Any) -> Iterator[str]:
        import py4j
        import pyspark

        yield from (str(pyspark.__file__), str(py4j.__file__))

    found = spark.sparkContext.parallelize([0], 1).mapPartitions(modules).collect()
    assert found == [pyspark.__file__, py4j.__file__]


def test_java_finds_spark_in_a_place_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    with lean_spark_home(tmp_path):
        home = Path(os.environ["SPARK_HOME"])
        assert home.parent == tmp_path
        assert (home / "bin" / "spark-submit").exists()
        assert any((home / "jars").glob("spark-core*.jar"))
        assert not (home / "python").exists()
    assert "SPARK_HOME" not in os.environ
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    with lean_spark_home(tmp_path):
        assert os.environ["SPARK_HOME"] == "/opt/spark"


def test_a_running_session_is_returned_again(spark: SparkSession) -> None:
    again = spark_session("other name", master="local[1]")
    assert again.sparkContext is spark.sparkContext


def test_a_running_session_takes_only_what_it_can(spark: SparkSession) -> None:
    name = "spark.sql.files.maxPartitionBytes"
    try:
        assert spark_session(conf={name: "1234567"}).conf.get(name) == "1234567"
    finally:
        spark.conf.unset(name)
    with pytest.raises(PipelineError, match=r"spark\.driver\.memory cannot be changed"):
        spark_session(conf={"spark.driver.memory": "3g"})


@pytest.mark.slow
def test_a_stateful_stream_is_quiet_and_leaves_nothing_behind(tmp_path: Path) -> None:
    result = run_python(STATEFUL_STREAM, tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")
    assert {path.name for path in (tmp_path / "work").iterdir()} == {"checkpoint", "logs"}
    assert list((tmp_path / "tmp").glob("penstock-*")) == []
    # Nothing is lost: what would have been on the console is in the file.
    assert "a worker prints" in (tmp_path / "work" / "logs" / "spark.log").read_text()


@pytest.mark.slow
def test_settings_given_win_and_the_next_session_starts_afresh(tmp_path: Path) -> None:
    code = """
        from penstock.pipeline.session import spark_session
        name = "spark.sql.shuffle.partitions"
        given = {"spark.executor.memory": "600m", "spark.driver.extraClassPath": "/nowhere"}
        first = spark_session(master="local[1]", conf={name: "5", **given})
        print(first.conf.get(name), first.sparkContext.getConf().get("spark.executor.memory"))
        first.stop()
        second = spark_session("second", master="local[1]")
        print(second.conf.get(name), second.sparkContext.appName, second.range(3).count())
    """
    result = run_python(code, tmp_path)
    assert (result.stdout, result.stderr) == ("5 600m\n2 second 3\n", "")
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.slow
def test_a_lock_outlives_a_killed_python_until_java_is_gone(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    code = f"""
        import fcntl, os, signal
        from penstock.pipeline.session import spark_session
        lock = os.open({str(lock)!r}, os.O_CREAT | os.O_RDWR)
        fcntl.flock(lock, fcntl.LOCK_EX)
        spark = spark_session(master="local[1]", held_descriptors=[lock])
        java = spark.sparkContext._gateway.proc.pid
        os.kill(java, signal.SIGSTOP)
        print(java, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    result = run_python(code, tmp_path)
    assert result.returncode == -signal.SIGKILL, result.stderr
    java = int(result.stdout)

    def is_free() -> bool:
        with lock.open("r+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return False
            return True

    try:
        assert not is_free()
    finally:
        os.kill(java, signal.SIGCONT)
    wait_until(is_free)


@pytest.mark.slow
def test_java_that_was_killed_is_explained(tmp_path: Path) -> None:
    code = """
        from penstock.errors import PipelineError
        from penstock.pipeline.session import spark_session
        java = spark_session(master="local[1]").sparkContext._gateway.proc
        java.kill()
        java.wait()
        try:
            spark_session(master="local[1]")
        except PipelineError as error:
            print(error)
    """
    result = run_python(code, tmp_path)
    assert result.returncode == 0
    assert "Java process has ended" in result.stdout
    assert "killed by signal 9 (SIGKILL)" in result.stdout


def fails_to_start(directory: Path, **environ: str) -> str:
    code = """
        from penstock.errors import PipelineError
        from penstock.pipeline.session import spark_session
        try:
            spark_session(master="local[1]")
        except PipelineError as error:
            print(error)
    """
    result = run_python(code, directory, **environ)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return result.stdout


def test_missing_java_is_explained(tmp_path: Path) -> None:
    message = fails_to_start(tmp_path, JAVA_HOME=str(tmp_path / "nowhere"))
    assert "Spark cannot run here." in message
    assert "nowhere/bin/java, which cannot be run" in message
    assert "openjdk-17-jre-headless" in message


def test_old_java_is_explained(tmp_path: Path) -> None:
    old = 'if [ "$1" = -version ]; then echo \'openjdk version "11.0.2"\' >&2; else exit 1; fi'
    make_executable(tmp_path / "old" / "bin" / "java", old)
    message = fails_to_start(tmp_path, JAVA_HOME=str(tmp_path / "old"))
    assert "is Java 11; Spark needs 17 or newer" in message


def test_java_that_breaks_is_quoted(tmp_path: Path) -> None:
    broken = (
        'if [ "$1" = -version ]; then echo \'openjdk version "17.0.1"\' >&2; '
        "else echo 'There is not enough memory' >&2; exit 1; fi"
    )
    make_executable(tmp_path / "broken" / "bin" / "java", broken)
    message = fails_to_start(tmp_path, JAVA_HOME=str(tmp_path / "broken"))
    assert "ended while starting" in message
    assert "There is not enough memory" in message


@pytest.mark.slow
def test_a_bad_setting_is_quoted(tmp_path: Path) -> None:
    code = """
        from penstock.errors import PipelineError
        from penstock.pipeline.session import spark_session
        for master, conf in [("nonsense", {}), ("local[1]", {"spark.driver.maxResultSize": "x"})]:
            try:
                spark_session(master=master, conf=conf)
            except PipelineError as error:
                print(error)
    """
    result = run_python(code, tmp_path)
    assert "Master must either be" in result.stdout
    assert "maxResultSize" in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local", "local[1,4]"),
        ("local[2]", "local[2,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2,1]", "local[2,1]"),
        ("spark://host:7077", "spark://host:7077"),
    ],
)
def test_a_task_whose_worker_is_killed_is_tried_again(master: str, expected: str) -> None:
    assert retrying(master) == expected


def test_sockets_have_short_names() -> None:
    assert _socket_directory(Path("/tmp/short")) == Path("/tmp/short")
    elsewhere = _socket_directory(Path("/long" * 20))
    assert len(str(elsewhere)) <= MAX_SOCKET_DIRECTORY
    assert elsewhere.parent == Path("/tmp")
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o700, "nobody else may talk to our workers"


def test_threads_without_a_session_have_settings(spark: SparkSession) -> None:
    name = "spark.sql.codegen.factoryMode"
    java: Any = spark._jvm
    session = java.org.apache.spark.sql.classic.SparkSession
    settings = java.org.apache.spark.sql.internal.SQLConf
    settings_elsewhere(spark, {name: "NO_CODEGEN"})
    assert settings.get().getConfString(name) == "FALLBACK"
    session.clearActiveSession()
    try:
        assert settings.get().getConfString(name) == "NO_CODEGEN"
    finally:
        session.setActiveSession(spark._jsparkSession)


def test_memory_is_kept_for_the_next_batch(spark: SparkSession) -> None:
    def environment(_: Any) -> Iterator[dict[str, str]]:
        yield dict(os.environ)

    keep_memory()
    (of_worker,) = spark.sparkContext.parallelize([0], 1).mapPartitions(environment).collect()
    assert ENVIRONMENT.items() <= of_worker.items()


def test_local_files_are_made_without_processes(spark: SparkSession, tmp_path: Path) -> None:
    java: Any = spark._jvm
    configuration = spark._jsc.hadoopConfiguration()
    files = java.org.apache.hadoop.fs.FileSystem.getLocal(configuration)
    assert files.getClass().getName() == "penstock.QuickLocalFileSystem"
    path = java.org.apache.hadoop.fs.Path(str(tmp_path / "made"))
    files.create(path).close()
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o600, "for nobody else"
    assert (tmp_path / ".made.crc").exists()
    for mode in (0o640, 0o755, 0o1777, 0o600):
        files.setPermission(path, java.org.apache.hadoop.fs.permission.FsPermission(f"{mode:o}"))
        assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == mode
    (tmp_path / "of-a-group").mkdir()
    (tmp_path / "of-a-group").chmod(0o2770)
    directory = java.org.apache.hadoop.fs.Path(str(tmp_path / "of-a-group"))
    files.setPermission(directory, java.org.apache.hadoop.fs.permission.FsPermission("750"))
    assert stat.S_IMODE((tmp_path / "of-a-group").stat().st_mode) == 0o2750, "hands its group on"
