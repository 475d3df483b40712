"""What follows from a row and a rule base, by a small Datalog.

A column holds facts, the rules are the project's, and conditions ask what follows from both:

    entails(facts, 'alarm(gate)')            whether it follows
    whichOf(facts, 'suspect', :who)          all terms of which a predicate with one place is true
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from penstock.catalog import Outside
from penstock.errors import OperatorError
from penstock.operators.examples.datalog import (
    DatalogError,
    FactBase,
    consequences,
    parse_atom,
    parse_program,
    unify,
)
from penstock.operators.functions import operator
from penstock.operators.interface import Argument, Output
from penstock.operators.value_types import VARCHAR

RULES = """
% Places lie in places.
within(X, Y) :- partOf(X, Y).
within(X, Z) :- partOf(X, Y), within(Y, Z).
partOf(gate, yard).   partOf(yard, harbour).   partOf(pier, harbour).   partOf(office, harbour).

% Whoever is seen somewhere is in everything around it.
present(P, R) :- seen(P, R).
present(P, R) :- seen(P, S), within(S, R).

% Who may be there: guards, crews of moored ships, guests of whoever may.
allowed(P, R) :- guard(P), present(P, R).
allowed(P, harbour) :- crew(P, S), moored(S).
allowed(P, R) :- allowed(P, S), within(R, S), present(P, R).
allowed(P, R) :- guest(P, H), allowed(H, R), present(H, R).

% What calls for attention.
restricted(yard).   restricted(office).
stranger(P, R) :- seen(P, S), unknown(P), within(S, R), restricted(R).
suspect(P) :- stranger(P, R).
suspect(P) :- seen(P, R), with(P, Q), suspect(Q).
alarm(R) :- seen(P, R), suspect(P).
alarm(R) :- within(S, R), alarm(S).
"""

FACTS = Argument("facts", VARCHAR)


@lru_cache(maxsize=64)
def conclude(facts: str) -> FactBase:
    """What follows from the facts of a row; some predicates ask for the same row in turn."""
    return consequences([*parse_program(RULES), *parse_program(facts)])


def check_goal(constants: Mapping[str, Outside]) -> None:
    try:
        parse_atom(str(constants.get("goal", "none(x)")))
    except DatalogError as error:
        raise OperatorError(
            f"{constants['goal']!r} is not a goal: {error}", hint="write it as in alarm(gate)"
        ) from None


@operator(
    "entails",
    [FACTS, Argument("goal", VARCHAR, constant=True)],
    check_constants=check_goal,
    cost_seconds=1e-3,
)
def entails(facts: str, goal: str) -> bool:
    """Whether a goal follows; a goal with variables, whether it does for some value of them."""
    wanted = parse_atom(goal)
    known = conclude(facts).by_name.get(wanted.name, set())
    return any(unify(wanted, terms) is not None for terms in known)


@operator(
    "whichOf",
    [FACTS, Argument("predicate", VARCHAR, constant=True)],
    outputs=[Output("term", VARCHAR)],
    cost_seconds=1e-3,
)
def which_of(facts: str, predicate: str) -> list[tuple[str]]:
    """All terms of which a predicate with one place is true."""
    known = conclude(facts).by_name.get(predicate, set())
    return sorted((terms[0],) for terms in known if len(terms) == 1)
