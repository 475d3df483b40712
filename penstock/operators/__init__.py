"""Operators that conditions call: definition, registration, evaluation under limits, and the joint
meaning of their bindings. How to write one: docs/notes/operators.md."""

from typing import TYPE_CHECKING

from penstock.doors import lazy_door

if TYPE_CHECKING:
    from penstock.operators.bindings import GroupEvaluation
    from penstock.operators.canonical import canonical_group, canonical_predicate
    from penstock.operators.evaluation import Evaluator, InProcessEvaluator
    from penstock.operators.failures import FailureKind, OperatorFailure
    from penstock.operators.functions import FunctionOperator, operator
    from penstock.operators.groups import GroupDefinition, Predicate, check_group, read_group
    from penstock.operators.interface import (
        Argument,
        Bindings,
        Operator,
        Output,
        Result,
        StoredRow,
        signature,
    )
    from penstock.operators.limits import Evaluation, Outcome
    from penstock.operators.registration import OperatorSet, discover_operators, load_operators
    from penstock.operators.results import CachedEvaluator, MemoryResults, ResultCache, result_keys
    from penstock.operators.results_file import FileResults
    from penstock.operators.terms import Arithmetic, ColumnTerm, Comparison, Constant, Variable
    from penstock.operators.value_types import (
        BIGINT,
        BOOLEAN,
        DATE,
        DOUBLE,
        INTEGER,
        TIMESTAMP,
        VARCHAR,
        decimal_type,
    )
    from penstock.operators.worker_process import ProcessEvaluator

__all__ = [
    "BIGINT",
    "BOOLEAN",
    "DATE",
    "DOUBLE",
    "INTEGER",
    "TIMESTAMP",
    "VARCHAR",
    "Argument",
    "Arithmetic",
    "Bindings",
    "CachedEvaluator",
    "ColumnTerm",
    "Comparison",
    "Constant",
    "Evaluation",
    "Evaluator",
    "FailureKind",
    "FileResults",
    "FunctionOperator",
    "GroupDefinition",
    "GroupEvaluation",
    "InProcessEvaluator",
    "MemoryResults",
    "Operator",
    "OperatorFailure",
    "OperatorSet",
    "Outcome",
    "Output",
    "Predicate",
    "ProcessEvaluator",
    "Result",
    "ResultCache",
    "StoredRow",
    "Variable",
    "canonical_group",
    "canonical_predicate",
    "check_group",
    "decimal_type",
    "discover_operators",
    "load_operators",
    "operator",
    "read_group",
    "result_keys",
    "signature",
]

__getattr__ = lazy_door(
    __name__,
    {
        "bindings": "GroupEvaluation",
        "canonical": "canonical_group canonical_predicate",
        "evaluation": "Evaluator InProcessEvaluator",
        "failures": "FailureKind OperatorFailure",
        "functions": "FunctionOperator operator",
        "groups": "GroupDefinition Predicate check_group read_group",
        "interface": "Argument Bindings Operator Output Result StoredRow signature",
        "limits": "Evaluation Outcome",
        "registration": "OperatorSet discover_operators load_operators",
        "results": "CachedEvaluator MemoryResults ResultCache result_keys",
        "results_file": "FileResults",
        "terms": "Arithmetic ColumnTerm Comparison Constant Variable",
        "value_types": "BIGINT BOOLEAN DATE DOUBLE INTEGER TIMESTAMP VARCHAR decimal_type",
        "worker_process": "ProcessEvaluator",
    },
)
