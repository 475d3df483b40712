"""A small Datalog: facts and rules as text, and everything that follows from them.

    partOf(X, Z) :- partOf(X, Y), partOf(Y, Z).    % names with a capital are variables
    partOf(bronx, "New York").

Rules are evaluated semi-naively: each round combines only the facts of the last round with what was
known. There is no negation, and there are no functions, so it always terminates; the number of
facts is limited all the same.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

MAX_FACTS = 20_000
MAX_TEXT_CHARACTERS = 200_000
_TOKEN = re.compile(
    r"""\s*(?:%[^\n]*\s*)*(?:(?P<name>[A-Za-z_]\w*|\d+)|"(?P<quoted>[^"\n]*)"|(?P<sign>:-|[(),.]))"""
)
_REST = re.compile(r"(?:\s|%[^\n]*)*\Z")


class DatalogError(ValueError):
    """A text that is no program, or a program with too many consequences."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A predicate with terms: a fact, if none of them is a variable."""

    name: str
    terms: tuple[str, ...]
    variables: frozenset[str] = frozenset()
    """Those of the terms that are variables."""

    def substitute(self, bound: dict[str, str]) -> Atom:
        terms = tuple(bound.get(one, one) if one in self.variables else one for one in self.terms)
        return Atom(self.name, terms, self.variables - bound.keys())


@dataclass(frozen=True, slots=True)
class Rule:
    head: Atom
    body: tuple[Atom, ...]


def parse_program(text: str) -> list[Rule]:
    """The rules of a text; facts are rules without a body."""
    if len(text) > MAX_TEXT_CHARACTERS:
        raise DatalogError(f"a program has at most {MAX_TEXT_CHARACTERS:,} characters")
    tokens = list(_tokens(text))
    rules = []
    while tokens:
        head, tokens = _atom(tokens)
        body: list[Atom] = []
        while tokens and tokens[0] == ("sign", ":-" if not body else ","):
            atom, tokens = _atom(tokens[1:])
            body.append(atom)
        tokens = _expect(tokens, ".")
        bound = frozenset().union(*(atom.variables for atom in body))
        if not head.variables <= bound:
            raise DatalogError(f"a variable of {head.name} is bound by nothing")
        rules.append(Rule(head, tuple(body)))
    return rules


def parse_atom(text: str) -> Atom:
    atom, rest = _atom(list(_tokens(text)))
    if rest:
        raise DatalogError("there is more than one atom")
    return atom


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while not _REST.match(text, at):
        found = _TOKEN.match(text, at)
        if found is None:
            raise DatalogError(f"cannot read {text[at : at + 20].strip()!r}")
        assert found.lastgroup is not None
        yield found.lastgroup, found[found.lastgroup]
        at = found.end()


def _expect(tokens: list[tuple[str, str]], sign: str) -> list[tuple[str, str]]:
    if not tokens or tokens[0] != ("sign", sign):
        raise DatalogError(f"{sign!r} is missing")
    return tokens[1:]


def _atom(tokens: list[tuple[str, str]]) -> tuple[Atom, list[tuple[str, str]]]:
    if not tokens or tokens[0][0] != "name":
        raise DatalogError("the name of a predicate is missing")
    name, rest = tokens[0][1], _expect(tokens[1:], "(")
    terms: list[str] = []
    variables: set[str] = set()
    while True:
        if not rest or rest[0][0] == "sign":
            raise DatalogError(f"a term of {name} is missing")
        kind, term = rest[0]
        terms.append(term)
        if kind == "name" and term[0].isupper():
            variables.add(term)
        rest = rest[1:]
        if rest and rest[0] == ("sign", ","):
            rest = rest[1:]
            continue
        return Atom(name, tuple(terms), frozenset(variables)), _expect(rest, ")")


@dataclass(slots=True)
class FactBase:
    """Facts by predicate."""

    by_name: defaultdict[str, set[tuple[str, ...]]] = field(
        default_factory=lambda: defaultdict(set)
    )
    size: int = 0

    def add(self, name: str, terms: tuple[str, ...]) -> bool:
        """Whether the fact is new."""
        known = self.by_name[name]
        if terms in known:
            return False
        if self.size >= MAX_FACTS:
            raise DatalogError(f"more than {MAX_FACTS:,} facts")
        known.add(terms)
        self.size += 1
        return True


def consequences(program: Iterable[Rule]) -> FactBase:
    """All facts that follow from a program."""
    known, rules = FactBase(), []
    fresh = FactBase()
    for rule in program:
        if rule.body:
            rules.append(rule)
        elif known.add(rule.head.name, rule.head.terms):
            fresh.add(rule.head.name, rule.head.terms)
    while fresh.size:
        following = FactBase()
        for rule in rules:
            for place, atom in enumerate(rule.body):
                if fresh.by_name.get(atom.name):
                    for head in list(_derive(rule, place, known, fresh)):
                        if known.add(head.name, head.terms):
                            following.add(head.name, head.terms)
        fresh = following
    return known


def _derive(rule: Rule, place: int, known: FactBase, fresh: FactBase) -> Iterator[Atom]:
    """The conclusions of a rule if one atom of its body is a fact of the last round."""
    rest = rule.body[:place] + rule.body[place + 1 :]
    for bound in _matches(rule.body[place], fresh, {}):
        yield from _derive_rest(rule.head, rest, known, bound)


def _derive_rest(
    head: Atom, rest: tuple[Atom, ...], known: FactBase, bound: dict[str, str]
) -> Iterator[Atom]:
    if not rest:
        yield head.substitute(bound)
        return
    for more in _matches(rest[0], known, bound):
        yield from _derive_rest(head, rest[1:], known, more)


def _matches(atom: Atom, facts: FactBase, bound: dict[str, str]) -> Iterator[dict[str, str]]:
    """The substitutions under which an atom equals one of some facts."""
    wanted = atom.substitute(bound)
    if not wanted.variables:
        if wanted.terms in facts.by_name[atom.name]:
            yield bound
        return
    for terms in list(facts.by_name[atom.name]):
        found = unify(wanted, terms)
        if found is not None:
            yield {**bound, **found}


def unify(atom: Atom, terms: tuple[str, ...]) -> dict[str, str] | None:
    """The bindings of an atom's variables that make it equal to a fact; None if there are none."""
    if len(atom.terms) != len(terms):
        return None
    found: dict[str, str] = {}
    for one, term in zip(atom.terms, terms, strict=True):
        if (found.setdefault(one, term) if one in atom.variables else one) != term:
            return None
    return found
