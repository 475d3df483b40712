"""The findings of a check of a home."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from penstock.errors import PenstockError

Advance: TypeAlias = Callable[[int, int], None]
"""Called with the amount of work done, and in all."""
Step: TypeAlias = Callable[[str], AbstractContextManager[Advance]]
"""Announces a step that takes a while, by name."""


class Severity(StrEnum):
    DAMAGE = "damage"
    """A file is not as it was written, or is missing."""
    DIFFERENCE = "difference"
    """All files are intact, but their contents differ."""
    REMARK = "remark"
    """Worth knowing; nothing has to be done."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: where, what, and what to do about it."""

    severity: Severity
    where: str
    what: str
    hint: str = ""


def damage(where: Path | str, what: str, hint: str) -> Finding:
    return Finding(Severity.DAMAGE, str(where), what, hint)


def difference(where: Path | str, what: str, hint: str) -> Finding:
    return Finding(Severity.DIFFERENCE, str(where), what, hint)


def remark(where: Path | str, what: str, hint: str = "") -> Finding:
    return Finding(Severity.REMARK, str(where), what, hint)


def damage_of(where: Path, error: PenstockError) -> Finding:
    """The finding for an error of reading a file."""
    return damage(where, error.primary, error.hint or "restore this file from a backup")
