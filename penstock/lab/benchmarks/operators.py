"""Subscriptions that call expensive operators, on Spark, compared with programs of Spark users."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from penstock.lab.benchmarks._measuring import Result, progress, show
from penstock.lab.benchmarks._operator_runs import (
    WARM_UP_FRAMES,
    evaluate_all,
    evaluate_each,
    prepared_home,
    run_pipeline,
    run_plain_spark,
)
from penstock.lab.workloads.recognisers import frames, watches

EXAMPLES = """
  penstock bench operators
  penstock bench operators --subscriptions 500 --predicates 100 --milliseconds 1 --json
  penstock bench operators --no-plain
"""
COLUMNS = (
    "operator_ms",
    "subscriptions",
    "events",
    "seconds",
    "evaluations",
    "cores_in_operators",
    "udf_per_subscription_seconds",
    "times_udf_per_subscription",
    "every_predicate_seconds",
    "times_every_predicate",
)
MILLISECONDS = (0.1, 1.0, 10.0)
MOST = 1_000_000
MOST_MILLISECONDS = 60_000.0
EVALUATING_SECONDS = 50.0
FEWEST_PICTURES, MOST_PICTURES = 20, 5_000
ZONES = 10
IDLE_ZONE = 1_000_000
"""A zone without cameras: its subscriptions are never candidates."""


def operators(
    subscriptions: Annotated[int, typer.Option(help="How many.", min=1, max=MOST)] = 200,
    predicates: Annotated[int, typer.Option(help="Distinct predicates.", min=5, max=MOST)] = 50,
    events: Annotated[
        int | None,
        typer.Option(
            help="Pictures that count; by default more of them for cheaper operators.",
            min=1,
            max=MOST,
        ),
    ] = None,
    milliseconds: Annotated[
        list[float] | None, typer.Option(help="What an evaluation takes; repeat it for several.")
    ] = None,
    plain: Annotated[
        bool, typer.Option("--plain/--no-plain", help="The Spark programs beside it.")
    ] = True,
    idle_events: Annotated[
        int,
        typer.Option(help="Events without candidates; 0: do not measure them.", min=0, max=MOST),
    ] = 200_000,
    repetitions: Annotated[
        int, typer.Option(help="Of events without candidates.", min=1, max=100)
    ] = 3,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure what operators cost: wall time on two cores, for operators of 0.1, 1 and 10 ms.

    udf_per_subscription: each subscription evaluates its own predicates up to the first that is
    false. every_predicate: each predicate is evaluated once for every picture. All three find the
    same matches. cores_in_operators: the cores that our evaluations kept busy, on average. Then:
    what events cost that no subscription with an operator may match.
    """
    for cost in milliseconds or ():
        if not 0 <= cost <= MOST_MILLISECONDS:  # NaN is neither
            raise typer.BadParameter(f"an evaluation takes 0 to {MOST_MILLISECONDS:,.0f} ms")
    results = [
        _one_cost(cost, subscriptions, predicates, events or _enough(cost, predicates), plain)
        for cost in milliseconds or MILLISECONDS
    ]
    more = _idle(subscriptions, predicates, idle_events, repetitions) if idle_events else {}
    show(results, json, COLUMNS, **more)


def _enough(cost: float, predicates: int) -> int:
    """Enough pictures for the evaluations to outweigh the fixed cost of a batch."""
    wanted = EVALUATING_SECONDS * 1000 / max(cost * predicates, 0.001)
    return round(min(MOST_PICTURES, max(FEWEST_PICTURES, wanted)))


def _one_cost(cost: float, subscriptions: int, predicates: int, events: int, plain: bool) -> Result:
    micros = round(cost * 1000)
    with progress(f"operators of {cost} ms: the workload"):
        wanted = watches(subscriptions, predicates, ZONES, seed=1)
        warm_up, measured = frames(WARM_UP_FRAMES, ZONES, seed=2), frames(events, ZONES, seed=3)
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as directory,
        progress(f"operators of {cost} ms: the pipeline"),
    ):
        home = prepared_home(Path(directory, "home"), [one.sql(micros) for one in wanted])
        ours = run_pipeline(home, warm_up, measured)
    result: Result = {
        "operator_ms": cost,
        "subscriptions": subscriptions,
        "predicates": predicates,
        "events": events,
        "seconds": round(ours.seconds, 3),
        "messages": ours.matches,
        "evaluations": ours.evaluations,
        "cores_in_operators": round((ours.evaluations or 0) * cost / 1000 / ours.seconds, 2),
    }
    if not plain:
        return result
    for name, advance in (
        ("udf_per_subscription", evaluate_each(wanted, micros)),
        ("every_predicate", evaluate_all(wanted, micros)),
    ):
        with progress(f"operators of {cost} ms: {name.replace('_', ' ')}"):
            theirs = run_plain_spark(advance, warm_up, measured)
        result[f"{name}_seconds"] = round(theirs.seconds, 3)
        result[f"times_{name}"] = round(theirs.seconds / ours.seconds, 2)
        result[f"{name}_matches"] = theirs.matches
    return result


def _idle(subscriptions: int, predicates: int, events: int, repetitions: int) -> Result:
    """The cost of events without candidates, compared with a home without operators."""
    with progress("events without candidates: the workload"):
        asking = [one.sql(0) for one in watches(subscriptions, predicates, 1, seed=1)]
    asking = [one.replace("zone = 0", f"zone = {IDLE_ZONE}") for one in asking]
    ordinary = [f"SELECT zone FROM frames WHERE zone = {ZONES + i}" for i in range(subscriptions)]
    taken: dict[str, list[float]] = {"without": [], "with": []}
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as directory:
        homes = {
            "without": prepared_home(Path(directory, "without"), ordinary),
            "with": prepared_home(Path(directory, "with"), ordinary + asking),
        }
        for repetition in range(repetitions):
            some = frames(events, ZONES, seed=10 + repetition)
            for name, home in homes.items():
                with progress(f"events without candidates, {name} operators"):
                    taken[name].append(run_pipeline(home, some[:1000], some).seconds)
    best = {name: min(seconds) for name, seconds in taken.items()}
    return {
        "idle_events": events,
        "idle_seconds_without_operators": [round(one, 3) for one in taken["without"]],
        "idle_seconds_with_operators": [round(one, 3) for one in taken["with"]],
        "idle_ratio": round(best["with"] / best["without"], 3),
    }
