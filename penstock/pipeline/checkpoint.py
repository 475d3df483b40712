"""Consistency checks between a checkpoint and its home.

Spark trusts its checkpoint. If parts of a home come from different backups, records would be
skipped or messages would be missing, silently. So the parts are compared before a run begins.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

from penstock.errors import HomeError
from penstock.pipeline.offsets import LAYOUT, StreamOffset, is_anybody_new
from penstock.storage import Home

_RESTORE = "restore all of the home from one backup"


def check_home(home: Home) -> None:
    """HomeError if the log, the message log and the checkpoint cannot belong to one home."""
    end = home.log.end
    frontier = home.messages.frontier
    published = 0 if frontier is None else frontier.end
    if published > end:
        raise HomeError(
            f"the message log is ahead of the log: it holds the messages of {published} records, "
            f"of which there are {end}",
            hint=_RESTORE,
        )
    planned = last_offset(home.checkpoint / "offsets")
    if planned is not None and planned.position > end:
        raise HomeError(
            f"the checkpoint is ahead of the log: it has seen {planned.position} records, of which "
            f"there are {end}",
            hint=_RESTORE,
        )
    done = _committed(home.checkpoint)
    if done is not None and done.position > published:
        raise HomeError(
            f"the checkpoint is ahead of the message log: {done.position} records are done, but "
            f"the messages of {published} are there",
            hint=f"{_RESTORE}; or remove what is in {home.checkpoint}: the next run rebuilds it "
            "from the log",
        )
    active = 0 if frontier is None else frontier.active
    if done is not None and is_anybody_new(home.log, active, done.active):
        # A batch without records leaves no other trace, so nothing else shows that it is missing.
        raise HomeError(
            f"the checkpoint is ahead of the message log: subscriptions before {done.active} are "
            f"active, but the last batch is for those before {active}",
            hint=f"{_RESTORE}; or remove what is in {home.checkpoint}: the next run rebuilds it "
            "from the log",
        )
    kept_from = replayed_from(home.checkpoint) or 0
    if 0 < kept_from < home.log.compacted_to:
        raise HomeError(
            f"the checkpoint is older than the log: it goes on at offset {kept_from}, but the log "
            f"was compacted up to {home.log.compacted_to}",
            hint=f"remove what is in {home.checkpoint}: the next run rebuilds it from the log",
        )


def recordless_batches(checkpoint: Path) -> list[int]:
    """The offsets at which batches without records were finished, as far back as Spark keeps them.
    Such batches activate subscriptions. HomeError if an entry cannot be read."""
    done = set(_batches(checkpoint / "commits"))
    planned = _batches(checkpoint / "offsets")
    found = []
    for before, batch in pairwise(planned):
        if batch == before + 1 and batch in done:
            start = _read(checkpoint / "offsets" / str(before))
            end = _read(checkpoint / "offsets" / str(batch))
            if start.position == end.position == end.active:
                found.append(end.position)
    return found


def replayed_from(checkpoint: Path) -> int | None:
    """Where the next batch begins, whether new or replayed; None if there is no batch."""
    if not _batches(checkpoint / "offsets"):
        return None
    done = _committed(checkpoint)
    return 0 if done is None else done.position


def last_offset(directory: Path) -> StreamOffset | None:
    """The last offset that Spark wrote ahead of a batch."""
    batches = _batches(directory)
    return _read(directory / str(batches[-1])) if batches else None


def _committed(checkpoint: Path) -> StreamOffset | None:
    """The end of the last batch that Spark has committed."""
    done = _batches(checkpoint / "commits")
    return _read(checkpoint / "offsets" / str(done[-1])) if done else None


def _batches(directory: Path) -> list[int]:
    if not directory.is_dir():
        return []
    return sorted(int(path.name) for path in directory.iterdir() if path.name.isdecimal())


def _read(path: Path) -> StreamOffset:
    """An entry of Spark's offset log: a version, metadata, then one offset for each source."""
    anew = f"remove what is in {path.parent.parent}: the next run rebuilds it from the log"
    try:
        members = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
        layout, offset = members.get("layout", 1), StreamOffset.from_json(members)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise HomeError(
            f"the checkpoint cannot be read: {path.name} is not an offset of this pipeline",
            detail=f"file {path}: {error}",
            hint=anew,
        ) from error
    if layout != LAYOUT:
        raise HomeError(
            "the checkpoint is of another release: it keeps its state in another way",
            detail=f"layout {layout}; this release goes on with layout {LAYOUT}",
            hint=anew,
        )
    return offset
