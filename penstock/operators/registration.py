"""The available operators: from entry points, named by the home, or registered by hand.

An `OperatorSet` maps names to operators and is immutable: registering makes a new set. Names are
those of SQL functions, so case does not matter. An operator that is only *named*, by an entry point
or as `module:attribute` in a home, is imported on first use: operators that no subscription calls
cost nothing at start, and a missing library affects only those that need it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import TypeAlias

from penstock.arguments import shown, text
from penstock.errors import OperatorError, PenstockError
from penstock.operators.functions import import_attribute
from penstock.operators.interface import Operator
from penstock.operators.validation import check_name, check_operator, describe_exception

ENTRY_POINT_GROUP = "penstock.operators"
MAX_OPERATORS = 1_000
_HINT = (
    "install the package that declares it, name its module in the home, "
    "or call Hub.register_operator"
)

Loader: TypeAlias = Callable[[], Operator]


class OperatorSet(Mapping[str, Operator]):
    """Operators by name, imported on first look-up."""

    def __init__(
        self, loaders: Mapping[str, Loader] | None = None, reserved: frozenset[str] = frozenset()
    ) -> None:
        """`reserved`: names of built-in functions, which operators cannot have."""
        self._loaders = MappingProxyType(dict(loaders or {}))
        self._reserved = frozenset(map(str.lower, reserved))
        self._operators: dict[str, Operator] = {}
        if len(self._loaders) > MAX_OPERATORS:
            raise OperatorError(f"there are at most {MAX_OPERATORS:,} operators")

    def __getitem__(self, name: str) -> Operator:
        folded = name.lower()
        if folded not in self._operators:
            self._operators[folded] = self._loaders[folded]()
        return self._operators[folded]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._loaders

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaders)

    def __len__(self) -> int:
        return len(self._loaders)

    def register(self, operator: Operator) -> OperatorSet:
        """A set with one more operator. Registering the same one again changes nothing."""
        checked = check_operator(operator)
        name = checked.name.lower()
        if name in self and self[name] is checked:
            return self
        return self._with({name: lambda: checked}, "registered")

    def replace(self, operator: Operator) -> OperatorSet:
        """A set in which an operator replaces the one of the same name, for a new version."""
        checked = check_operator(operator)
        name = checked.name.lower()
        rest = {known: load for known, load in self._loaders.items() if known != name}
        return OperatorSet(rest, self._reserved)._with({name: lambda: checked}, "registered")

    def register_named(self, reference: str) -> OperatorSet:
        """A set with the operators of a reference `module:attribute`: one operator or a list of
        them."""
        found = load_operators(reference)
        made = self
        for one in found:
            made = made.register(one)
        return made

    def require(self, names: Iterable[str], used_by: str) -> None:
        """OperatorError with the names that are not registered. `used_by`: "subscription 7"."""
        missing = sorted({name for name in names if name not in self})
        if missing:
            which, are = ("operator", "is") if len(missing) == 1 else ("operators", "are")
            raise OperatorError(
                f"{which} {', '.join(missing)} {are} used by {used_by} but not registered",
                hint=_HINT,
            )

    def _with(self, loaders: Mapping[str, Loader], how: str) -> OperatorSet:
        for name in loaders:
            if name in self._reserved:
                raise OperatorError(
                    f"no operator can be named {name}: it is a built-in function",
                    hint="give the operator another name",
                )
            if name in self._loaders:
                raise OperatorError(
                    f"two operators are named {name}",
                    detail=f"the second one is {how}",
                    hint="rename one of them; replace() registers a new version",
                )
        return OperatorSet({**self._loaders, **loaders}, self._reserved)


def discover_operators(reserved: frozenset[str] = frozenset()) -> OperatorSet:
    """The operators that installed packages declare, not imported. A name declared by two packages
    is refused only when it is used: other operators must not be affected."""
    declared: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=ENTRY_POINT_GROUP):
        name = check_name(point.name, f"the entry point {point.value!r}").lower()
        declared.setdefault(name, []).append(point)
    made = OperatorSet(reserved=reserved)
    return made._with(
        {name: partial(_load_declared, name, points) for name, points in declared.items()},
        "declared by a package",
    )


def _load_declared(name: str, points: list[EntryPoint]) -> Operator:
    if len(points) > 1:
        raise OperatorError(
            f"two operators are named {name}",
            detail=f"declared as {', '.join(sorted(point.value for point in points))}",
            hint="uninstall one of the packages",
        )
    return _load_entry_point(points[0])


def _load_entry_point(point: EntryPoint) -> Operator:
    found = load_operators(point.value)
    named = [one for one in found if one.name.lower() == point.name.lower()]
    if len(named) != 1:
        raise OperatorError(
            f"the entry point {point.name} leads to {point.value}, which is named otherwise",
            detail=f"found there: {', '.join(one.name for one in found) or 'nothing'}",
        )
    return named[0]


def load_operators(reference: str) -> list[Operator]:
    """The value of `module:attribute`: an operator, a class of operators, or a list of them."""
    plain = text(reference, "the place of an operator", OperatorError)
    module, colon, attribute = plain.partition(":")
    if not (module and colon and attribute):
        raise OperatorError(
            f"{shown(reference)} does not name an operator",
            hint="write module:attribute, as in my_package.recognisers:mob_pattern",
        )
    try:
        found = import_attribute(module.strip(), attribute.strip())
    except PenstockError:
        raise
    except (Exception, SystemExit) as error:  # importing a script may call sys.exit
        raise OperatorError(
            f"the operator {plain} cannot be imported",
            detail=describe_exception(error),
            hint="the module must be importable in every process that runs the home",
        ) from error
    members = found if isinstance(found, list | tuple) else [found]
    return [check_operator(_instance(one, plain)) for one in members]


def _instance(found: object, reference: str) -> object:
    """A class of operators is instantiated without arguments."""
    if not (inspect.isclass(found) and issubclass(found, Operator)):
        return found
    try:
        return found()
    except (Exception, SystemExit) as error:
        raise OperatorError(
            f"the operator {reference} cannot be made",
            detail=describe_exception(error),
        ) from error
