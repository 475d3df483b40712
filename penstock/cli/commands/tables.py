"""`penstock tables`"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.cli.output import Output
from penstock.cli.parameters import HomeArgument, JsonOption

if TYPE_CHECKING:
    from penstock.catalog import Relation

PANEL = "Inspect"
EXAMPLES = """
  penstock tables shop
  penstock tables shop --json
"""


def tables(home: HomeArgument, as_json: JsonOption = False) -> None:
    """List the tables and streams, with their columns."""
    from penstock.registry import Registry
    from penstock.storage import Home

    catalog = Registry(Home.open(home)).catalog()
    out = Output(as_json=as_json)
    if as_json:
        out.result({"tables": [_described(relation) for relation in catalog]})
    elif not len(catalog):
        out.say("no tables")
    else:
        rows = [(r.name, r.kind, ", ".join(_column_texts(r))) for r in catalog]
        out.table(("name", "kind", "columns"), rows)


def _described(relation: Relation) -> dict[str, object]:
    return {
        "name": relation.name,
        "kind": relation.kind,
        "columns": [
            {"name": column.name, "type": str(column.type), "nullable": column.nullable}
            for column in relation.columns
        ],
        "primary_key": [relation.columns[i].name for i in relation.key],
    }


def _column_texts(relation: Relation) -> list[str]:
    texts = []
    for number, column in enumerate(relation.columns):
        text = f"{column.name} {column.type}"
        if number in relation.key:
            text += " PRIMARY KEY" if len(relation.key) == 1 else " (key)"
        elif not column.nullable:
            text += " NOT NULL"
        texts.append(text)
    return texts
