"""The cost of decompositions of multi-way joins: Figure 13 of Chandramouli and Yang (2008).

The same inserts are applied with the queries split in different ways: as the greedy algorithm
chooses by each cost model, by the plain rule, and in all six ways in which S, which has a choice,
can prefer its neighbours. Counted is what the server sends (each message once) and what subscribers
get (each message once for each of them).

With `--star`, also what Figure 14 compares: whole join rows, one message each, by Enum-J, Ref-J and
Ref-J+. (Over the general schema they are prohibitively many: one insert may give 147,000.)
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Annotated

import typer

from penstock.flow.changes import Change, Op
from penstock.flow.planning import Method, cost_model
from penstock.joins.accounting import message_bytes
from penstock.joins.decomposition.greedy import decompose
from penstock.lab.benchmarks._measuring import Result, progress, show
from penstock.lab.join_rows import SCHEMES, JoinRowServer
from penstock.lab.workloads.multiway import MultiwayWorkload
from penstock.messages import Message, Position
from penstock.query import Query
from penstock.routing import recipients
from penstock.spaces import Choice, Decomposition, Replan, plain_rule

EXAMPLES = """
  penstock lab run joins-decomposition
  penstock lab run joins-decomposition --star --json
"""
COLUMNS = (
    "decomposition",
    "choosing_ms",
    "messages_per_event",
    "kb_per_event",
    "deliveries_per_event",
    "delivered_kb_per_event",
)


def joins_decomposition(
    subscriptions: Annotated[int, typer.Option(help="How many.", min=17, max=10_000_000)] = 1700,
    events: Annotated[
        int, typer.Option(help="Inserts, of all tables alike.", min=8, max=10_000_000)
    ] = 200,
    star: Annotated[bool, typer.Option("--star", help="S as a fact table.")] = False,
    share: Annotated[
        float, typer.Option(help="Of the star's 28,000 rows.", min=0.001, max=1.0)
    ] = 1.0,
    heavy_facts: Annotated[
        bool, typer.Option("--heavy-facts", help="Facts have payloads, too.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Chooses subscriptions, rows and events.", min=0)] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Bytes per event with queries split by each cost model, and in every other way."""
    with progress("filling tables"):
        workload = MultiwayWorkload(
            subscriptions, star=star, seed=seed, share=share, heavy_facts=heavy_facts
        )
        inserts = workload.inserts(events)
    results: list[Result] = []
    queries = workload.engine.queries
    for method in Method:
        began = time.process_time()
        chosen = decompose(queries, cost_model(workload.engine, method))
        spent = time.process_time() - began
        results.append(_measured(workload, str(method), chosen, inserts, spent))
    plain = {number: plain_rule(query) for number, query in queries.items()}
    results.append(_measured(workload, "plain rule", plain, inserts))
    for order in permutations("rtu"):
        some = {number: preferring(query, order) for number, query in queries.items()}
        results.append(_measured(workload, f"S by {', '.join(order)}", some, inserts))
    if star:
        with progress("join rows"):
            results += _join_rows(workload, inserts)
    results.sort(key=lambda result: float(str(result["delivered_kb_per_event"])))
    show(results, json, COLUMNS)


def _join_rows(workload: MultiwayWorkload, inserts: list[Change]) -> list[Result]:
    catalog = workload.engine.catalog
    server = JoinRowServer.of_queries(workload.engine.queries)
    position = Position(0, 1)
    for change in workload.loaded:
        relation = catalog[change.table]
        server.load(relation, relation.store_row(change.row))
    sent: dict[str, list[Message]] = {scheme: [] for scheme in SCHEMES}
    for change in inserts:
        relation = catalog[change.table]
        for scheme, messages in server.change(
            position, relation, None, relation.store_row(change.row)
        ).items():
            sent[scheme] += messages
    enumerated = [message_bytes(one) for one in sent["Enum-J"]]
    reached = sum(len(one.recipients) for one in sent["Enum-J"])
    return [
        {
            "decomposition": scheme,
            "choosing_ms": 0.0,
            "messages_per_event": round(len(messages) / len(inserts), 2),
            "kb_per_event": round(sum(map(message_bytes, messages)) / len(inserts) / 1000, 2),
            "deliveries_per_event": round(reached / len(inserts), 1),
            "delivered_kb_per_event": round(sum(enumerated) / len(inserts) / 1000, 2),
        }
        for scheme, messages in sent.items()
    ]


def preferring(query: Query, order: Sequence[str]) -> Decomposition:
    """S, the first node, is filtered by the first of its neighbours; everything else by S."""
    aliases = [node.alias for node in query.nodes]
    first = next(aliases.index(name) for name in order if name in aliases)
    plain = plain_rule(query)
    column = plain[0][1].columns  # the one that all tables have at the same position
    return tuple((Choice(first, column), *row[1:]) for row in plain)


def _measured(
    workload: MultiwayWorkload,
    name: str,
    chosen: Mapping[int, Decomposition],
    inserts: list[Change],
    spent: float = 0.0,
) -> Result:
    engine = workload.engine
    for subscription, decomposition in chosen.items():
        engine.replan(Replan(workload.replan_offset(), subscription, decomposition))
    messages = deliveries = sent = delivered = 0
    with progress(name):
        for change in inserts:
            for message in workload.apply(change):
                size = message_bytes(message)
                reached = len(recipients(message, engine.index.space(message.space)))
                messages += 1
                sent += size
                deliveries += reached
                delivered += size * reached
        for change in inserts:  # restores the tables for the next way
            workload.apply(Change(change.table, Op.DELETE, {"id": change.row["id"]}))
    return {
        "decomposition": name,
        "choosing_ms": round(1000 * spent, 1),
        "messages_per_event": round(messages / len(inserts), 2),
        "kb_per_event": round(sent / len(inserts) / 1000, 2),
        "deliveries_per_event": round(deliveries / len(inserts), 1),
        "delivered_kb_per_event": round(delivered / len(inserts) / 1000, 2),
    }
