"""Messages on their way to the sink: Arrow files, sorted, so that what is left is to merge them.

The sink puts all messages of a batch in order by position and bytes, whoever computed them; it is
the one part of a batch that a single process does. So workers sort what they have, and the sink
looks at the bytes of a message only where messages of one position come from different workers.
Spark carries the names of the files: it would copy each message from process to process.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.log.disk import os_errors

STAGED_SUFFIX = ".arrow"

_POSITION = itemgetter(0, 1)
_SCHEMA = pa.schema([("offset", pa.int64()), ("step", pa.int32()), ("body", pa.large_binary())])


Run: TypeAlias = tuple[int, int, list[bytes]]
"""Some messages of one position (offset and step), in the order of their bytes."""


def stage(runs: list[Run], directory: Path) -> str:
    """Put messages into a file that nobody else writes; its name."""
    ordered = list(_in_order(runs))
    counts = [len(bodies) for _, _, bodies in ordered]
    offsets = np.repeat(np.array([offset for offset, _, _ in ordered], np.int64), counts)
    steps = np.repeat(np.array([step for _, step, _ in ordered], np.int32), counts)
    bodies = list(chain.from_iterable([bodies for _, _, bodies in ordered]))
    arrays = [pa.array(offsets), pa.array(steps), pa.array(bodies, pa.large_binary())]
    return _write(arrays, directory)


def _in_order(runs: list[Run]) -> Iterator[Run]:
    """The runs by position; those of one position become one."""
    runs.sort(key=_POSITION)
    for (offset, step), together in groupby(runs, _POSITION):
        first, *others = [bodies for _, _, bodies in together]
        yield offset, step, sorted(chain(first, *others)) if others else first


def stage_packed(
    offsets: npt.NDArray[np.int64], step: int, bodies: pa.Array, directory: Path
) -> str:
    """The same for messages of one step that are in order."""
    steps = np.full(len(offsets), step, np.int32)
    return _write([pa.array(offsets), pa.array(steps), bodies], directory)


def _write(arrays: list[pa.Array], directory: Path) -> str:
    name = f"{uuid.uuid4().hex}{STAGED_SUFFIX}"
    path = directory / name
    # Not synced: until the batch is published, a crash only means that it is computed again.
    with (
        os_errors("stage messages", path),
        pa.OSFile(os.fspath(path), "wb") as file,
        pa.ipc.new_file(file, _SCHEMA) as writer,
    ):
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA))
    return name


def merged_bodies(paths: Sequence[Path]) -> list[bytes]:
    """The bodies of all messages in some files, by offset, step and bytes."""
    tables = [_read(path) for path in paths]
    if not tables:
        return []
    table = pa.concat_tables(tables)
    offsets, steps = table.column("offset").to_numpy(), table.column("step").to_numpy()
    order = np.lexsort((steps, offsets))
    bodies: list[bytes] = table.column("body").combine_chunks().take(pa.array(order)).to_pylist()
    file_of = np.repeat(np.arange(len(tables)), [one.num_rows for one in tables])[order]
    for first, last in _mixed(offsets[order], steps[order], file_of):
        bodies[first:last] = sorted(bodies[first:last])
    return bodies


def _read(path: Path) -> pa.Table:
    with os_errors("read staged messages", path):
        return pa.ipc.open_file(pa.memory_map(os.fspath(path))).read_all()


def _mixed(
    offsets: npt.NDArray[np.int64], steps: npt.NDArray[np.int32], file_of: npt.NDArray[np.int64]
) -> list[tuple[int, int]]:
    """The stretches of messages of one position that come from several files."""
    if len(offsets) < 2:
        return []
    is_same = (np.diff(offsets) == 0) & (np.diff(steps) == 0)
    starts = np.concatenate([[0], np.flatnonzero(~is_same) + 1])
    ends = np.append(starts[1:], len(offsets))
    is_mixed = np.concatenate([[0], np.cumsum(is_same & (np.diff(file_of) != 0))])
    found = is_mixed[ends - 1] > is_mixed[starts]
    return list(zip(starts[found].tolist(), ends[found].tolist(), strict=True))
