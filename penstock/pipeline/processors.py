"""The stages with state, as Spark runs them: thin shells that carry the path of the home.

Spark loads these classes in several processes that never see a row, to ask for their schemas. So
what the work needs is imported when there is work: it takes a second of processor time.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from penstock.garbage import without_garbage
from penstock.pipeline.rows import ARROW_SCHEMA, BUCKETS, Inbox, RowBuffer
from penstock.pipeline.workers import settle

if TYPE_CHECKING:
    from penstock.pipeline.faults import BucketStage
    from penstock.pipeline.state import BucketState

# Not as text: each task would have Java parse it.
KEY_SCHEMA = StructType([StructField("name", StringType()), StructField("key", BinaryType())])
VALUE_SCHEMA = StructType([StructField("value", BinaryType())])

_ROW = Row(*ARROW_SCHEMA.names)


class _Processor(StatefulProcessor):
    """All rows of one bucket in one batch go through `handleInputRows` at once."""

    state: str

    def __init__(self, home: str, term: str) -> None:
        self._home = home
        self._term = term

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._stored = handle.getMapState(self.state, KEY_SCHEMA, VALUE_SCHEMA)

    def close(self) -> None:
        pass

    def handleInputRows(self, key: Any, rows: Any, timerValues: TimerValues) -> Iterator[Row]:
        from penstock.pipeline.faults import advance_safely
        from penstock.pipeline.view import worker_view

        view, bucket = worker_view(self._home), int(key[0])
        with without_garbage(), self._opened(bucket) as state:
            sent = self._sent(
                advance_safely(self._stage(), bucket, Inbox.of_rows(rows), state, view)
            )
        settle((self._home, view.active))
        return sent

    @abstractmethod
    def _stage(self) -> BucketStage:
        """What brings one bucket through one batch."""

    def _opened(self, bucket: int) -> AbstractContextManager[BucketState]:
        """The state of a bucket. It is written whole now and then, other buckets at other times."""
        from penstock.pipeline.state import BucketState, Mirror, mirror_directory

        mirror = Mirror(mirror_directory(self._term) / f"{self.state}-{bucket}")
        patience = 1 + BUCKETS.index(bucket) / len(BUCKETS)
        return BucketState.opened(self._stored, mirror, patience)

    def _sent(self, out: RowBuffer) -> Iterator[Row]:
        from penstock.pipeline.view import worker_home

        chunks = out.to_rows(worker_home(self._home).staging)
        return iter([_ROW(*chunk) for chunk in chunks])


class RowProcessor(_Processor):
    state = "rows"

    def _stage(self) -> BucketStage:
        from penstock.pipeline.faults import ROWS

        return ROWS


class JoinProcessor(_Processor):
    state = "groups"

    def _stage(self) -> BucketStage:
        from penstock.pipeline.faults import GROUPS

        return GROUPS
