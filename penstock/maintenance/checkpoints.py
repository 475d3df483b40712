"""Checks Spark's checkpoint: every file against Hadoop's checksums, and whether the state of the
last batch is complete."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from penstock.errors import HomeError, PenstockError
from penstock.maintenance.file_sizes import files_below
from penstock.maintenance.findings import Finding, damage, difference, remark
from penstock.pipeline.checkpoint import check_home, recordless_batches
from penstock.pipeline.moved_checkpoint import hadoop_checksums
from penstock.pipeline.offsets import is_anybody_new
from penstock.storage import BatchHeader, Home

# What Python's modules raise for damaged archives: RuntimeError for one that claims to be
# encrypted.
_UNREADABLE_ZIP = (
    OSError, EOFError, LookupError, TypeError, ValueError, RuntimeError, struct.error, zlib.error,
    zipfile.BadZipFile,
)  # fmt: skip


def check_checkpoint(home: Home, seen: Callable[[Path], None]) -> Iterator[Finding]:
    hint = f"remove what is in {home.checkpoint}: the next run rebuilds it from the log"
    unchecked: list[Path] = []
    has_checksums = False
    for path in files_below(home.checkpoint):
        if path.name.startswith("."):
            has_checksums = True
            owner = path.with_name(path.name[1:].removesuffix(".crc"))
            if owner.is_dir():
                yield damage(owner, "a directory is in the place of a file", hint)
            elif not owner.exists():
                yield remark(path, "the file that it belongs to is gone")
            continue
        if _checksums_of(path).exists():
            yield from _check_file(path, hint)
        else:
            unchecked.append(path)
        seen(path)
    yield from _without_checksums(unchecked, has_checksums, hint)
    for what in _incomplete(home.checkpoint):
        yield damage(home.checkpoint, what, hint)
    try:
        check_home(home)
    except PenstockError as error:
        yield difference(home.checkpoint, error.primary, error.hint)


def check_recordless(home: Home, headers: Sequence[BatchHeader]) -> Iterator[Finding]:
    """Missing batches without records leave no gap, but the checkpoint lists them.

    A Hub that took over activates the same subscriptions in a batch of its own.
    """
    try:
        finished, base = recordless_batches(home.checkpoint), home.messages.base
    except HomeError:
        return  # reported by `check_checkpoint` and `check_messages`
    covered = -1 if base is None else base.end
    present = {one.start for one in headers if one.start == one.end or one.active > one.start}
    for offset in finished:
        told = max((one.active for one in headers if one.end <= offset), default=0)
        if offset > covered and offset not in present and is_anybody_new(home.log, told, offset):
            what = f"the batch without records at offset {offset} is missing"
            hint = "restore the missing file from a backup"
            yield damage(home.messages.directory, what, hint)


def _checksums_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.crc")


def _without_checksums(
    paths: Sequence[Path], others_have_them: bool, hint: str
) -> Iterator[Finding]:
    """Checked again at the end: Spark writes a file before its checksums, and removes old files.
    Some file systems have no checksums at all."""
    for path in paths:
        if not path.exists() or _checksums_of(path).exists():
            continue
        if others_have_them:
            yield damage(path, "the checksums beside it are gone, so it cannot be checked", hint)
        else:
            yield remark(path, "there is no checksum beside it, so it is not checked")


def _check_file(path: Path, hint: str) -> Iterator[Finding]:
    try:
        content = path.read_bytes()
        checksums = _checksums_of(path).read_bytes()
    except FileNotFoundError:
        return  # removed by Spark meanwhile
    except OSError as error:
        yield damage(Path(error.filename or path), f"it cannot be read: {error.strerror}", hint)
        return
    if not checksums or checksums != hadoop_checksums(content, checksums):
        yield damage(path, "it is not what its checksums say", hint)


def _incomplete(checkpoint: Path) -> Iterator[str]:
    """What is missing from the last finished batch."""
    done = _numbers(checkpoint / "commits")
    if not done:
        return
    last = done[-1]
    if last not in _numbers(checkpoint / "offsets"):
        yield f"batch {last} is finished, but offsets/{last}, which says what it was, is missing"
    if not (checkpoint / "metadata").is_file():
        yield "the file metadata, which names the query, is missing"
    for operator in sorted(checkpoint.glob("state/[0-9]*")):
        present = {path.name for path in operator.glob("[0-9]*")}
        for name in map(str, range(_count_partitions(checkpoint / "offsets" / str(last)))):
            if name not in present:
                yield f"state/{operator.name}/{name}, a part of the state, is missing"
        for name in sorted(filter(str.isdecimal, present)):
            yield from _incomplete_state(operator / name, last + 1)


def _count_partitions(offsets: Path) -> int:
    """The number of partitions of each operator's state, according to a batch; 0 if it does not
    say."""
    try:
        conf = json.loads(offsets.read_text(encoding="utf-8").splitlines()[1])["conf"]
        return int(conf["spark.sql.shuffle.partitions"])
    except (OSError, ValueError, LookupError, TypeError):
        return 0  # damage of the file is reported by its checksums


def _numbers(directory: Path) -> list[int]:
    files = [path for path in directory.glob("*") if path.name.isdecimal() and path.is_file()]
    return sorted(int(path.name) for path in files)


def _incomplete_state(partition: Path, version: int) -> Iterator[str]:
    """A version of the state is a snapshot (or nothing) plus the changes since."""
    where = "/".join(partition.parts[-3:])
    snapshots = {int(p.stem.partition("_")[0]): p for p in partition.glob("*.zip")}
    changes = {int(p.stem.partition("_")[0]) for p in partition.glob("*.changelog")}
    base = max((number for number in snapshots if number <= version), default=0)
    missing = sorted(set(range(base + 1, version + 1)) - changes)
    if missing:
        yield f"{where}: the state of batch {version - 1} needs {missing[0]}.changelog"
    if base:
        yield from _missing_tables(snapshots[base], where)


def _missing_tables(snapshot: Path, where: str) -> Iterator[str]:
    """The RocksDB files that a snapshot names and that are missing or differ."""
    try:
        with zipfile.ZipFile(snapshot) as archive:
            described = archive.read("metadata").decode().partition("\n")[2]
        tables = json.loads(described)["sstFiles"]
        needed = [(str(one["dfsSstFileName"]), one["sizeBytes"]) for one in tables]
    except _UNREADABLE_ZIP as error:
        yield f"{where}: {snapshot.name} cannot be read ({error})"
        return
    for name, size in needed:
        path = snapshot.parent / "SSTs" / name
        if not path.exists() or path.stat().st_size != size:
            yield f"{where}: {snapshot.name} needs SSTs/{name}, which is not there as it was"
