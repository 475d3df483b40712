"""Spark's progress events per batch: the source of metrics and of progress reports."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, TypeAlias, cast

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from penstock.errors import HomeError
from penstock.pipeline.metrics import MetricsFiles, Totals, batch_metrics
from penstock.storage import Home

LAST_WORDS_SECONDS = 5.0  # events arrive a moment after what they report

Counted: TypeAlias = Callable[[int], dict[str, int]]
"""Counts of a batch by its number."""

_LOGGER = logging.getLogger("penstock.pipeline")


class BatchListener:
    """Collects the progress events of one home's query. Errors in here never stop a run."""

    def __init__(self, home: Home, counted: Counted) -> None:
        self._home = home
        self._counted = counted
        self._files = MetricsFiles(home.metrics)
        self._totals = self._totals_before()
        self._heard: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._ended = threading.Event()

    def _totals_before(self) -> Totals:
        try:
            before = self._files.recent(1)
        except HomeError:
            _LOGGER.warning("metrics start over", exc_info=True)
            return Totals()
        return before[0].totals if before else Totals()

    def news(self) -> Iterator[dict[str, Any]]:
        """The progress of the batches that have ended since the last call."""
        while not self._heard.empty():
            yield self._heard.get()

    def last_news(self) -> Iterator[dict[str, Any]]:
        """The same for a query that has ended."""
        self._ended.wait(LAST_WORDS_SECONDS)
        return self.news()

    def heard(self, text: str) -> None:
        progress = json.loads(text)
        progress["counted"] = self._counted(progress["batchId"])
        if not progress["numInputRows"]:
            return
        self._heard.put(progress)
        try:
            self._note(progress)
        except Exception:
            _LOGGER.warning("no metrics of a batch", exc_info=True)

    def heard_the_end(self) -> None:
        self._ended.set()

    def _note(self, progress: dict[str, Any]) -> None:
        (source,) = progress["sources"]
        metrics = batch_metrics(
            progress,
            log_end=self._home.log.end,
            message_bytes=self._message_bytes(source),
            before=self._totals,
        )
        self._totals = metrics.totals
        self._files.write(metrics)

    def _message_bytes(self, source: dict[str, dict[str, int]]) -> int:
        """The size of what a batch published; 0 if it had been published before."""
        start = (source["startOffset"] or {"position": 0})["position"]
        return self._home.messages.bytes_of(start, source["endOffset"]["position"])


class _FromJava:
    """Receives the progress of a batch from Java as one JSON text.

    PySpark's own listener asks Java for each figure separately, and for each one Java searches all
    its libraries for a class of that name: two fifths of Java's time for a small batch.
    """

    def __init__(self, listener: BatchListener, spark: SparkSession) -> None:
        self._listener = listener
        assert spark._jvm is not None
        package = spark._jvm.org.apache.spark.sql.streaming
        self._jlistener = package.PythonStreamingQueryListenerWrapper(self)  # read by PySpark

    def onQueryStarted(self, event: JavaObject) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: JavaObject) -> None:  # noqa: N802
        self._listener.heard(event.progress().json())

    def onQueryIdle(self, event: JavaObject) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: JavaObject) -> None:  # noqa: N802
        self._listener.heard_the_end()

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


@contextmanager
def listening(spark: SparkSession, home: Home, counted: Counted) -> Iterator[BatchListener]:
    """Listen to the query that runs within the block."""
    listener = BatchListener(home, counted)
    from_java = cast("StreamingQueryListener", _FromJava(listener, spark))
    spark.streams.addListener(from_java)
    try:
        yield listener
    finally:
        spark.streams.removeListener(from_java)
