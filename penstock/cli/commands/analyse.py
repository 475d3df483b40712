"""`penstock analyse`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.output import Output, count
from penstock.cli.parameters import (
    ConfOption,
    HomeArgument,
    JsonOption,
    MasterOption,
    spark_settings,
)

if TYPE_CHECKING:
    from penstock.storage import EdgeStatistics, HomeStatistics, TableStatistics

PANEL = "Process"
EXAMPLES = """
  penstock analyse shop
  penstock analyse shop --show --json
  penstock analyse shop --to 1000000 --master spark://host:7077
"""


def analyse(
    home: HomeArgument,
    show: Annotated[
        bool, typer.Option("--show", help="Show the stored statistics; do not read the log.")
    ] = False,
    end: Annotated[
        int | None,
        typer.Option(
            "--to",
            metavar="OFFSET",
            min=0,
            help="End before this offset; by default at the end of the log.",
        ),
    ] = None,
    master: MasterOption = "local[*]",
    conf: ConfOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compute statistics of the log and store them in the home.

    A Spark job: change rates of tables, the columns that subscriptions filter by (alone and
    together), selectivity of their conditions, join fan-out. A Hub or pipeline started afterwards
    orders its matching by these statistics; messages do not depend on them. Can run while the
    pipeline is running.
    """
    from penstock.storage import Home, load_statistics

    if show:
        statistics = load_statistics(Home.open(home).path)
    else:
        from penstock.cli.progress import bar
        from penstock.history.analyse import analyse as read_history

        with bar("analysing", "tasks") as advance:
            statistics = read_history(
                home, end=end, master=master, conf=spark_settings(conf), on_progress=advance
            )
    out = Output(as_json=as_json)
    out.result(_described(statistics))
    _show(out, statistics)


def _described(statistics: HomeStatistics) -> dict[str, Any]:
    import msgspec

    told: dict[str, Any] = msgspec.to_builtins(statistics)
    for table, one in zip(told["tables"], statistics.tables, strict=True):
        table["sample"] = len(one.sample)
        table["attribute_order"] = one.attribute_order()
    return told


def _show(out: Output, statistics: HomeStatistics) -> None:
    total = max(1, sum(table.changes for table in statistics.tables))
    numbers = ("changes", "inserts", "updates", "deletes", "refused", "rows", "conjunctions")
    out.table(
        ["table", "share of changes", *numbers],
        [
            [table.name, _share(table.changes / total), *(getattr(table, n) for n in numbers)]
            for table in statistics.tables
        ],
    )
    out.say()
    names = ("column", "distinct", "NULL", "filtered by", "spread", "selectivity", "filtered with")
    out.table(names, [line for table in statistics.tables for line in _columns(table)])
    out.say()
    if statistics.edges:
        joins = ("join", "rows", "join values", "largest group", "fan-out")
        out.table(joins, map(_edge, statistics.edges))
        out.say()
    asked = count(statistics.subscriptions, "subscription")
    bad = f", {count(statistics.unreadable, 'unreadable event')}" if statistics.unreadable else ""
    out.say(f"{count(statistics.offset, 'record')}, {asked}{bad}")


def _edge(edge: EdgeStatistics) -> list[str]:
    """Numbers are pairs: one per side of the join."""
    sides = zip(edge.tables, edge.columns, strict=True)
    pairs = (edge.rows, edge.values, edge.largest)
    return [
        " = ".join(f"{table}({', '.join(columns)})" for table, columns in sides),
        *(f"{left} / {right}" for left, right in pairs),
        " / ".join(f"{number:.2f}" for number in edge.fan_out),
    ]


def _columns(table: TableStatistics) -> list[list[object]]:
    lines: list[list[object]] = []
    for i, column in enumerate(table.columns):
        others = sorted(
            ((share, table.columns[j].name) for j, share in enumerate(column.together) if j != i),
            reverse=True,
        )
        beside = ", ".join(f"{name} {_share(share)}" for share, name in others[:3] if share)
        lines.append(
            [
                f"{table.name}.{column.name}",
                column.distinct,
                _share(column.nulls),
                _share(column.frequency),
                f"{column.spread:.1f}",
                _share(column.selectivity),
                beside,
            ]
        )
    return lines


def _share(number: float) -> str:
    return f"{100 * number:.1f} %"
