"""Index snapshots: the subscriptions over one table, compiled for workers to map into memory.

A worker that made every subscription an object of its own would need minutes and gigabytes for a
million of them. So the process that plans batches compiles them, now and then, into matchers: flat
files that all workers of a machine share. A snapshot is of the subscriptions before one offset;
workers add what was recorded since. It is derived from the log, changes what a batch costs and
never what it gives, and may be removed at any time.

A snapshot is a directory, named by its offset, that appears under its name when it is complete.
Subscriptions over several tables are not in it, but their numbers are.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from penstock.catalog import Catalog, Relation, Row
from penstock.client import Initial
from penstock.errors import PenstockError
from penstock.joins import place
from penstock.joins.covered import CoveredPoints
from penstock.log.disk import write_aside
from penstock.matching import EventBatch
from penstock.matching.lanes import LaneMatcher
from penstock.matching.snapshot import damaged_segments
from penstock.messages import Point
from penstock.registry import Registry

FORMAT = 2
KEPT = 2
"""Snapshots that stay: the newest, and the one that workers may be about to open."""
SUBSCRIPTIONS_AT_ONCE = 50_000
_MANIFEST, _OTHERS = "snapshot.json", "others.ids"
_UNFINISHED = ".unfinished"


class Compiled(NamedTuple):
    """The points of one relation."""

    place: str
    """Where their matcher is."""
    columns: Mapping[int, int]
    """How many of them constrain each column."""
    changes_only: int
    """How many of them hold no rows."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The subscriptions over one table that are recorded before `active`, and not withdrawn."""

    directory: Path
    active: int
    relations: Mapping[str, Compiled]
    """By name."""

    def others_from(self, low: int) -> list[int]:
        """All that were recorded from `low` on over several tables, even if withdrawn since."""
        found = _read_others(self.directory)
        numbers: list[int] = found[np.searchsorted(found, low) :].tolist()
        return numbers

    def covered(self, catalog: Catalog) -> Iterator[CoveredPoints]:
        for name, (where, columns, changes_only) in self.relations.items():
            matcher = LaneMatcher.open(catalog[name], self.directory / where, threads=1)
            yield CoveredPoints(matcher, columns, changes_only)


def newest(directory: Path, active: int) -> Snapshot | None:
    """The newest snapshot of subscriptions before `active`, or an earlier offset."""
    numbers = sorted((int(p.name) for p in _finished(directory)), reverse=True)
    for number in numbers:
        if number <= active:
            snapshot = _read(directory / f"{number:020d}")
            if snapshot is not None:
                return snapshot
    return None


def all_snapshots(directory: Path) -> list[Path]:
    return sorted(_finished(directory))


def discard_damaged(directory: Path) -> None:
    """Remove what is not as it was written, and what was never finished. Reads every byte."""
    for path in directory.glob(f"*{_UNFINISHED}"):
        shutil.rmtree(path, ignore_errors=True)
    for path in _finished(directory):
        if not is_sound(path):
            shutil.rmtree(path, ignore_errors=True)


def is_sound(path: Path) -> bool:
    snapshot = _read(path)
    if snapshot is None:
        return False
    try:
        _read_others(path)
        return not any(damaged_segments(path / one.place) for one in snapshot.relations.values())
    except (PenstockError, OSError, ValueError):
        return False


def compile_snapshot(
    directory: Path, registry: Registry, active: int, samples: Mapping[str, Sequence[Row]]
) -> Snapshot:
    """Make the snapshot of an offset from the newest before it and what was recorded since."""
    catalog = registry.catalog()
    before = newest(directory, active)
    start = 0 if before is None else before.active
    covered = {} if before is None else {c.relation.name: c for c in before.covered(catalog)}
    others = [] if before is None else before.others_from(0)
    for gone in registry.changes_between(start, active, added=False).withdrawn:
        for points in covered.values():
            points.remove(gone.id)
    low = start
    while added := registry.recorded(low, active, SUBSCRIPTIONS_AT_ONCE):
        low = added[-1].id + 1
        fresh: dict[str, list[Point]] = {}
        for one in added:
            changes_only = one.initial is Initial.NONE
            query, chosen = one.query(catalog), one.decomposition
            placed = place(query, one.id, chosen, changes_only=changes_only)
            if not placed:
                continue  # it can never match
            if placed[0].space.edge is not None:
                others.append(one.id)
            elif one.withdrawn_at is None or one.withdrawn_at >= active:
                of_table = fresh.setdefault(placed[0].space.table, [])
                of_table += [each.point for each in placed]
        for name, of_table in fresh.items():
            if name not in covered:
                covered[name] = _empty(catalog[name], samples.get(name, ()))
            covered[name].add_many(of_table)
    return _write(directory, active, covered, np.array(others, np.int64))


def _empty(relation: Relation, sample: Sequence[Row]) -> CoveredPoints:
    events = EventBatch.of_stored(relation, sample) if sample else None
    matcher = LaneMatcher(relation, threads=1, sample=events, background=False)
    return CoveredPoints(matcher, {})


def _write(
    directory: Path,
    active: int,
    covered: Mapping[str, CoveredPoints],
    others: npt.NDArray[np.int64],
) -> Snapshot:
    path = directory / f"{active:020d}"
    fresh = path.with_name(path.name + _UNFINISHED)
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    relations = {}
    for number, (name, points) in enumerate(covered.items()):
        points.matcher.save(fresh / str(number))
        columns = {column: count for column, count in points.columns.items() if count > 0}
        relations[name] = Compiled(str(number), columns, points.changes_only)
    body = others.tobytes()
    write_aside(fresh / _OTHERS, crc32(body).to_bytes(4) + body)
    text = json.dumps({"format": FORMAT, "active": active, "relations": relations})
    checked = {"snapshot": text, "checksum": crc32(text.encode())}
    write_aside(fresh / _MANIFEST, json.dumps(checked).encode())
    fresh.rename(path)
    for old in sorted(_finished(directory))[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return Snapshot(path, active, relations)


def _finished(directory: Path) -> list[Path]:
    return [path for path in directory.glob("[0-9]*") if path.name.isdecimal()]


def _read(path: Path) -> Snapshot | None:
    """The snapshot in a directory; None if it is damaged, of another release, or just removed."""
    try:
        checked = json.loads((path / _MANIFEST).read_bytes())
        text = checked["snapshot"]
        if crc32(text.encode()) != checked["checksum"]:
            return None
        members = json.loads(text)
        if members["format"] != FORMAT or members["active"] != int(path.name):
            return None
        relations = {
            name: Compiled(where, {int(column): count for column, count in columns.items()}, more)
            for name, (where, columns, more) in members["relations"].items()
        }
        return Snapshot(path, members["active"], relations)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _read_others(path: Path) -> npt.NDArray[np.int64]:
    raw = (path / _OTHERS).read_bytes()
    if crc32(raw[4:]) != int.from_bytes(raw[:4]):
        raise ValueError("others.ids is damaged")
    return np.frombuffer(raw[4:], np.int64)
