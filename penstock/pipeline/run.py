"""Running the pipeline: from the log of a home to its message log, through Spark.

There is one streaming query. Subscriptions are data that it reads, so the query does not change
with them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.errors import PenstockError
from penstock.flow.graph import FLOW, tasks_of
from penstock.joins import family_of
from penstock.pipeline.allocator import keep_memory
from penstock.pipeline.buckets import CHUNK_SCHEMA
from penstock.pipeline.checkpoint import check_home
from penstock.pipeline.failures import pipeline_error
from penstock.pipeline.in_java import settings_elsewhere
from penstock.pipeline.listener import BatchListener, listening
from penstock.pipeline.moved_checkpoint import correct_paths
from penstock.pipeline.offsets import BATCH_BYTES, StreamOffset
from penstock.pipeline.preflight import check_before_run, check_operators
from penstock.pipeline.processors import TaskProcessor
from penstock.pipeline.session import JVM_EXIT_GRACE_SECONDS, end_of_java, spark_session
from penstock.pipeline.sink import MessageSink, sweep_staging
from penstock.pipeline.source import SOURCE_NAME, LogSource
from penstock.pipeline.worker_index import SCHEME
from penstock.storage import Home, claim_family, umask_of

BATCH_ROWS = 50_000
"""Fixed costs of some 0.3 s per batch weigh little against this many rows, and they fit in
memory."""

TRIGGER = "200 milliseconds"
"""How often to poll for new records. A batch takes longer than this, so it matters only when
idle."""

# There are few rows: chunks of thousands. Generating code for them in every batch does not pay (900
# -> 620 ms for a small batch without). Other queries of the session have other rows.
_LIGHT = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Describing every batch for the UI costs time, and hardly anybody looks at it.
    "spark.sql.ui.explainMode": "simple",
}

POLL_SECONDS = 0.1
STOP_GRACE_SECONDS = 30.0  # for a batch to end when asked to stop; then it is cancelled

_NO_ANSWER = ConnectionRefusedError | ConnectionResetError


@dataclass(frozen=True, slots=True)
class Progress:
    """One finished batch."""

    batch: int
    done: int
    """The records before this offset are processed."""
    total: int
    """The end of the log."""
    messages: int
    bad: int
    seconds: float
    skipped: int = 0
    """Events that ask for no change."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What a run did."""

    batches: int
    position: int
    messages: int
    bad: int
    seconds: float
    skipped: int = 0
    """Events that ask for no change."""


@dataclass(frozen=True, slots=True)
class _Batches:
    """Limits of batches."""

    most_rows: int
    most_bytes: int
    latency_ms: int
    """Target duration of a batch; 0: no target."""


def run(
    home: Path,
    *,
    once: bool = False,
    master: str = "local[*]",
    conf: Mapping[str, str] | None = None,
    batch_rows: int = BATCH_ROWS,
    batch_bytes: int = BATCH_BYTES,
    latency_ms: int | None = None,
    ui: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
    stop: threading.Event | None = None,
    flow: str = FLOW,
) -> RunSummary:
    """Process the log of a home: up to its present end (`once`), or until `stop` is set.

    LockedError if another process is processing the home, HomeError if its parts do not fit
    together, PipelineError if Spark does not start or the query fails. Spark is kept for the next
    run of this process, and ends with it. A batch has at most `batch_rows` records and
    `batch_bytes` of the log; with `latency_ms`, fewer if it would take longer than that. `flow`
    selects other stages than the default ones (`penstock.flow.graph`).
    """
    opened = Home.open(home.resolve())
    log_file = opened.path / "logs" / "spark.log"
    began = time.monotonic()
    with opened.processing_lock("pipeline") as processing:
        check_home(opened)
        correct_paths(opened.checkpoint)
        claim_family(opened, family_of(SCHEME), "the pipeline")
        check_before_run(opened)
        check_operators(opened)
        keep_memory()
        sweep_staging(opened.staging)
        spark = spark_session(
            master=master,
            conf=conf,
            ui=ui,
            log_file=log_file,
            held_descriptors=[processing.descriptor],
            umask=umask_of(opened.path),
        )
        done: list[Progress] = []
        sink = MessageSink(opened, processing.term)
        try:
            with listening(spark, opened, sink.counted) as listener:
                batches = _Batches(batch_rows, batch_bytes, latency_ms or 0)
                stages = _stages(spark, str(opened.path), processing.term, batches, flow)
                settings = {name: (conf or {}).get(name, ours) for name, ours in _LIGHT.items()}
                for told in _process(
                    lambda: _started(spark, settings, stages, sink, opened.checkpoint, once),
                    listener,
                    sink,
                    stop or threading.Event(),
                ):
                    done.append(_progress(told, opened))
                    if on_progress is not None:
                        on_progress(done[-1])
        except PenstockError:
            raise
        except Exception as error:
            raise _failure(sink.failure or error, log_file) from error
        return _summary(opened, done, time.monotonic() - began)


