"""Choice of decompositions for an engine's subscriptions, from statistics of its tables."""

from __future__ import annotations

from enum import StrEnum

from penstock.arguments import text
from penstock.errors import PenstockError
from penstock.flow.engine import Engine
from penstock.flow.splitting import Filtering, filterings
from penstock.joins.decomposition.costs import CostModel, SelectiveCost, UniformCost
from penstock.joins.decomposition.greedy import decompose, improvements
from penstock.joins.decomposition.simulation import SimulatedCost
from penstock.query import Query
from penstock.spaces import Decomposition, compact, has_choice, plain_rule


class Method(StrEnum):
    """How the cost of a decomposition is estimated."""

    SELECTIVE = "selective"
    """By a formula, with change rates, numbers of joining rows and selectivities of conditions."""
    UNIFORM = "uniform"
    """By the same formula, assuming uniform conditions and values."""
    SIMULATION = "simulation"
    """By simulating every choice on samples of rows and subscriptions."""

    @classmethod
    def of(cls, name: str) -> Method:
        """The method with this name; PenstockError if there is none."""
        name = text(name, "the name of a method", PenstockError)
        if name not in set(cls):
            raise PenstockError(
                f"unknown method {name:.60}", hint=f"the methods are {', '.join(sorted(cls))}"
            )
        return cls(name)


def cost_model(engine: Engine, method: Method) -> CostModel:
    if method is Method.SIMULATION:
        return SimulatedCost(engine.statistics, engine.catalog, engine.queries)
    if method is Method.UNIFORM:
        return UniformCost(engine.statistics)
    return SelectiveCost(engine.statistics)


def first_choice(engine: Engine, query: Query) -> Decomposition | None:
    """The decomposition of a new subscription; None if it is that of the plain rule."""
    if not has_choice(query):
        return None
    engine.statistics.watch(query, engine.rows.rows)
    if not any(any(engine.statistics.sampled(node.relation.name)) for node in query.nodes):
        return None  # no statistics yet
    (chosen,) = decompose({0: query}, SelectiveCost(engine.statistics)).values()
    return None if chosen == compact(plain_rule(query)) else chosen


def better_choices(engine: Engine, method: Method) -> dict[int, Decomposition]:
    """The subscriptions that should change their decomposition, and the better one."""
    engine.statistics.refresh(engine.rows.rows)
    return improvements(engine.queries, engine.chosen, cost_model(engine, method))


def explain_plan(engine: Engine, subscription: int) -> tuple[Filtering, ...]:
    """How a subscription's query is split, with estimated costs."""
    query, chosen = engine.query(subscription), engine.chosen[subscription]
    return tuple(filterings(query, chosen, SelectiveCost(engine.statistics)))
