"""Schemes on networks: the cost of each for the same changes over a CAN and over a CBN.

Networks keep the same subscriptions while events are drawn with one seed after the other, as
published. A scheme that enumerates recipients sends to each directly, past the overlay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from penstock.garbage import kept_for_long
from penstock.lab.evidence.model import Row
from penstock.lab.evidence.summaries import interval_95, mean
from penstock.lab.networks import NetworkWorkload
from penstock.lab.workloads.joins import CENTRE_SPREADS, JoinWorkload, StockJoinWorkload
from penstock.messages import Message, PointId
from penstock.network.caching import Carried, carry_plainly
from penstock.network.journeys import Arrival, ContentNetwork, Hop, Journey
from penstock.network.metrics import Metrics

NETWORKS = ("CAN", "CBN")
SEMIJOINS = {
    "Enum-SJ": "enum-sj",
    "Rel-Sel": "rel-sel",
    "Ref-SJ-Sub": "ref-sj-sub",
    "Ref-SJ-Tup": "ref-sj-tup",
    "Ref-SJ-Clu": "ref-sj-clu",
    "Ref-SJ-Clu+": "ref-sj-clu+",
    "Ref-SJ-Gap (ours)": "ref-sj-gap",
}
JOINS = ("Enum-J", "Ref-J", "Ref-J+")
ENUMERATING = ("Enum-J", "Enum-SJ")
BESIDE = {
    "traffic_bytes": "traffic_bytes",
    "overlay_hops": "overlay_hops",
    "server_stress_bytes": "server_stress_bytes",
    "last_hop_included_bytes": "traffic_with_last_hop_bytes",
    "hop_latency": "hop_latency",
    "arrivals": "arrivals",
}
"""Columns shown beside every figure, and their measures."""

Figures = dict[str, float]
Key = tuple[str, str]
"""Network and scheme."""


@dataclass(frozen=True, slots=True)
class Effort:
    nodes: int
    routers: int
    events: int
    """Per seed: a row of R is inserted, or the oldest of its join value is deleted."""
    seeds: int = 5


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables that changes are made to."""

    r_rows: int = 16_000
    s_rows: int = 5_100
    are_stocks: bool = False


@dataclass
class Subscribers:
    """Subscriptions on networks, each built on first use."""

    subscriptions: int
    effort: Effort
    spreads: tuple[float, float] = CENTRE_SPREADS
    seed: int = 1
    """Of the subscriptions and the overlay."""

    def workload(self, tables: Tables, seed: int) -> NetworkWorkload:
        """The same subscriptions; rows and changes by seed."""
        kind = StockJoinWorkload if tables.are_stocks else JoinWorkload
        drawn = kind(
            self.subscriptions,
            tables.r_rows,
            tables.s_rows,
            seed=seed,
            interest_seed=self.seed,
            centre_spreads=self.spreads,
        )
        return NetworkWorkload(drawn, self.effort.nodes, self.seed, self.effort.routers)

    @cached_property
    def _built(self) -> NetworkWorkload:
        return self.workload(Tables(r_rows=100, s_rows=100), self.seed)

    @cached_property
    def semijoins(self) -> dict[str, ContentNetwork]:
        with kept_for_long():
            return {"CAN": self._built.can(), "CBN": self._built.tree()}

    @cached_property
    def join_rows(self) -> dict[str, ContentNetwork]:
        rows = self._built.join_rows()
        with kept_for_long():
            return {"CAN": rows.can(), "CBN": rows.tree()}

    def journeys(self, tables: Tables, seed: int) -> Iterator[tuple[Key, list[Journey]]]:
        """The journeys of all schemes, for the same changes."""
        for scheme, name in SEMIJOINS.items():
            sent = self.sent(tables, seed, name, self.effort.events)
            for network, one in self.semijoins.items():
                if scheme in ENUMERATING and network != "CBN":
                    continue
                yield from self._by_network(network, scheme, one.publish(sent))
        rows = self.rows_sent(tables, seed, self.effort.events)
        wanted = self.join_rows["CBN"].publish(rows)
        yield from self._by_network("CBN", "Enum-J", wanted)
        yield ("CBN", "Ref-J"), wanted
        yield ("CBN", "Ref-J+"), wanted  # unwanted messages leave no broker anyway
        all_over = self.join_rows["CAN"].publish(rows)
        yield ("CAN", "Ref-J"), all_over
        yield ("CAN", "Ref-J+"), [one for one in all_over if one.arrivals]

    def _by_network(
        self, network: str, scheme: str, journeys: list[Journey]
    ) -> Iterator[tuple[Key, list[Journey]]]:
        if scheme not in ENUMERATING:
            yield (network, scheme), journeys
            return
        direct = [one_by_one(journey, 0) for journey in journeys]
        yield from (((name, scheme), direct) for name in NETWORKS)

    def sent(self, tables: Tables, seed: int, scheme: str, events: int) -> list[Message]:
        changes = self.workload(tables, seed).events(events, scheme)
        return [message for event in changes for message in event]

    def rows_sent(self, tables: Tables, seed: int, events: int) -> list[Message]:
        changes = self.workload(tables, seed).join_rows().events(events)
        return [message for event in changes for message in event]


