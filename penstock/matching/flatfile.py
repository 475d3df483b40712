"""Named arrays in one file, aligned to cache lines, so that one memory mapping holds them all."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.errors import CorruptionError

AnyArray = npt.NDArray[Any]

_MAGIC = b"PENSTOCK ARRAYS 1\n"
_ALIGNMENT = 64


def write_arrays(path: Path, arrays: Mapping[str, AnyArray], texts: Mapping[str, str]) -> None:
    """Write and sync a file: magic, length of the header, header, then the arrays."""
    entries: dict[str, tuple[str, tuple[int, ...], int]] = {}
    size = 0
    for name, array in arrays.items():
        entries[name] = (array.dtype.str, array.shape, size)
        size = _aligned(size + array.nbytes)
    header = json.dumps({"arrays": entries, "texts": dict(texts), "size": size}).encode()
    with path.open("wb") as file:
        file.write(_MAGIC + len(header).to_bytes(8, "little") + header)
        first = _aligned(file.tell())
        for name, array in arrays.items():
            file.seek(first + entries[name][2])
            file.write(np.ascontiguousarray(array).data if array.size else b"")
        file.truncate(first + size)
        file.flush()
        os.fsync(file.fileno())


def read_arrays(path: Path) -> tuple[dict[str, AnyArray], dict[str, str]]:
    """Map a file. The arrays are views, never written to, that keep the mapping alive."""
    try:
        with path.open("rb") as file:
            # A private mapping shares its pages just as well, and its arrays are writable: numba
            # would compile every kernel a second time for read-only arrays.
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except (OSError, ValueError) as error:
        raise CorruptionError(f"{path} cannot be read", detail=str(error)) from None
    start = len(_MAGIC) + 8
    if mapped[: len(_MAGIC)] != _MAGIC:
        raise CorruptionError(f"{path} is not a file of arrays")
    end = start + int.from_bytes(mapped[len(_MAGIC) : start], "little")
    try:
        header = json.loads(mapped[start:end])
    except ValueError as error:
        raise CorruptionError(f"the header of {path} is damaged", detail=str(error)) from None
    first = _aligned(end)
    if len(mapped) != first + header["size"]:
        raise CorruptionError(f"{path} has {len(mapped)} bytes, not {first + header['size']}")
    arrays: dict[str, AnyArray] = {}
    for name, (dtype, shape, offset) in header["arrays"].items():
        count = int(np.prod(shape, dtype=np.int64))
        flat = np.frombuffer(mapped, np.dtype(dtype), count, first + offset if count else 0)
        arrays[name] = flat.reshape(shape)
    return arrays, header["texts"]


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
