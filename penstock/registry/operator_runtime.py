"""The operators of a home: finds and evaluates what subscriptions call.

An operator is found where its declaration says, among those of installed packages, or it was
registered in this process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from penstock.catalog import Catalog
from penstock.catalog.signatures import Parameter, Signature
from penstock.errors import OperatorError
from penstock.flow.operator_values import OperatorRuntime
from penstock.operators.evaluation import Evaluator
from penstock.operators.groups import Predicate
from penstock.operators.interface import Operator, signature
from penstock.operators.journal import Journal, MemoryJournal
from penstock.operators.journal_file import journal_of
from penstock.operators.lazy_columns import lazy_column
from penstock.operators.registration import OperatorSet, discover_operators, load_operators
from penstock.operators.results import CachedEvaluator, MemoryResults, ResultCache
from penstock.operators.results_file import OPERATOR_RESULTS, FileResults
from penstock.operators.terms import Constant
from penstock.operators.validation import check_constants_of, check_operator
from penstock.operators.worker_process import ProcessEvaluator, check_sendable
from penstock.query import Query, extended_relations


def signature_of(operator: Operator, place: str = "") -> Signature:
    """The signature of an operator."""
    return Signature(
        operator.name,
        tuple(Parameter(one.name, one.type, one.constant) for one in operator.arguments),
        tuple(Parameter(one.name, one.type) for one in operator.outputs),
        place,
    )


def complete_signature(declared: Signature) -> Signature:
    """A declaration completed with the parameters of the implementation it names, if it has
    none."""
    if declared.arguments or declared.outputs:
        return declared
    found = _implementation(declared, discover_operators())
    if found is None:
        raise OperatorError(
            f"operator {declared.name} has no parameters and no implementation",
            hint="list its arguments, or say where it is: AS 'module:attribute'",
        )
    return signature_of(found, declared.place)


def _implementation(declared: Signature, installed: OperatorSet) -> Operator | None:
    if not declared.place:
        return installed.get(declared.name)
    named = {one.name.lower(): one for one in load_operators(declared.place)}
    return named.get(declared.name.lower())


class HomeOperators:
    """The operators of one home in one process, resolved on first use."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        home: Path | None = None,
        evaluator: Evaluator | None = None,
    ) -> None:
        """`home`: where results are cached for other processes and later runs."""
        self._catalog = catalog
        caches: list[ResultCache] = [MemoryResults()]
        if home is not None:
            caches.append(FileResults(home / OPERATOR_RESULTS))
        self._evaluator = CachedEvaluator(evaluator or ProcessEvaluator(pickler=_pickled), caches)
        self._registered = OperatorSet()
        self.journal: Journal = MemoryJournal() if home is None else journal_of(home)
        cached = self._evaluator
        self.runtime = OperatorRuntime(
            _Found(self), cached, journal=self.journal, recall=cached.recall
        )

    def note_versions(self, names: Iterable[str], since: int, catalog: Catalog) -> None:
        """Record which versions are used from an offset on, before a home is processed.
        OperatorError, by name, if one is missing."""
        for name in names:
            self.journal.note_version(name.lower(), self.find(name, catalog).version, since)

    def register(self, operator: Operator) -> None:
        """Use an operator in this process, replacing another version. Raises OperatorError here,
        not at the first row, if no other process could run it."""
        checked = check_operator(operator)
        check_sendable(checked, _pickled)
        self._registered = self._registered.replace(checked)
        self.runtime.forget(operator.name)

    def find(self, name: str, catalog: Catalog | None = None) -> Operator:
        """OperatorError if there is no implementation, or if it does not match its declaration (in
        `catalog`, if given)."""
        declared = (catalog or self._catalog()).operators.get(name.lower())
        if name in self._registered:
            found = self._registered[name]
            if declared is not None:
                check_signature(declared, found)
            return found
        implemented = None
        if declared is not None:
            try:
                implemented = _implementation(declared, discover_operators())
            except OperatorError as error:
                raise OperatorError(
                    f"operator {declared.name} is called by subscriptions, but cannot be loaded",
                    detail=": ".join(part for part in (error.primary, error.detail) if part),
                    hint=error.hint,
                ) from error
        if implemented is None or declared is None:
            raise OperatorError(
                f"operator {declared.name if declared else name} is called by subscriptions, but "
                "is not registered here",
                hint="install the package that declares it, name its module in CREATE OPERATOR, "
                "or open the home with Hub(home, operators=[…])",
            )
        check_signature(declared, implemented)
        return implemented

    def check_constants(self, query: Query) -> None:
        """OperatorError if a query calls an operator with constants that no row can be evaluated
        with. Operators without an implementation here are skipped: a process that has one checks
        them."""
        for call in calls_of(query):
            self._check_call(call)

    def _check_call(self, call: Predicate) -> None:
        try:
            operator = self.find(call.operator)
        except OperatorError:
            return
        given = zip(operator.arguments, call.arguments, strict=True)
        constants = {taken.name: one.value for taken, one in given if isinstance(one, Constant)}
        check_constants_of(operator, constants)

    def close(self) -> None:
        self._evaluator.close()
        self.journal.close()


def calls_of(query: Query) -> Iterator[Predicate]:
    """The operator calls of a query."""
    for relation in extended_relations(query):
        for definition in relation.definitions:
            if definition.is_lazy:
                yield from lazy_column(definition).calls


def check_signature(declared: Signature, found: Operator) -> None:
    """OperatorError if an implementation does not match its declared signature."""
    actual = signature_of(found, declared.place)
    types = [[one.type for one in (*each.arguments, *each.outputs)] for each in (declared, actual)]
    if types[0] != types[1] or len(declared.outputs) != len(actual.outputs):
        raise OperatorError(
            f"operator {declared.name} is declared as {declared}, and implemented as "
            f"{signature(found)}",
            hint="subscriptions rely on its parameters: give another operator another name",
        )


class _Found(dict[str, Operator]):
    """Operators by name, each resolved once."""

    def __init__(self, operators: HomeOperators) -> None:
        super().__init__()
        self._operators = operators

    def __missing__(self, name: str) -> Operator:
        found = self[name] = self._operators.find(name)
        self._operators.journal.note_version(name, found.version, None)
        return found


def _pickled(operator: Operator) -> bytes:
    """By name if possible; else by value, as Spark sends functions."""
    import pickle

    try:
        data = pickle.dumps(operator)
        if b"__main__" not in data:
            return data
    except (pickle.PicklingError, AttributeError, TypeError):
        pass
    from pyspark import cloudpickle

    by_value: bytes = cloudpickle.dumps(operator)  # type: ignore[no-untyped-call]
    return by_value
