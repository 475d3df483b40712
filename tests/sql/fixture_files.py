"""Reading and rendering the text fixtures of tests/fixtures/sql.

A file holds cases; a case is a title, a statement, and what it means:

    === a closed range
    SELECT symbol FROM stocks WHERE per BETWEEN 45 AND 70
    ---
    from stocks
    branch 45.0 <= per <= 70.0
    output symbol

To add a case, write its title and statement, run `python -m tests.sql.fixture_files`, which writes
what follows the dashes anew for all cases, and read what it wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.catalog import Catalog, Relation
from penstock.catalog.derived import base_name, shown_column
from penstock.errors import NotYetError, SqlError
from penstock.predicates.boxes import describe_box
from penstock.sql import Query, bind, parse_relation

DIRECTORY = Path(__file__).parent.parent / "fixtures" / "sql"
SCHEMA = DIRECTORY / "schema.sql"


@dataclass(frozen=True)
class Case:
    title: str
    sql: str
    expected: str


def read_cases(path: Path) -> list[Case]:
    cases = []
    for block in path.read_text().split("=== ")[1:]:
        title, rest = block.split("\n", 1)
        sql, _, expected = rest.partition("\n---\n")
        cases.append(Case(title.strip(), sql.strip("\n"), expected.strip("\n")))
    return cases


def write_cases(path: Path) -> None:
    head = path.read_text().split("=== ")[0]
    catalog = read_schema()
    blocks = [
        f"=== {case.title}\n{case.sql}\n---\n{meaning(path, case.sql, catalog)}\n"
        for case in read_cases(path)
    ]
    path.write_text(head + "\n".join(blocks))


def case_files() -> list[Path]:
    return sorted(path for path in DIRECTORY.glob("*.sql") if path != SCHEMA)


def read_schema() -> Catalog:
    catalog = Catalog()
    for offset, statement in enumerate(SCHEMA.read_text().split(";\n")):
        if statement.strip():
            catalog.add(parse_relation(statement), offset)
    return catalog


def meaning(path: Path, sql: str, catalog: Catalog) -> str:
    """What a statement is understood as, in words: create.sql declares, the others subscribe."""
    try:
        if path.stem == "create":
            return "\n".join(_relation_lines(parse_relation(sql)))
        return "\n".join(_query_lines(bind(sql, catalog)))
    except NotYetError as error:
        return f"not yet: {error}"
    except SqlError as error:
        return f"error: {error}"


def _relation_lines(relation: Relation) -> Iterator[str]:
    yield f"{relation.kind} {relation.name}"
    for column in relation.columns:
        yield f"  {column.name} {column.type}{'' if column.nullable else ' NOT NULL'}"
    if relation.key:
        yield f"  key {', '.join(relation.columns[i].name for i in relation.key)}"


def _query_lines(query: Query) -> Iterator[str]:
    nodes = query.nodes
    tables = [base_name(n.relation.name) for n in nodes]
    named = [
        n.alias if n.alias == table else f"{table} AS {n.alias}"
        for n, table in zip(nodes, tables, strict=True)
    ]
    yield f"from {', '.join(named)}"
    for join in query.joins:
        left, right = nodes[join.left], nodes[join.right]
        for a, b in join.columns:
            one, other = left.relation.columns[a].name, right.relation.columns[b].name
            yield f"join {left.alias}.{one} = {right.alias}.{other}"
    for branch in query.branches:
        parts = []
        for node, box in zip(nodes, branch, strict=True):
            described = " AND ".join(describe_box(box, node.relation))
            if described:
                parts.append(described if len(nodes) == 1 else f"{node.alias}: {described}")
        yield f"branch {'; '.join(parts) or 'any row'}"
    yield f"output {', '.join(_outputs(query))}"
    for warning in query.warnings:
        yield f"warning {warning}"


def _outputs(query: Query) -> Iterator[str]:
    for output in query.outputs:
        node = query.nodes[output.node]
        name = shown_column(node.relation, output.column)
        known = output.label in (name, f"{node.alias}.{name}")
        yield output.label if known else f"{node.alias}.{name} AS {output.label}"


if __name__ == "__main__":
    for case_file in case_files():
        write_cases(case_file)
