"""Index snapshots: subscriptions compiled for workers to map into memory.

A worker that built an object for every subscription would need minutes and gigabytes for a million
of them. So the process that plans batches compiles them now and then: those over one table into
matchers, those over several into the arrays of their spaces; flat files that all workers of a
machine share. A snapshot holds the subscriptions before one offset; workers add what was recorded
since. It is derived from the log, affects the cost of a batch and never its messages, and may be
removed at any time.

A snapshot is a directory named by its offset, renamed into place when complete. Subscriptions with
another decomposition than their first are not in it, but their numbers are.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from penstock.catalog import Catalog, Relation, Row
from penstock.client import Initial
from penstock.errors import PenstockError
from penstock.garbage import without_garbage
from penstock.joins.frozen_points import (
    FrozenSpace,
    edge_of_plain,
    pack_space,
    plain_edge,
    unpack_space,
)
from penstock.joins.matcher_points import MatcherPoints
from penstock.joins.point_arrays import PointArrays
from penstock.matching import EventBatch
from penstock.matching.flatfile import read_arrays, write_arrays
from penstock.matching.lanes import LaneMatcher
from penstock.matching.snapshot import damaged_segments
from penstock.messages import Point
from penstock.query import calls_operators
from penstock.registry import Registry, StoredSubscription
from penstock.spaces import Edge, Placed, Space, place
from penstock.storage import make_directory, write_aside

FORMAT = 4
"""Before 4, constants of text columns may have been taken for numbers."""
KEPT = 2
"""Number of snapshots kept: the newest, and the one that workers may be about to open."""
SUBSCRIPTIONS_AT_ONCE = 50_000
_MANIFEST, _OTHERS = "snapshot.json", "others.ids"
_UNFINISHED = ".unfinished"


class Compiled(NamedTuple):
    """The points of one relation."""

    place: str
    """The directory of their matcher."""
    columns: Mapping[int, int]
    """How many points constrain each column."""
    changes_only: int
    """How many points hold no rows."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The subscriptions recorded before `active` and not withdrawn."""

    directory: Path
    active: int
    relations: Mapping[str, Compiled]
    """By relation name."""
    spaces: Sequence[tuple[str, int]]
    """The file with the points of each space over an edge, and its checksum."""
    edges: Sequence[tuple[Edge, int]]
    """Every edge that a subscription ever needed, withdrawn ones included, with its first
    record."""
    suspended: int
    """How many subscriptions were suspended. Once there are more, the snapshot is stale: it may
    contain edges that no other view has."""

    def others_from(self, low: int) -> list[int]:
        """All subscriptions recorded from `low` on that are not in here, withdrawn ones
        included."""
        found = _read_others(self.directory)
        numbers: list[int] = found[np.searchsorted(found, low) :].tolist()
        return numbers

    def covered(self, catalog: Catalog) -> Iterator[MatcherPoints]:
        for name, (where, columns, changes_only) in self.relations.items():
            matcher = LaneMatcher.open(catalog[name], self.directory / where, threads=1)
            yield MatcherPoints(matcher, columns, changes_only)

    def frozen(self) -> Iterator[FrozenSpace]:
        for name, _ in self.spaces:
            yield unpack_space(*read_arrays(self.directory / name))


def newest(directory: Path, active: int, suspended: int = 0) -> Snapshot | None:
    """The newest snapshot of subscriptions before `active` or an earlier offset, made when this
    many were suspended."""
    numbers = sorted((int(p.name) for p in _finished(directory)), reverse=True)
    for number in numbers:
        if number <= active:
            snapshot = _read(directory / f"{number:020d}")
            if snapshot is not None and snapshot.suspended == suspended:
                return snapshot
    return None


def all_snapshots(directory: Path) -> list[Path]:
    return sorted(_finished(directory))


def discard_damaged(directory: Path) -> None:
    """Remove damaged and unfinished snapshots. Reads every byte."""
    for path in directory.glob(f"*{_UNFINISHED}"):
        shutil.rmtree(path, ignore_errors=True)
    for path in _finished(directory):
        if not is_sound(path) and _is_readable(path):
            shutil.rmtree(path, ignore_errors=True)


def _is_readable(path: Path) -> bool:
    """Whether we have permission to read all of it: an unreadable snapshot may be intact."""
    try:
        for part in path.rglob("*"):
            if part.is_file():
                part.read_bytes()
    except OSError:
        return False
    return True


def is_sound(path: Path) -> bool:
    snapshot = _read(path)
    if snapshot is None:
        return False
    try:
        _read_others(path)
        if any(crc32((path / name).read_bytes()) != checksum for name, checksum in snapshot.spaces):
            return False
        return not any(damaged_segments(path / one.place) for one in snapshot.relations.values())
    except (PenstockError, OSError, ValueError):
        return False


def compile_snapshot(
    directory: Path, registry: Registry, active: int, samples: Mapping[str, Sequence[Row]]
) -> Snapshot:
    """Make the snapshot of an offset from the newest one before it and the records since."""
    suspended = len(registry.suspended())
    before = newest(directory, active, suspended)
    compiler = _Compiler(registry.catalog(), samples, before, suspended)
    changes = registry.changes_between(compiler.start, active, added=False)
    # Queries over one table have no decomposition, so their points do not move.
    compiler.leave_out([one.subscription for one in changes.replanned if one.decomposition])
    compiler.remove([one.id for one in changes.withdrawn])
    low = compiler.start
    while added := registry.recorded(low, active, SUBSCRIPTIONS_AT_ONCE):
        low = added[-1].id + 1
        with without_garbage():
            compiler.add(added, active)
    return compiler.write(directory, active)


