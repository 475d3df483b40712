"""All schemes, by name.

A scheme is a module of `penstock.joins.schemes`, or of `penstock.joins.comparators` if it exists
for comparison, with a class `SCHEME` that is constructed without arguments; to add a scheme, add a
file. The module name is the scheme name with characters that Python allows.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from functools import cache
from importlib import import_module

from penstock.arguments import text
from penstock.errors import PenstockError
from penstock.joins.scheme import Family, Scheme
from penstock.joins.wide_filters import WithEnvelopes

DEFAULT_NAME = "auto"

_PACKAGES = ("penstock.joins.schemes", "penstock.joins.comparators")

_COMPACTING = {
    Family.SEMIJOINS: DEFAULT_NAME,
    Family.JOIN_ROWS: "ref-j+",
    Family.SELECTIONS: "rel-sel",
}

# These address recipients by name, or one joining row at a time: any number of filter columns.
_ANY_COLUMNS = frozenset({"enum-j", "enum-sj", "ref-j", "ref-j+", "rel-sel"})


def scheme_names() -> list[str]:
    return sorted(_modules())


def make_scheme(name: str = DEFAULT_NAME) -> Scheme:
    """A new scheme for one engine; PenstockError if the name is unknown."""
    name = text(name, "the name of a scheme", PenstockError)
    scheme = _scheme_class(name)()
    return scheme if name in _ANY_COLUMNS else WithEnvelopes(scheme)


def family_of(name: str) -> Family:
    """The family of a scheme; PenstockError if the name is unknown."""
    return make_scheme(name).family


def schemes_of(family: Family) -> list[str]:
    return [name for name in scheme_names() if family_of(name) is family]


def compacting_scheme(family: Family) -> Scheme:
    """The scheme of a family that needs the fewest messages for all rows at once."""
    return make_scheme(_COMPACTING[family])


@cache
def _scheme_class(name: str) -> Callable[[], Scheme]:
    known = scheme_names()
    if name not in known:
        raise PenstockError(
            f"unknown scheme {name:.60}", hint=f"the schemes are {', '.join(known)}"
        )
    found: Callable[[], Scheme] = import_module(_modules()[name]).SCHEME
    return found


@cache
def _modules() -> dict[str, str]:
    """The modules of all schemes, by scheme name."""
    return {
        module.name.replace("_plus", "+").replace("_", "-"): f"{package}.{module.name}"
        for package in _PACKAGES
        for module in pkgutil.iter_modules(import_module(package).__path__)
        if not module.ispkg
    }
