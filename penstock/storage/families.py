"""Which schemes may process a home: only those of the family that made its messages.

The family is fixed by the first published batch, and recorded in the home.
"""

from __future__ import annotations

from penstock.errors import HomeError
from penstock.joins import Family
from penstock.joins.scheme_registry import schemes_of
from penstock.storage.home import Home


def home_family(home: Home) -> Family:
    """The family of the schemes that process a home; HomeError if it is unknown."""
    recorded = home.schemes
    if recorded not in set(Family):
        raise HomeError(
            f"{home.path} is processed by an unknown family of schemes: {recorded}",
            detail=f"this release knows {', '.join(Family)}",
            hint="restore penstock.json from a backup, or use the release that made the home",
        )
    return Family(recorded)


def claim_family(home: Home, family: Family, scheme: str) -> None:
    """Record that a home is processed by a scheme of this family. HomeError if its messages are of
    another one. Only for the holder of the processing lock, before anything is published."""
    if home.messages.frontier is None:
        home.record_schemes(family)
        return
    settled = home_family(home)
    if settled is not family:
        raise HomeError(
            f"{home.path} has messages of other schemes than {scheme}",
            detail=f"they carry {settled}; {scheme} sends {family}, so contents would go wrong",
            hint=f"open it by Hub(scheme=...) with one of {', '.join(schemes_of(settled))}; for "
            "another scheme make a new home",
        )