def one_by_one(journey: Journey, server: int) -> Journey:
    """The same recipients, each sent the message separately."""
    named = journey.message.recipients[:1] or (PointId(0, 0, 0),)
    message = journey.message._replace(upsert=(), remove=(), recipients=named)
    places = [(one.node, one.subscription) for one in journey.arrivals]
    hops = [Hop(server, node, 1) for node, _ in places if node != server]
    return Journey(message, hops, [Arrival(node, number, 1) for node, number in places])


def resized(message: Message, payload: str) -> Message:
    """With another payload, which removals do not carry."""
    row = message.row
    if row is not None:
        row = tuple(payload if isinstance(value, str) else value for value in row)
    old = message.old
    if old is not None:
        old = tuple((column, value) for column, value in old if not isinstance(value, str))
    return message._replace(row=row, old=old)


def with_payload(journey: Journey, payload_bytes: int) -> Journey:
    message = resized(journey.message, "x" * payload_bytes)
    return Journey(message, journey.hops, journey.arrivals, journey.in_vain)


def count_figures(
    network: ContentNetwork, carried: Sequence[Carried], events: int, *, is_direct: bool = False
) -> Figures:
    """Per event. Recipients that the server sends to directly need no last hop."""
    metrics = Metrics(network.server, network.nodes)
    metrics.count(carried, events)
    figures = metrics.per_event()
    if is_direct:
        figures["traffic_with_last_hop_bytes"] = metrics.last_hop_bytes / max(1, events)
    return figures


@dataclass
class Repeated:
    """Figures of one setting by network and scheme, for each seed."""

    runs: dict[Key, list[Figures]] = field(default_factory=dict)

    def add(self, key: Key, figures: Figures) -> None:
        self.runs.setdefault(key, []).append(figures)

    def rows(self, network: str, x: object, figure: str, scale: float = 1.0) -> Iterator[Row]:
        for (name, scheme), runs in self.runs.items():
            if name == network:
                row = summary_row(scheme, x, [run[figure] / scale for run in runs])
                yield row | {
                    column: round(mean(run[other] for run in runs), 3)
                    for column, other in BESIDE.items()
                }


def summary_row(series: str, x: object, values: Sequence[float]) -> Row:
    half = interval_95(values)
    return {
        "series": series,
        "x": x,
        "ours": round(mean(values), 3),
        "interval_95": None if half is None else round(half, 3),
    }


def compare_schemes(
    subscribers: Subscribers, tables: Tables, payloads: Iterable[int] = (100,)
) -> dict[int, Repeated]:
    """By size of the payload: all schemes over both networks, for every seed."""
    found = {size: Repeated() for size in payloads}
    for seed in range(1, subscribers.effort.seeds + 1):
        _add_run(found, subscribers, tables, seed)
    return found


def compare_layouts(drawn: Iterable[Subscribers], tables: Tables, payload: int) -> Repeated:
    """As above, but each seed has subscriptions and an overlay of its own. A CAN divides space
    where subscriptions are: with others, the same message can take a third more or fewer hops."""
    found = {payload: Repeated()}
    for subscribers in drawn:
        _add_run(found, subscribers, tables, subscribers.seed)
    return found[payload]


def _add_run(
    found: Mapping[int, Repeated], subscribers: Subscribers, tables: Tables, seed: int
) -> None:
    events = subscribers.effort.events
    for key, journeys in subscribers.journeys(tables, seed):
        for size, repeated in found.items():
            carried = carry_plainly([with_payload(one, size) for one in journeys])
            network, is_direct = subscribers.semijoins[key[0]], key[1] in ENUMERATING
            repeated.add(key, count_figures(network, carried, events, is_direct=is_direct))
