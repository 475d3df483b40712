"""Runs a job over the log on Spark, with progress."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from penstock.history.rows import HISTORY_SCHEMA, SORTED_BY, ArrowStep
from penstock.pipeline.failures import pipeline_error
from penstock.pipeline.session import spark_session
from penstock.storage import Home

POLL_SECONDS = 0.2
TASKS_PER_CORE = 2

TaskProgress = Callable[[int, int], None]
"""Called with the number of finished tasks and of all tasks."""


@contextmanager
def job_session(home: Home, master: str, conf: Mapping[str, str] | None) -> Iterator[SparkSession]:
    """Spark for a job that only reads the home. PipelineError if it does not start or fails.

    Its output goes to a separate file, beside that of a pipeline that may be running.
    """
    log_file = home.path / "logs" / "history.log"
    spark = spark_session(master=master, conf=conf, log_file=log_file)
    try:
        yield spark
    except (PySparkException, Py4JError) as error:
        raise pipeline_error(error, log_file) from error


def brought_together(flow: DataFrame, stretches: int, step: ArrowStep) -> tuple[DataFrame, int]:
    """The next step of a job, which sees the rows of each place in one task, sorted; and its number
    of tasks."""
    tasks = max(flow.sparkSession.sparkContext.defaultParallelism * TASKS_PER_CORE, stretches)
    placed = flow.repartition(tasks, "place").sortWithinPartitions(*SORTED_BY)
    return placed.mapInArrow(step, HISTORY_SCHEMA), tasks


@contextmanager
def tasks_told(spark: SparkSession, total: int, tell: TaskProgress | None) -> Iterator[None]:
    """Report how many tasks of the jobs started by this thread are done."""
    if tell is None:
        yield
        return
    group = uuid.uuid4().hex
    spark.sparkContext.setJobGroup(group, "penstock history")
    done = threading.Event()
    teller = threading.Thread(target=_tell, args=(spark, group, total, tell, done), daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


def _tell(
    spark: SparkSession, group: str, total: int, tell: TaskProgress, done: threading.Event
) -> None:
    tracker = spark.sparkContext.statusTracker()
    while not done.wait(POLL_SECONDS):
        stages = set()
        for job in tracker.getJobIdsForGroup(group):
            info = tracker.getJobInfo(job)
            stages |= set(info.stageIds) if info is not None else set()
        known = filter(None, map(tracker.getStageInfo, stages))
        finished = sum(stage.numCompletedTasks for stage in known)
        tell(min(finished, total), total)
