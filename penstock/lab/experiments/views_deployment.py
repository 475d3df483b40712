"""A deployment of views, simulated: Figures 7, 8 and 9 of Karanasos et al. (2013).

10,000 views, of which some 3,000 are different, over documents of 10 to 40 KB that nearly all of
them match; the source may feed 72. Plans are made under several bounds and executed document by
document; measured are their levels, how long views wait, and when the last one has its results.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from penstock.lab.benchmarks._measuring import Result, progress, show
from penstock.lab.view_deployment import Deployment, Network, measure_results, simulate
from penstock.lab.view_networks import ViewNetwork, plan_network, warm_up
from penstock.views.latency import Annealing
from penstock.views.planning_problem import UNLIMITED
from penstock.views.resource_model import Sites

EXAMPLES = """
  penstock lab run views-deployment
  penstock lab run views-deployment --views 1000 --documents 5 --json
"""
COLUMNS = (
    "bound",
    "plan",
    "levels",
    "paper_levels",
    "mean_latency_s",
    "paper_mean_latency_s",
    "slowest_s",
    "paper_slowest_s",
    "delivery_s",
    "paper_delivery_s",
    "source_feeds",
    "largest_load",
)
PAPER_LEVELS = {("optimal", 0): 13}
PAPER_MEAN_LATENCY_S = 1.6
PAPER_SLOWEST_S = {("optimal", 5): 3.7, ("optimal", 0): 4.7}
PAPER_DELIVERY_S = "2–2.5"


def views_deployment(
    views: Annotated[int, typer.Option(help="Views.", min=10)] = 10_000,
    documents: Annotated[int, typer.Option(help="Documents.", min=1)] = 20,
    source_bound: Annotated[int, typer.Option(help="Views that the source may feed.", min=0)] = 72,
    bound: Annotated[
        list[int] | None, typer.Option(help="Views that a view may feed; 0: any number.", min=0)
    ] = None,
    published_coverage: Annotated[
        bool, typer.Option("--published-coverage", help="Contents are not navigated.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Chooses views, documents and sites.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Simulate the dissemination of documents through plans of views.

    Sizes of results and the time per row are measured; bandwidth and delays are assumed. If the
    source's bound is too small for any plan, the smallest possible one is used and shown.
    """
    with progress("compiling"):
        warm_up()
    with progress("choosing views and documents"):
        deployment = Deployment.of(views, documents, seed)
    with progress("measuring results"):
        measured = measure_results(deployment)
    with progress("embedding and rewriting"):
        network = ViewNetwork.of(
            deployment.views,
            navigation=not published_coverage,
            model=Network().model(measured.seconds_per_row),
            documents=deployment.documents,
            seed=seed,
        )
    sites = Sites.at_random(views, seed)
    results: list[Result] = []
    for one in bound or [5, 10, 30, 50, 100, 0]:
        with progress(f"planning with a bound of {one or 'none'}"):
            run = plan_network(
                network,
                one or UNLIMITED,
                source_capacity=source_bound,
                annealing=Annealing(steps=2_000_000, seed=seed),
            )
        for name, plan in (("optimal", run.optimal), ("loga", run.loga.plan)):
            seconds = simulate(plan, measured, sites, Network())
            results.append(
                {
                    "bound": one or "none",
                    "plan": name,
                    "levels": int(plan.levels().max()),
                    "paper_levels": PAPER_LEVELS.get((name, one)),
                    **delivery_times(seconds),
                    "paper_mean_latency_s": PAPER_MEAN_LATENCY_S,
                    "paper_slowest_s": PAPER_SLOWEST_S.get((name, one)),
                    "paper_delivery_s": PAPER_DELIVERY_S,
                    "source_feeds": int(plan.is_from_source.sum()),
                    "source_bound_raised": run.is_raised,
                    "largest_load": int(plan.loads().max()),
                }
            )
    unique = len(deployment.unique)
    show(results, json, COLUMNS, unique_views=unique, match_share=deployment.match_share)


def delivery_times(seconds: NDArray[np.float64]) -> dict[str, float]:
    """Of one plan, over all documents and views: Figures 8 and 9."""
    delivery = seconds.max(axis=1)
    return {
        "mean_latency_s": float(seconds.mean()),
        "fastest_s": float(seconds.min()),
        "slowest_s": float(seconds.max()),
        "delivery_s": float(delivery.mean()),
        "delivery_fastest_s": float(delivery.min()),
        "delivery_slowest_s": float(delivery.max()),
    }


if __name__ == "__main__":
    typer.run(views_deployment)
