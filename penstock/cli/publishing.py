"""Output of `penstock publish`: what is in the log after a failure, and results of dry runs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.output import Output, count
from penstock.errors import PenstockError
from penstock.ingest import Published, shown_name
from penstock.storage import NO_ROOM

if TYPE_CHECKING:
    from penstock.ingest import FileCheck, Refusal


@dataclass(slots=True)
class FileDone:
    """Progress of one file."""

    path: Path
    published: Published = field(default_factory=Published)
    before: int = 0
    """Events skipped because they are already in the log."""
    complete: bool = False

    @property
    def text(self) -> str:
        now = self.published
        name = shown_name(str(self.path))
        if not now.events:
            return f"none of {name}"
        if self.before:
            part = f"after {self.before:,} skipped, "
        else:
            part = "all " if self.complete else "the first "
        place = f"offsets {now.first} to {now.end - 1}"
        return f"{part}{count(now.events, 'event')} of {name} ({place})"

    @property
    def facts(self) -> dict[str, object]:
        now = self.published
        return {
            "file": shown_name(str(self.path)),
            "events": now.events,
            "first_offset": now.first if now.events else None,
            "end_offset": now.end if now.events else None,
            "events_before": self.before,
            "complete": self.complete,
        }


def rest_command(home: Path, options: Sequence[str], done: Sequence[FileDone]) -> str:
    """The command that publishes the events that are not in the log."""
    rest = [one for one in done if not one.complete]
    skip = rest[0].before + rest[0].published.events if rest else 0
    words = ["penstock", "publish", str(home), *(str(one.path) for one in rest), *options]
    return shown_name(shlex.join(words + (["--skip", str(skip)] if skip else [])))


def tell_partial(
    error: PenstockError, done: Sequence[FileDone], rest: str, log_end: int
) -> PenstockError:
    """Add to an error what is in the log and how to publish the rest."""
    error.facts = {
        "published": {
            "events": sum(one.published.events for one in done),
            "log_end": log_end,
            "files": [one.facts for one in done],
        },
        "rest": rest,
    }
    begun = [one for one in done if one.published.events or one.complete]
    if not begun:
        error.detail = "; ".join(filter(None, [error.detail, "nothing was appended"]))
        return error
    tried = [one for one in done if one.published.events or one.complete or one is _failed(done)]
    told = f"in the log: {', '.join(one.text for one in tried)}"
    error.detail = "; ".join(filter(None, [error.detail, told]))
    hint = "make room on that disk" if error.hint == NO_ROOM else error.hint
    error.hint = "; ".join(filter(None, [hint, f"to publish the rest: {rest}"]))
    return error


def _failed(done: Sequence[FileDone]) -> FileDone | None:
    return next((one for one in done if not one.complete), None)


def show_check(out: Output, checks: Sequence[FileCheck]) -> None:
    """Print the result of a dry run."""
    accepted, skipped, refused = (
        sum(getattr(one, name) for one in checks) for name in ("accepted", "skipped", "refused")
    )
    reasons = sorted(
        ((check, one) for check in checks for one in check.refusals.values()),
        key=lambda pair: -pair[1].events,
    )
    out.result(
        {
            "events": accepted + skipped + refused,
            "accepted": accepted,
            "skipped": skipped,
            "refused": refused,
            "files": [_file_facts(check) for check in checks],
            "reasons": [_reason_facts(check, one) for check, one in reasons],
        }
    )
    besides = f", {count(skipped, 'event')} skipped" if skipped else ""
    out.say(f"would accept {accepted:,} of {count(accepted + skipped + refused, 'event')}{besides}")
    if reasons:
        rows = [(one.events, _reason_text(one), _place_text(check, one)) for check, one in reasons]
        out.table(["events", "reason", "first at"], rows, numbers=["events"])
    for check in checks:
        if check.unreadable is not None:
            out.say(f"{check.name} cannot be read to the end: {check.unreadable}")


def _reason_text(one: Refusal) -> str:
    primary, detail, _ = one.example.reason()
    return f"{primary} ({detail})" if detail else primary


def _place_text(check: FileCheck, one: Refusal) -> str:
    numbers = ", ".join(map(str, one.numbers))
    more = ", …" if one.events > len(one.numbers) else ""
    return f"{check.name} {one.unit} {numbers}{more}"


def _file_facts(check: FileCheck) -> dict[str, object]:
    unreadable = None if check.unreadable is None else check.unreadable.primary
    return {
        "file": check.name,
        "accepted": check.accepted,
        "skipped": check.skipped,
        "refused": check.refused,
        "unreadable": unreadable,
    }


def _reason_facts(check: FileCheck, one: Refusal) -> dict[str, object]:
    primary, detail, hint = one.example.reason()
    return {
        "file": check.name,
        "events": one.events,
        "reason": primary,
        "detail": detail,
        "hint": hint,
        "unit": one.unit,
        "first_at": one.numbers,
    }
