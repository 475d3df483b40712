"""Verification of a home: every file against its checksums, contents against DuckDB.

Nothing is locked, and nothing is written: databases are checked on copies. So a home can be
verified while it is in use, and on a read-only disk.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from penstock.client import Initial
from penstock.delivery import FanOut
from penstock.delivery.cursors import DIRECTORY as CURSORS_DIRECTORY
from penstock.delivery.saved_contents import DIRECTORY as CONTENTS_DIRECTORY
from penstock.errors import PenstockError
from penstock.maintenance.checkpoints import check_checkpoint, check_recordless
from penstock.maintenance.content_checks import compare
from penstock.maintenance.copies import with_copies
from penstock.maintenance.databases import Logged, check_databases
from penstock.maintenance.file_sizes import files_below, total_bytes
from penstock.maintenance.findings import Finding, Severity, Step, damage, damage_of, remark
from penstock.maintenance.log_files import (
    Batches,
    LogState,
    check_contents,
    check_cursors,
    check_locks,
    check_log,
    check_messages,
    check_quarantine,
    check_statistics,
)
from penstock.maintenance.operator_functions import OperatorFunctions
from penstock.maintenance.oracle import Oracle
from penstock.pipeline.snapshots import all_snapshots, is_sound
from penstock.registry import Registry
from penstock.storage import (
    KEY_NAME,
    STATISTICS_DIRECTORY,
    BatchHeader,
    Home,
    Replay,
    find_owner_key,
    home_family,
    os_errors,
    replay_tables,
)

ASIDE = (STATISTICS_DIRECTORY, CONTENTS_DIRECTORY, CURSORS_DIRECTORY)
"""Directories whose files contents do not depend on."""


@dataclass
class Verdict:
    """What was checked, and the findings."""

    findings: list[Finding] = field(default_factory=list)
    files: int = 0
    bytes: int = 0
    log_end: int = 0
    frontier: BatchHeader | None = None
    active: int = 0
    """Subscriptions with a content that are active at the end of the message log."""
    compared: list[int] = field(default_factory=list)

    @property
    def has_problems(self) -> bool:
        return self.has(Severity.DAMAGE) or self.has(Severity.DIFFERENCE)

    def has(self, severity: Severity) -> bool:
        return any(finding.severity is severity for finding in self.findings)


def verify(home: Home, step: Step, *, sample: int | None = None, seed: int = 0) -> Verdict:
    """Check all files, then compare the contents of `sample` subscriptions, or of all."""
    with os_errors("verify the home", home.path), with_copies(home) as copies:
        return _verify(home, copies, step, sample, seed)


def _verify(home: Home, copies: Home, step: Step, sample: int | None, seed: int) -> Verdict:
    verdict = Verdict()
    with step("reading files") as advance:
        total = total_bytes(_checked_files(home))

        def seen(path: Path) -> None:
            verdict.files += 1
            verdict.bytes += path.stat().st_size if path.exists() else 0
            advance(verdict.bytes, total)

        batches = _verify_files(home, copies, verdict, seen)
    verdict.frontier = batches.frontier
    if any(_hinders(home, finding) for finding in verdict.findings):
        what = "contents are not compared: the files they come from must be whole first"
        verdict.findings.append(remark(home.path, what))
    elif verdict.frontier is not None:
        verdict.findings += _verify_contents(copies, verdict, verdict.frontier, step, sample, seed)
    return verdict


def _hinders(home: Home, finding: Finding) -> bool:
    """Whether contents cannot be compared: the file is one that contents or tables are derived
    from."""
    aside = (home.path / name for name in ASIDE)
    apart = (home.checkpoint, home.snapshots, home.path / KEY_NAME, *aside)
    is_apart = any(Path(finding.where).is_relative_to(directory) for directory in apart)
    return finding.severity is Severity.DAMAGE and not is_apart


def _checked_files(home: Home) -> Iterator[Path]:
    batches = (home.messages.directory, home.quarantine.directory)
    for directory in (home.log.directory, *batches, home.checkpoint, home.snapshots):
        yield from files_below(directory)


def _verify_files(
    home: Home, copies: Home, verdict: Verdict, seen: Callable[[Path], None]
) -> Batches:
    # From derived data to its source: what a derived file covers still exists when its source is
    # read.
    findings = verdict.findings
    findings += check_checkpoint(home, seen)
    findings += check_quarantine(home, seen)
    batches = check_messages(home, seen)
    findings += batches.findings
    findings += check_recordless(home, batches.headers)
    log = check_log(home, seen)
    findings += log.findings
    verdict.log_end = log.end
    findings += check_locks(home)
    findings += _verify_family(home)
    reached = batches.reached
    if reached > log.end:
        what = f"it holds the messages of {reached} records, but the log has only {log.end}"
        hint = "restore the end of the log from a backup"
        findings.append(damage(home.messages.directory, what, hint))
    findings += _verify_base(home, log)
    findings += _verify_snapshots(home.snapshots, seen)
    findings += check_statistics(home, seen)
    findings += check_contents(home, seen)
    findings += check_cursors(home, seen)
    if not log.findings or not any(f.severity is Severity.DAMAGE for f in log.findings):
        logged = Logged.of(home, log.end)
        findings += check_databases(home, logged, log.end, copies)
        findings += _verify_owner_key(home, logged)
    return batches


def _verify_owner_key(home: Home, logged: Logged) -> Iterator[Finding]:
    """A home of an earlier release needs none until a subscription is made."""
    path = home.path / KEY_NAME
    try:
        is_there = find_owner_key(home.path) is not None
    except PenstockError as error:
        yield damage_of(path, error)
        return
    if not is_there and any(one.ticket_hash for one in logged.subscribed.values()):
        what = "it is not there, so no ticket of a subscription fits"
        hint = "restore it from a backup; else the next who subscribes makes another one"
        yield damage(path, what, hint)


def _verify_base(home: Home, log: LogState) -> Iterator[Finding]:
    """A log is never compacted further than its messages, which then begin with a base."""
    if home.messages.reached < log.compacted_to:  # read again: it may have been compacted meanwhile
        what = f"the base of the messages is missing: the log is compacted up to {log.compacted_to}"
        hint = "restore it from a backup; or the next run computes it again from the log"
        yield damage(home.messages.directory, what, hint)


def _verify_family(home: Home) -> Iterator[Finding]:
    try:
        home_family(home)
    except PenstockError as error:
        yield damage_of(home.path, error)


def _verify_snapshots(directory: Path, seen: Callable[[Path], None]) -> Iterator[Finding]:
    for path in all_snapshots(directory):
        if not is_sound(path):
            hint = "remove it: it is made again from the registry"
            yield damage(path, "a part of it is not what its checksum says", hint)
        for part in path.rglob("*"):
            seen(part)


def _verify_contents(
    home: Home, verdict: Verdict, frontier: BatchHeader, step: Step, sample: int | None, seed: int
) -> Iterable[Finding]:
    try:
        return list(_differences(home, verdict, frontier, step, sample, seed))
    except PenstockError as error:  # of something in use that has just changed
        return [damage_of(home.path, error)]


def _differences(
    home: Home, verdict: Verdict, frontier: BatchHeader, step: Step, sample: int | None, seed: int
) -> Iterator[Finding]:
    with Registry(home) as registry:
        stored = registry.subscriptions(frontier.active)
        active = [one.id for one in stored if one.initial is not Initial.NONE]
    verdict.active = len(active)
    if sample is not None and sample < len(active):
        active = sorted(random.Random(seed).sample(active, sample))
    with step("replaying the log") as advance:
        replay = replay_tables(home, frontier.end, lambda offset: advance(offset, frontier.end))
    yield from _quarantine_differences(home, replay, frontier)
    fan_out = FanOut(home, only=set(active))
    with step("building contents") as advance:
        for cut in fan_out.new(frontier):
            advance(cut.cursor, frontier.end)
    with (
        step("comparing with DuckDB") as advance,
        Oracle() as oracle,
        closing(OperatorFunctions(home, oracle, replay.engine.catalog)) as operators,
    ):
        for relation in replay.engine.catalog:
            oracle.load(relation, (row for _, row in replay.engine.rows.rows(relation)))

        def on_one(subscription: int) -> None:
            verdict.compared.append(subscription)
            advance(len(verdict.compared), len(active))

        yield from compare(fan_out.contents, oracle, operators, on_one)


def _quarantine_differences(home: Home, replay: Replay, frontier: BatchHeader) -> Iterator[Finding]:
    kept = {event.offset for event in home.quarantine.entries() if event.offset < frontier.end}
    for offset in sorted(set(replay.refused) - kept):
        what = f"the event at offset {offset} cannot be applied, but is not in quarantine"
        yield damage(home.quarantine.directory, what, "restore the directory from a backup")
