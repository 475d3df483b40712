"""Staging files: messages on their way to the sink, as sorted Arrow files that are only merged.

The sink orders all messages of a batch by position and bytes, whichever worker computed them; it is
the one part of a batch that runs in a single process. So workers sort their messages, and the sink
compares bytes only where messages of one position come from different workers. Spark carries the
file names: it would copy each message from process to process.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.kernels.fast_gear import may_load_kernels
from penstock.storage import PackedMessages, os_errors

STAGED_SUFFIX = ".arrow"

_POOL = pa.system_memory_pool()  # see `penstock.pipeline.allocator`
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")
_SCHEMA = pa.schema([("offset", pa.int64()), ("step", pa.int32()), ("body", pa.large_binary())])


Run: TypeAlias = tuple[int, int, list[bytes]]
"""Messages of one position (offset and step), sorted by bytes."""
Stretches: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""The starts and ends of ranges."""


def stage(runs: list[Run], directory: Path) -> str:
    """Write messages into a new staging file; returns its name."""
    runs.sort()
    counts = [len(bodies) for _, _, bodies in runs]
    offsets = np.repeat(np.array([offset for offset, _, _ in runs], np.int64), counts)
    steps = np.repeat(np.array([step for _, step, _ in runs], np.int32), counts)
    bodies = list(chain.from_iterable([bodies for _, _, bodies in runs]))
    mixed = _mixed(offsets, steps, np.repeat(np.arange(len(runs)), counts))
    for first, last in zip(*mixed, strict=True):
        bodies[first:last] = sorted(bodies[first:last])
    return _write([pa.array(offsets), pa.array(steps), _in_arrow(bodies)], directory)


def _in_arrow(bodies: list[bytes]) -> pa.Array:
    """Equivalent to `pa.array`, which would grow its buffers step by step."""
    ends = np.zeros(len(bodies) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, bodies), np.int64, len(bodies)), out=ends[1:])
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(bodies))]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(bodies), buffers)


def stage_packed(
    offsets: npt.NDArray[np.int64],
    steps: npt.NDArray[np.int64] | int,
    bodies: pa.Array,
    directory: Path,
) -> str:
    """The same for messages already in order; steps may be one value for all."""
    all_steps = np.broadcast_to(np.asarray(steps, np.int32), len(offsets))
    return _write([pa.array(offsets), pa.array(all_steps), bodies], directory)


def _write(arrays: list[pa.Array], directory: Path) -> str:
    name = f"{uuid.uuid4().hex}{STAGED_SUFFIX}"
    path = directory / name
    # Not synced: until the batch is published, a crash only means computing it again.
    with (
        os_errors("stage messages", path),
        pa.OSFile(os.fspath(path), "wb") as file,
        pa.ipc.new_file(file, _SCHEMA, options=_COMPRESSED) as writer,
    ):
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA))
    return name


def merged(paths: Sequence[Path]) -> PackedMessages:
    """All messages of some files, ordered by offset, step and bytes."""
    tables = [_read(path) for path in paths]
    if not tables:
        return PackedMessages.of([])
    table = pa.concat_tables(tables)
    offsets, steps = table.column("offset").to_numpy(), table.column("step").to_numpy()
    bodies = table.column("body").combine_chunks(_POOL)
    order = np.lexsort((steps, offsets))
    file_of = np.repeat(np.arange(len(tables)), [one.num_rows for one in tables])[order]
    merge = _merge_by_kernels if may_load_kernels() else _merge
    return merge(bodies, order, _mixed(offsets[order], steps[order], file_of))


def _merge(bodies: pa.Array, order: npt.NDArray[np.int64], mixed: Stretches) -> PackedMessages:
    """Put messages in order and sort the mixed ranges by bytes."""
    found: list[bytes] = bodies.take(order).to_pylist()
    for first, last in zip(*mixed, strict=True):
        found[first:last] = sorted(found[first:last])
    return PackedMessages.of(found)


def _merge_by_kernels(
    bodies: pa.Array, order: npt.NDArray[np.int64], mixed: Stretches
) -> PackedMessages:
    # Lazy: workers only stage.
    from penstock.kernels.msgpack_bins import packed_bins, sort_stretches

    _, ends, data = bodies.buffers()
    ends = np.frombuffer(ends, np.int64)[bodies.offset :][: len(bodies) + 1]
    data = np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8)
    sort_stretches(data, ends, order, *mixed)
    return PackedMessages(packed_bins(data, ends, order), len(order))


def _read(path: Path) -> pa.Table:
    with os_errors("read staged messages", path):
        source = pa.memory_map(os.fspath(path))
        return pa.ipc.open_file(source, memory_pool=_POOL).read_all()


def _mixed(
    offsets: npt.NDArray[np.int64], steps: npt.NDArray[np.int32], origin: npt.NDArray[np.int64]
) -> Stretches:
    """The ranges of messages of one position that come from several files."""
    if len(offsets) < 2:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    is_same = (np.diff(offsets) == 0) & (np.diff(steps) == 0)
    starts = np.concatenate([[0], np.flatnonzero(~is_same) + 1])
    ends = np.append(starts[1:], len(offsets))
    is_mixed = np.concatenate([[0], np.cumsum(is_same & (np.diff(origin) != 0))])
    found = is_mixed[ends - 1] > is_mixed[starts]
    return starts[found], ends[found]
