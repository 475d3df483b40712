"""Plain events column by column: read, and written for the next stage, without Python in between.

`penstock.flow.events` reads one event at a time and says what is wrong with it. Here
thousands are read by one kernel, which gives up on every event that it cannot vouch for; those are
read there. What becomes of the others is packed by kernels too (`packing`).
"""

from penstock.flow.columnar.columns import PlainColumns
from penstock.flow.columnar.reader import ColumnReader, column_reader
from penstock.kernels.packed_values import Packed

__all__ = ["ColumnReader", "Packed", "PlainColumns", "column_reader"]
