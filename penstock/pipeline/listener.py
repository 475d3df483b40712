"""A listener of Spark's that writes metrics after every batch."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from penstock.log import Home
from penstock.log.batchfile import batch_name
from penstock.log.messagelog import SUFFIX
from penstock.pipeline.metrics import MetricsFiles, Totals, batch_metrics

LAST_WORDS_SECONDS = 5.0  # events come a moment after what they tell of

_LOGGER = logging.getLogger("penstock.pipeline")


class MetricsListener(StreamingQueryListener):
    """Hears of every batch of one home's query. What goes wrong here never stops a run."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._files = MetricsFiles(home.metrics)
        before = self._files.recent(1)
        self._totals = before[0].totals if before else Totals()
        self.ended = threading.Event()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        try:
            self._note(event.progress.json)
        except Exception:
            _LOGGER.warning("no metrics of a batch", exc_info=True)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        self.ended.set()

    def _note(self, text: str) -> None:
        progress = json.loads(text)
        if not progress["numInputRows"]:
            return
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
        """The size of what a batch published; nothing, if that was published before."""
        start = (source["startOffset"] or {"position": 0})["position"]
        name = batch_name(start, source["endOffset"]["position"], SUFFIX)
        path = self._home.messages.directory / name
        return path.stat().st_size if path.exists() else 0


@contextmanager
def metrics_written(spark: SparkSession, home: Home) -> Iterator[None]:
    """Write the metrics of the query that runs within."""
    listener = MetricsListener(home)
    spark.streams.addListener(listener)
    try:
        yield
        listener.ended.wait(LAST_WORDS_SECONDS)
    finally:
        spark.streams.removeListener(listener)
