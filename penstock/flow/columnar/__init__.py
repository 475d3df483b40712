"""The fast gear of decoding: plain events are parsed into columns and packed by kernels.

`penstock.flow.events` reads one event at a time and reports errors. Here one kernel call parses
thousands of events; every event that it cannot fully validate is not *plain* and falls back to
`penstock.flow.events`. The parsed events are packed by kernels, too (`pack_rows`).
"""

from penstock.flow.columnar.columns import PlainColumns
from penstock.flow.columnar.reader import ColumnReader, column_reader
from penstock.kernels.packed_values import Packed

__all__ = ["ColumnReader", "Packed", "PlainColumns", "column_reader"]
