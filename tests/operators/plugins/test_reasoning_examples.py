"""The operators that reason by rules and look up in a database, against naive twins."""

from __future__ import annotations

import itertools
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import OperatorError
from penstock.operators import VARCHAR, Argument, OperatorFailure, Output
from penstock.operators.examples import look_up, reasoning
from penstock.operators.examples.datalog import (
    DatalogError,
    consequences,
    parse_program,
)
from penstock.operators.worker_process import ProcessEvaluator
from tests.operators.plugins.test_examples import outcomes_of

# Reasoning.


def naive(rules_text: str) -> dict[str, set[tuple[str, ...]]]:
    """Every rule with every combination of facts, until nothing is new."""
    rules = parse_program(rules_text)
    known = {(rule.head.name, rule.head.terms) for rule in rules if not rule.body}
    while True:
        new = set(known)
        for rule in rules:
            for facts in itertools.product(known, repeat=len(rule.body)):
                bound: dict[str, str] = {}
                if rule.body and all(
                    atom.name == name
                    and len(atom.terms) == len(terms)
                    and all(
                        (bound.setdefault(one, term) if one in atom.variables else one) == term
                        for one, term in zip(atom.terms, terms, strict=True)
                    )
                    for atom, (name, terms) in zip(rule.body, facts, strict=True)
                ):
                    new.add((rule.head.name, rule.head.substitute(bound).terms))
        if new == known:
            found: dict[str, set[tuple[str, ...]]] = {}
            for name, terms in known:
                found.setdefault(name, set()).add(terms)
            return found
        known = new


TERMS = st.sampled_from(["a", "b", "c", "X", "Y"])
NAMES = st.sampled_from("pq")
ATOMS = st.builds(lambda name, one, two: f"{name}({one}, {two})", NAMES, TERMS, TERMS)
FACTS = st.builds(
    lambda name, one, two: f"{name}({one}, {two}).",
    NAMES,
    st.sampled_from("abc"),
    st.sampled_from("abc"),
)


@given(st.lists(FACTS, max_size=4), st.lists(st.tuples(ATOMS, ATOMS, ATOMS), max_size=2))
def test_semi_naive_finds_what_naive_finds(facts: list[str], rules: list[tuple[str, ...]]) -> None:
    written = [*facts]
    for head, one, two in rules:
        try:
            parse_program(f"{head} :- {one}, {two}.")
        except DatalogError:
            continue  # a variable of the head that the body does not bind
        written.append(f"{head} :- {one}, {two}.")
    found = consequences(parse_program("\n".join(written))).by_name
    assert {name: terms for name, terms in found.items() if terms} == naive("\n".join(written))


def test_what_follows() -> None:
    facts = """% a night at the harbour
        seen(eve, gate). unknown(eve). seen(bob, pier). with(bob, eve).
        seen(ann, yard). guard(ann). seen(gus, yard). guest(gus, ann)."""
    goals = ["alarm(harbour)", "alarm(office)", "suspect(bob)", "allowed(gus, yard)"]
    rows = [(facts, goal) for goal in [*goals, "stranger(Who, yard)", 'nobody("knows it")']]
    assert outcomes_of(reasoning.entails, *rows) == [True, False, True, True, True, False]
    assert outcomes_of(reasoning.which_of, (facts, "suspect")) == [(("bob",), ("eve",))]
    assert outcomes_of(reasoning.which_of, ("", "suspect")) == [()]


@pytest.mark.parametrize(
    "bad", ["p", "p(a", "p(a)", "p().", "p(X).", "p(a) :- .", "p(X) :- q(Y).", "p(a;b).", "§"]
)
def test_programs_that_are_refused(bad: str) -> None:
    with pytest.raises(DatalogError):
        parse_program(bad)
    (failed,) = outcomes_of(reasoning.entails, (bad, "p(a)"))
    assert isinstance(failed, OperatorFailure)


def test_too_many_consequences() -> None:
    many = " ".join(f"p(n{i}, n{i + 1})." for i in range(400))
    with pytest.raises(DatalogError, match="more than 20,000 facts"):
        consequences(parse_program(f"q(X, Y) :- p(X, Z), p(W, Y). {many}"))


# Look-up.


def test_owners() -> None:
    found = outcomes_of(look_up.owner_of, ("KC-0007",), ("nobody",), ("' OR 1=1 --",))
    assert found == [(("Ada Lovelace",), ("Lovelace and Daughters",)), (), ()]


def test_looking_up_in_a_file(tmp_path: Path, processes: ProcessEvaluator) -> None:
    path = tmp_path / "stock.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE stock (part TEXT, shelf TEXT)")
        connection.execute("INSERT INTO stock VALUES ('bolt', 'A1')")
    connection.close()

    def made() -> look_up.LookUp:
        return look_up.LookUp(
            "shelfOf",
            "SELECT shelf FROM stock WHERE part = ?",
            [Argument("part", VARCHAR)],
            [Output("shelf", VARCHAR)],
            path,
        )

    first = made()
    assert processes.evaluate(first, [("bolt",), ("nut",)]).outcomes == [(("A1",),), ()]
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE stock SET shelf = 'B2'")
    connection.close()
    second = made()
    assert second.version != first.version
    assert processes.evaluate(second, [("bolt",)]).outcomes == [(("B2",),)]
    with pytest.raises(OperatorError, match="cannot be read"):
        look_up.LookUp("none", "", [], [], tmp_path / "nothing")
