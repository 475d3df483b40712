"""Constants from a fixed set of names, checked when subscribing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from penstock.catalog import Outside
from penstock.errors import OperatorError


def one_of(**known: Collection[str]) -> Callable[[Mapping[str, Outside]], None]:
    """A check of constants; for each argument its allowed names."""

    def check(constants: Mapping[str, Outside]) -> None:
        for argument, names in known.items():
            if argument in constants and constants[argument] not in names:
                raise OperatorError(
                    f"there is no {argument} {constants[argument]!r}",
                    hint=f"there are {', '.join(sorted(names))}",
                )

    return check
