"""Canonical definitions: groups that are equal up to names and order get the same one.

Predicates are the same if their constants are equal and their variables unify (Liu et al., 2007,
section 3): `p(:x, :y)` and `p(:a, :b)`, but not `p(:x, :x)`. So are groups under a renaming of all
their variables, whatever order predicates and constraints were written in, and whichever way round
comparisons, sums and products are.

Naming variables canonically is canonical labelling of a graph: variables are distinguished by where
they occur, refined in rounds. Those that remain indistinguishable are tried in every order, and the
smallest text wins. Interchangeable variables are not tried in both orders, so many orders are tried
only for an odd symmetry; after `MAX_TRIED` the smallest so far is used. Then equal groups may get
different definitions, which loses shared work and is never wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from penstock.operators.groups import GroupDefinition, Predicate
from penstock.operators.terms import (
    Arithmetic,
    Comparison,
    Term,
    Variable,
    leaves_of,
    plain_term,
)

MAX_TRIED = 50
_MIRRORED = {">": "<", ">=": "<="}
_SYMMETRIC = {"+", "*", "=", "<>"}


def canonical_group(group: GroupDefinition) -> GroupDefinition:
    """The same definition for every way to write the group. Constants must have been checked."""
    best: GroupDefinition | None = None
    for tried, names in enumerate(_namings(group, dict.fromkeys(group.variables(), 0))):
        if tried >= MAX_TRIED:
            break
        named = _renamed(group, names)
        if best is None or named.text() < best.text():
            best = named
    assert best is not None
    return best


def canonical_predicate(predicate: Predicate) -> Predicate:
    """A predicate with its variables named by their first occurrence."""
    order = dict.fromkeys(one.name for one in predicate.outputs if type(one) is Variable)
    return _rename_predicate(predicate, {name: _name(place) for place, name in enumerate(order)})


def _name(place: int) -> str:
    return f"v{place + 1}"


def _namings(group: GroupDefinition, colours: dict[str, int]) -> Iterator[dict[str, str]]:
    """Names for all variables, in every order of the indistinguishable ones."""
    colours = _refined(group, colours)
    alike = [name for name in colours if list(colours.values()).count(colours[name]) > 1]
    if not alike:
        order = sorted(colours, key=colours.__getitem__)
        yield {name: _name(place) for place, name in enumerate(order)}
        return
    first = min(colours[name] for name in alike)
    apart = {name: 2 * colour + 1 for name, colour in colours.items()}
    tried: list[str] = []
    for chosen in (name for name in alike if colours[name] == first):
        if not any(_are_interchangeable(group, chosen, other) for other in tried):
            tried.append(chosen)
            yield from _namings(group, {**apart, chosen: 2 * first})


def _are_interchangeable(group: GroupDefinition, one: str, other: str) -> bool:
    """Whether swapping two variables leaves the group unchanged: then one order is enough."""
    names = {name: name for name in group.variables()}
    return _renamed(group, names) == _renamed(group, {**names, one: other, other: one})


def _refined(group: GroupDefinition, colours: dict[str, int]) -> dict[str, int]:
    """Colours refined by the occurrences of variables, until they no longer change."""
    while True:
        roles = {name: (colours[name], _roles(group, colours, name)) for name in colours}
        ranks = {role: rank for rank, role in enumerate(sorted(set(roles.values())))}
        refined = {name: ranks[role] for name, role in roles.items()}
        if len(ranks) == len(set(colours.values())):
            return refined
        colours = refined


def _roles(group: GroupDefinition, colours: Mapping[str, int], name: str) -> tuple[str, ...]:
    """All occurrences of a variable, with colours in place of names."""
    names = {other: f"#{colour}" for other, colour in colours.items()} | {name: "*"}
    renamed = _renamed(group, names)
    own = Variable("*")
    found = [_text(one.plain()) for one in renamed.predicates if own in one.outputs]
    found += [_text(plain_term(one)) for one in renamed.constraints if own in leaves_of(one)]
    return tuple(found)


def _renamed(group: GroupDefinition, names: Mapping[str, str]) -> GroupDefinition:
    """With new names, sorted by text; duplicate predicates removed."""
    predicates = {_rename_predicate(one, names): None for one in group.predicates}
    constraints = {_rename_comparison(one, names): None for one in group.constraints}
    return GroupDefinition(
        tuple(sorted(predicates, key=lambda one: _text(one.plain()))),
        tuple(sorted(constraints, key=lambda one: _text(plain_term(one)))),
    )


def _rename_predicate(predicate: Predicate, names: Mapping[str, str]) -> Predicate:
    outputs = tuple(
        Variable(names[one.name]) if isinstance(one, Variable) else one for one in predicate.outputs
    )
    return Predicate(predicate.operator.lower(), predicate.arguments, outputs)


def _rename_comparison(constraint: Comparison, names: Mapping[str, str]) -> Comparison:
    left, right = _rename_term(constraint.left, names), _rename_term(constraint.right, names)
    if constraint.sign in _MIRRORED:
        return Comparison(_MIRRORED[constraint.sign], right, left)
    return Comparison(constraint.sign, *_ordered(constraint.sign, left, right))


def _rename_term(term: Term, names: Mapping[str, str]) -> Term:
    if isinstance(term, Variable):
        return Variable(names[term.name])
    if not isinstance(term, Arithmetic):
        return term
    left, right = _rename_term(term.left, names), _rename_term(term.right, names)
    return Arithmetic(term.sign, *_ordered(term.sign, left, right))


def _ordered(sign: str, left: Term, right: Term) -> tuple[Term, Term]:
    if sign in _SYMMETRIC and _text(plain_term(right)) < _text(plain_term(left)):
        return right, left
    return left, right


def _text(plain: object) -> str:
    return json.dumps(plain, separators=(",", ":"))