def _failure(error: Exception, log_file: Path) -> Exception:
    """If Java has ended, that is the cause, whatever error PySpark raised."""
    answered = isinstance(error, PySparkException | Py4JJavaError)
    ended = end_of_java(0.0 if answered else JVM_EXIT_GRACE_SECONDS)
    if ended is not None:
        return ended
    if isinstance(error, PySparkException | Py4JError | _NO_ANSWER):
        return pipeline_error(error, log_file)
    return error


def _process(
    start: Callable[[], StreamingQuery],
    listener: BatchListener,
    sink: MessageSink,
    stop: threading.Event,
) -> Iterator[dict[str, Any]]:
    """Spark's reports of batches. A query that failed on records which are now set aside is
    restarted."""
    while True:
        try:
            yield from _follow(start(), listener, stop)
            return
        except (PySparkException, Py4JError):
            if not sink.has_found_faults():
                raise


def _started(
    spark: SparkSession,
    settings: Mapping[str, str],
    stages: DataFrame,
    sink: MessageSink,
    checkpoint: Path,
    once: bool,
) -> StreamingQuery:
    with _settings(spark, settings):
        query = _start(stages, sink, checkpoint, once)
    settings_elsewhere(spark, settings)
    return query


def _start(stages: DataFrame, sink: MessageSink, checkpoint: Path, once: bool) -> StreamingQuery:
    writer = (
        stages.writeStream.foreachBatch(sink.take)
        .queryName("penstock")
        .outputMode("append")
        .option("checkpointLocation", str(checkpoint))
    )
    writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=TRIGGER)
    return writer.start()


@contextmanager
def _settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """For a query started within the block, which copies the settings."""
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, earlier in before.items():
            assert earlier is not None
            spark.conf.set(name, earlier)


def _make_active(spark: SparkSession) -> None:
    """Spark looks for data sources in the session of the thread, which only the creating thread
    has."""
    sessions = SparkSession._get_j_spark_session_class(spark._jvm)
    sessions.setActiveSession(spark._jsparkSession)


def _stages(spark: SparkSession, path: str, term: str, batches: _Batches, flow: str) -> DataFrame:
    """From the log to the input of the sink."""
    _make_active(spark)
    spark.dataSource.register(LogSource)
    stream = (
        spark.readStream.format(SOURCE_NAME)
        .option("path", path)
        .option("batch_rows", batches.most_rows)
        .option("batch_bytes", batches.most_bytes)
        .option("latency_ms", batches.latency_ms)
        .option("flow", flow)
        .option("partitions", spark.sparkContext.defaultParallelism)
        .load()
    )
    for number, task in enumerate(tasks_of(flow)[1:], 1):
        processor = TaskProcessor(path, term, flow, number, task[0].name)
        stream = stream.groupBy("bucket").transformWithState(
            processor, CHUNK_SCHEMA, "append", "none"
        )
    return stream


def _follow(
    query: StreamingQuery, listener: BatchListener, stop: threading.Event
) -> Iterator[dict[str, Any]]:
    """Spark's reports of a query's batches as they end, until the query ends or `stop` is set."""
    try:
        # Raises the error the query failed with. Takes fractions of a second, despite its type.
        while not query.awaitTermination(POLL_SECONDS):  # type: ignore[arg-type]
            yield from listener.news()
            if stop.is_set():
                _await_rest(query)
                query.stop()
        yield from listener.last_news()
    finally:
        if query.isActive:
            query.stop()


def _await_rest(query: StreamingQuery) -> None:
    """Wait for the current batch to finish: cancelling it is safe, but wastes its work."""
    deadline = time.monotonic() + STOP_GRACE_SECONDS
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS / 10)


def _progress(progress: dict[str, Any], home: Home) -> Progress:
    (source,) = progress["sources"]
    counted = progress["counted"]
    return Progress(
        batch=progress["batchId"],
        done=StreamOffset.from_json(source["endOffset"]).position,
        total=home.log.end,
        messages=counted.get("messages", 0),
        bad=counted.get("bad", 0),
        seconds=progress["batchDuration"] / 1000,
        skipped=counted.get("skipped", 0),
    )


def _summary(home: Home, done: list[Progress], seconds: float) -> RunSummary:
    frontier = home.messages.frontier
    return RunSummary(
        batches=len(done),
        position=0 if frontier is None else frontier.end,
        messages=sum(progress.messages for progress in done),
        bad=sum(progress.bad for progress in done),
        seconds=seconds,
        skipped=sum(progress.skipped for progress in done),
    )