class _Compiler:
    """A snapshot under construction."""

    def __init__(
        self,
        catalog: Catalog,
        samples: Mapping[str, Sequence[Row]],
        before: Snapshot | None,
        suspended: int,
    ) -> None:
        self._catalog, self._samples, self._suspended = catalog, samples, suspended
        self.start = 0 if before is None else before.active
        covered = () if before is None else before.covered(catalog)
        self._covered = {points.relation.name: points for points in covered}
        frozen = () if before is None else before.frozen()
        self._frozen = {one.space: one.points for one in frozen}
        self._edges = {} if before is None else dict(before.edges)
        self._others = set() if before is None else set(before.others_from(0))

    def leave_out(self, replanned: Iterable[int]) -> None:
        """Exclude subscriptions whose points have moved: workers build objects for them."""
        self._others |= set(replanned)
        self.remove(self._others)

    def remove(self, gone: Collection[int]) -> None:
        for number in gone:
            for covered in self._covered.values():
                covered.remove(number)
        for space, points in self._frozen.items():
            is_gone = np.isin(points.numbers[:, 0], list(gone))
            if is_gone.any():
                self._frozen[space] = points.take(~is_gone)

    def add(self, added: Iterable[StoredSubscription], active: int) -> None:
        """Add subscriptions recorded before `active`, in their order."""
        fresh: dict[Space, list[Point]] = {}
        for one in added:
            if one.id in self._others:
                continue
            changes_only = one.initial is Initial.NONE
            query = one.query(self._catalog)
            placed = place(query, one.id, one.decomposition, changes_only=changes_only)
            if calls_operators(query):
                self._leave_to_workers(one.id, placed)
                continue
            is_gone = one.withdrawn_at is not None and one.withdrawn_at < active
            for space, point in ((each.space, each.point) for each in placed):
                if space.edge is not None:
                    self._edges.setdefault(space.edge, one.id)
                of_space = fresh.setdefault(space, [])
                of_space += [] if is_gone else [point]
        for space, points in fresh.items():
            if space.edge is None:
                self._cover(space.table).add_many(points)
            else:
                known = self._frozen.get(space)
                more = PointArrays.of(points, len(space.more))
                self._frozen[space] = more if known is None else known.concat(more)

    def _leave_to_workers(self, number: int, placed: Iterable[Placed]) -> None:
        """Exclude a subscription whose points must be objects: its candidates are found point by
        point."""
        self._others.add(number)
        for one in placed:
            if one.space.edge is not None:
                self._edges.setdefault(one.space.edge, number)

    def _cover(self, table: str) -> MatcherPoints:
        if table not in self._covered:
            self._covered[table] = _empty(self._catalog[table], self._samples.get(table, ()))
        return self._covered[table]

    def write(self, directory: Path, active: int) -> Snapshot:
        path = directory / f"{active:020d}"
        fresh = path.with_name(path.name + _UNFINISHED)
        shutil.rmtree(fresh, ignore_errors=True)
        make_directory(fresh)
        relations, spaces = self._write_relations(fresh), self._write_spaces(fresh)
        body = np.array(sorted(self._others), np.int64).tobytes()
        write_aside(fresh / _OTHERS, crc32(body).to_bytes(4) + body)
        edges = [(plain_edge(edge), first) for edge, first in self._edges.items()]
        members = {
            "format": FORMAT,
            "active": active,
            "suspended": self._suspended,
            "relations": relations,
        }
        text = json.dumps(members | {"spaces": spaces, "edges": edges})
        checked = {"snapshot": text, "checksum": crc32(text.encode())}
        write_aside(fresh / _MANIFEST, json.dumps(checked).encode())
        shutil.rmtree(path, ignore_errors=True)  # an unreadable one
        fresh.rename(path)
        for old in sorted(_finished(directory))[:-KEPT]:
            if old != path:
                shutil.rmtree(old, ignore_errors=True)
        edges_first = list(self._edges.items())
        return Snapshot(path, active, relations, spaces, edges_first, self._suspended)

    def _write_relations(self, fresh: Path) -> dict[str, Compiled]:
        relations = {}
        for number, (name, points) in enumerate(self._covered.items()):
            points.matcher.save(fresh / str(number))
            columns = {column: count for column, count in points.columns.items() if count > 0}
            relations[name] = Compiled(str(number), columns, points.changes_only)
        return relations

    def _write_spaces(self, fresh: Path) -> list[tuple[str, int]]:
        spaces = []
        for number, (space, points) in enumerate(self._frozen.items()):
            name = f"space-{number}.bin"
            write_arrays(fresh / name, *pack_space(FrozenSpace.of(space, points, self._catalog)))
            spaces.append((name, crc32((fresh / name).read_bytes())))
        return spaces


def _empty(relation: Relation, sample: Sequence[Row]) -> MatcherPoints:
    events = EventBatch.of_stored(relation, sample) if sample else None
    matcher = LaneMatcher(relation, threads=1, sample=events, background=False)
    return MatcherPoints(matcher, {})


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
        spaces = [(str(name), int(checksum)) for name, checksum in members["spaces"]]
        edges = [(edge_of_plain(edge), int(first)) for edge, first in members["edges"]]
        return Snapshot(
            path, members["active"], relations, spaces, edges, int(members["suspended"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _read_others(path: Path) -> npt.NDArray[np.int64]:
    raw = (path / _OTHERS).read_bytes()
    if crc32(raw[4:]) != int.from_bytes(raw[:4]):
        raise ValueError("others.ids is damaged")
    return np.frombuffer(raw[4:], np.int64)
