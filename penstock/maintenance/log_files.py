"""Checks every byte of the log, the message log and the quarantine against its checksum."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import msgspec

from penstock.delivery.cursors import DIRECTORY as CURSORS_DIRECTORY
from penstock.delivery.cursors import cursor_files, read_cursor
from penstock.delivery.saved_contents import CONTENT_FORMAT
from penstock.delivery.saved_contents import DIRECTORY as CONTENTS_DIRECTORY
from penstock.delivery.saved_contents import SUFFIX as CONTENT_SUFFIX
from penstock.errors import PenstockError
from penstock.maintenance.findings import Finding, damage, damage_of, remark
from penstock.storage import (
    BASE_FORMAT,
    BASE_SUFFIX,
    LOST_HINT,
    MESSAGE_FILES,
    MESSAGE_SUFFIX,
    PROCESSING_LOCK,
    PUBLISHING_LOCK,
    QUARANTINE_FILES,
    ROLLED_SUFFIX,
    SEGMENT_SUFFIX,
    STATISTICS_DIRECTORY,
    STATISTICS_FORMAT,
    STATISTICS_SUFFIX,
    BatchFiles,
    BatchHeader,
    BatchKind,
    Extent,
    FileFormat,
    Home,
    LogSegment,
    Place,
    batch_name,
    parse_batch_name,
    read_batch,
)

_ALL_KINDS = -1


@dataclass(frozen=True, slots=True)
class LogState:
    """How far the segments of a log reach, if they are intact."""

    findings: list[Finding]
    end: int
    compacted_to: int


def check_log(home: Home, seen: Callable[[Path], None]) -> LogState:
    """Read all frames of all segments."""
    # Read first: records appended while we read may be missing, and need not be there.
    acknowledged = home.log.acknowledged
    segments, findings = _segments(home.log.directory)
    for segment, following in pairwise([*segments, None]):
        assert segment is not None
        findings += _check_segment(segment, following)
        seen(segment.path)
    end = segments[-1].end if segments else 0
    if acknowledged is not None and acknowledged > end:
        lost = f"it ends at offset {end}, but {acknowledged} records were acknowledged"
        where = segments[-1].path if segments else home.log.directory
        findings.append(damage(where, lost, LOST_HINT))
    compacted_to = segments[0].compacted_to if segments else 0
    return LogState(findings, end, compacted_to)


def check_locks(home: Home) -> Iterator[Finding]:
    """Missing locks are recreated; but anything else in their place blocks every process. The lock
    file of the log also holds the acknowledged offset: without it, a lost end goes unnoticed."""
    mark = home.log.lock_path
    for path in (mark, home.path / PROCESSING_LOCK, home.path / PUBLISHING_LOCK):
        if path.exists() and not path.is_file():
            yield damage(path, "it is not a file", "remove it: it is made again when it is needed")
    is_marked = mark.is_file() and mark.stat().st_size > 0
    # Another process may be writing it at this moment, so it is read twice.
    if is_marked and home.log.acknowledged is None and home.log.acknowledged is None:
        hint = "nothing is lost by it: the next append writes it again"
        yield damage(mark, "how much was acknowledged is not what its checksum says", hint)


def _segments(directory: Path) -> tuple[list[LogSegment], list[Finding]]:
    """The valid segments, and what is wrong with file names."""
    paths = [path for path in directory.glob(f"*{SEGMENT_SUFFIX}") if path.stem.isdecimal()]
    segments = [LogSegment(path, int(path.stem)) for path in sorted(paths)]
    if segments and segments[0].first != 0:
        path = directory / LogSegment.name(0)
        what = f"it is missing: the first segment there begins at offset {segments[0].first}"
        return segments, [damage(path, what, "restore it from a backup")]
    covered = 0
    if segments:
        with suppress(PenstockError):  # errors are reported when it is checked
            first = LogSegment(segments[0].path, 0)
            first.extend()
            covered = first.compacted_to
    left = [segment for segment in segments[1:] if segment.first < covered]
    what = "a compacted segment stands for it"
    findings = [remark(segment.path, what, "the next run removes it") for segment in left]
    return [segment for segment in segments if segment not in left], findings


def _check_segment(segment: LogSegment, following: LogSegment | None) -> Iterator[Finding]:
    try:
        torn = segment.extend()
        if following is not None:
            segment.seal(following.first)
        for _ in segment.frames(segment.first, segment.end, _ALL_KINDS):
            pass
    except PenstockError as error:
        yield damage_of(segment.path, error)
        return
    if following is None and torn:
        yield remark(
            segment.path,
            f"{torn} bytes of a write that was never acknowledged follow its last record",
            "the next append cuts them off",
        )


@dataclass(frozen=True, slots=True)
class Batches:
    """The batches of a home, as far as their files are intact."""

    findings: list[Finding]
    headers: list[BatchHeader]
    reached: int
    """Where the last one ends, by its file name."""

    @property
    def frontier(self) -> BatchHeader | None:
        return self.headers[-1] if self.headers else None


def check_messages(home: Home, seen: Callable[[Path], None]) -> Batches:
    """Read all batches of the message log, and check that each follows the one before."""
    directory = home.messages.directory
    findings, bases = _check_batches(directory, BASE_SUFFIX, BASE_FORMAT, seen)
    base = max(_places(directory, BASE_SUFFIX), default=(0, 0))
    found, files, read = _check_files(directory, MESSAGE_FILES, seen)
    findings += found
    headers = bases[-1:] + [one for one in read if (one.start, one.end) > base]
    reached = base[1]
    for extent in files:
        if base[1] and extent.last <= base:
            path = directory / extent.name
            findings.append(remark(path, "a base stands for it", "the next run removes it"))
        else:
            findings += _missing(directory, reached, max(extent.first[0], base[1]))
            reached = extent.last[1]
    for before, after in pairwise(headers):
        if after.start < before.end:
            findings += _missing(directory, before.end, after.start)
        if after.active < before.active:
            path = directory / batch_name(after.start, after.end, MESSAGE_SUFFIX)
            what = f"it is meant for fewer subscriptions than the batch before {before}"
            findings.append(damage(path, what, "restore all of the home from one backup"))
    return Batches(findings, headers, reached)


def _missing(directory: Path, reached: int, start: int) -> Iterator[Finding]:
    if start != reached:
        what = f"the batches from offset {reached} to {start} are missing"
        yield damage(directory, what, "restore the missing files from a backup")


def check_quarantine(home: Home, seen: Callable[[Path], None]) -> list[Finding]:
    """Read all entries of the quarantine; files without a batch are left over from a crash."""
    directory = home.quarantine.directory
    findings, files, _ = _check_files(directory, QUARANTINE_FILES, seen)
    reached = home.messages.reached
    for extent in files:
        if extent.last[1] > reached:
            what = "its batch was not published, so it does not count"
            findings.append(remark(directory / extent.name, what, "the next run removes it"))
    return findings


def check_statistics(home: Home, seen: Callable[[Path], None]) -> Iterator[Finding]:
    """They affect only performance."""
    directory = home.path / STATISTICS_DIRECTORY
    findings, _ = _check_batches(directory, STATISTICS_SUFFIX, STATISTICS_FORMAT, seen)
    for finding in findings:
        yield replace(finding, hint=f"have the history read again: penstock analyse {home.path}")


def check_contents(home: Home, seen: Callable[[Path], None]) -> Iterator[Finding]:
    """A damaged one is not used, but the cause may damage more."""
    directory = home.path / CONTENTS_DIRECTORY
    findings, _ = _check_batches(directory, CONTENT_SUFFIX, CONTENT_FORMAT, seen)
    for finding in findings:
        yield replace(finding, hint="remove it: a content is saved again when it is asked for")


def check_cursors(home: Home, seen: Callable[[Path], None]) -> Iterator[Finding]:
    for path in cursor_files(home.path / CURSORS_DIRECTORY):
        try:
            read_cursor(path)
        except PenstockError as error:
            yield damage_of(path, error)
        seen(path)


def _places(directory: Path, suffix: str) -> list[tuple[int, int]]:
    places = (parse_batch_name(path.name, suffix) for path in directory.glob(f"*{suffix}"))
    return sorted(place for place in places if place is not None)


def _check_files(
    directory: Path, kind: BatchKind, seen: Callable[[Path], None]
) -> tuple[list[Finding], list[Extent], list[BatchHeader]]:
    """What is wrong with the files of a directory, the valid files, and their batches.

    Files may be rolled into larger ones while we read; then the larger ones are read.
    """
    files, findings = BatchFiles(directory, kind), dict[str, list[Finding]]()
    headers: dict[Place, BatchHeader] = {}
    while True:
        listing = files.list_files()
        try:
            for extent in listing.extents:
                if extent.name not in findings:
                    findings[extent.name] = list(_check_file(files, extent, headers))
                    seen(directory / extent.name)
            break
        except FileNotFoundError:
            files.forget_listing()
    said = [finding for extent in listing.extents for finding in findings[extent.name]]
    for name in listing.left_over:
        what = "its batches are in a larger file as well"
        said.append(remark(directory / name, what, "the next run removes it"))
    for name in listing.others:
        if name.endswith((kind.suffix, ROLLED_SUFFIX)):
            what = "this is not the name of a batch; it is passed over"
            said.append(remark(directory / name, what))
    return said, listing.extents, [headers[place] for place in sorted(headers)]


def _check_file(
    files: BatchFiles, extent: Extent, headers: dict[Place, BatchHeader]
) -> Iterator[Finding]:
    """What is wrong with a file. FileNotFoundError if it was rolled meanwhile."""
    path = files.directory / extent.name
    try:
        file = files.open_extent(extent)
        for number, stored in enumerate(file.stored_batches()):
            header, body = file.read(number)
            msgspec.msgpack.decode(body)
            headers[stored.header.start, stored.header.end] = header
    except FileNotFoundError:
        raise
    except PenstockError as error:
        yield damage_of(path, error)
    except msgspec.DecodeError as error:
        yield damage(path, str(error), "restore this file from a backup")
    except OSError as error:
        yield damage(path, f"it cannot be read: {error.strerror}", "look at its permissions")


def _check_batches(
    directory: Path, suffix: str, file_format: FileFormat, seen: Callable[[Path], None]
) -> tuple[list[Finding], list[BatchHeader]]:
    findings: list[Finding] = []
    headers: list[BatchHeader] = []
    for path in sorted(directory.glob(f"*{suffix}")):
        if parse_batch_name(path.name, suffix) is None:
            findings.append(remark(path, "this is not the name of a batch; it is passed over"))
            continue
        try:
            header, body = read_batch(file_format, path)
            msgspec.msgpack.decode(body)
            headers.append(header)
        except PenstockError as error:
            findings.append(damage_of(path, error))
        except msgspec.DecodeError as error:
            findings.append(damage(path, str(error), "restore this file from a backup"))
        seen(path)
    return findings, headers
