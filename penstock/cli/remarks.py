"""Notes on results: what of a home is not processed yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.cli.output import count

if TYPE_CHECKING:
    from penstock.delivery import ReadProgress
    from penstock.storage import Home


def progress_remark(home: Home, progress: ReadProgress) -> str:
    """What a result does not include yet; empty if it is up to date."""
    if progress.complete:
        return ""
    parts = []
    if not progress.active:
        parts.append("the subscription is not active yet: it starts with the next batch")
    if progress.waiting:
        parts.append(f"{count(progress.waiting, 'record')} of the log not processed yet")
    then = "" if is_processed(home) else f" (penstock run {home.path} --once)"
    return "; ".join(parts) + then


def is_processed(home: Home) -> bool:
    """Whether a pipeline or a Hub is running on the home."""
    return home.processed_by() is not None
