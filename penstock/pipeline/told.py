"""Messages on their way to the sink: Arrow batches, sorted, so that what is left is to merge them.

The sink puts all messages of a batch in order by position and bytes, whoever computed them; it is
the one part of a batch that a single process does. So workers sort what they have, and the sink
looks at the bytes of a message only where messages of one position come from different workers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_SCHEMA = pa.schema([("offset", pa.int64()), ("step", pa.int32()), ("body", pa.binary())])


def pack_messages(rows: Sequence[tuple[int, int, bytes]]) -> bytes:
    """Sorted rows of offset, step and body as one Arrow stream."""
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    arrays = [pa.array(c, f.type) for c, f in zip(columns, _SCHEMA, strict=True)]
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, _SCHEMA) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA))
    packed: bytes = out.getvalue().to_pybytes()
    return packed


def merged_bodies(chunks: Sequence[bytes]) -> list[bytes]:
    """The bodies of all messages, by offset, step and bytes."""
    tables = [pa.ipc.open_stream(chunk).read_all() for chunk in chunks]
    if not tables:
        return []
    table = pa.concat_tables(tables)
    offsets, steps = table.column("offset").to_numpy(), table.column("step").to_numpy()
    order = np.lexsort((steps, offsets))
    bodies: list[bytes] = table.column("body").combine_chunks().take(pa.array(order)).to_pylist()
    chunk_of = np.repeat(np.arange(len(tables)), [one.num_rows for one in tables])[order]
    for first, last in _mixed(offsets[order], steps[order], chunk_of):
        bodies[first:last] = sorted(bodies[first:last])
    return bodies


def _mixed(
    offsets: npt.NDArray[np.int64], steps: npt.NDArray[np.int32], chunk_of: npt.NDArray[np.int64]
) -> list[tuple[int, int]]:
    """The stretches of messages of one position that come from several chunks."""
    if len(offsets) < 2:
        return []
    is_same = (np.diff(offsets) == 0) & (np.diff(steps) == 0)
    starts = np.concatenate([[0], np.flatnonzero(~is_same) + 1])
    ends = np.append(starts[1:], len(offsets))
    is_mixed = np.concatenate([[0], np.cumsum(is_same & (np.diff(chunk_of) != 0))])
    found = is_mixed[ends - 1] > is_mixed[starts]
    return list(zip(starts[found].tolist(), ends[found].tolist(), strict=True))
