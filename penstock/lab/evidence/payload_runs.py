"""Payload caching (CN*) on networks, by size of the repository."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog import Row as TableRow
from penstock.lab.evidence.scheme_runs import Repeated, Subscribers, Tables, count_figures
from penstock.lab.workloads.joins import R_SPACE, S_SPACE
from penstock.messages import Message, encode_message
from penstock.network.caching import CachingCarrier, Carried, CarriedHop, carry_plainly
from penstock.network.journeys import ContentNetwork, Journey
from penstock.network.payloads import PayloadSettings

DIRECTORY_BYTES = 512 << 10
PAYLOAD_BYTES = 1_000
PAYLOAD = 3
"""The payload column of either table."""
WIDTH = 4
"""Columns of either table; a join row has those of both."""
CACHED = ("Ref-SJ-Clu+", "Ref-J+")


def compare_repositories(
    subscribers: Subscribers, r_rows: int, events: int, repositories: Sequence[int]
) -> dict[int | None, Repeated]:
    """By entries of the repository; None: without caching."""
    found: dict[int | None, Repeated] = {None: Repeated()}
    found |= {entries: Repeated() for entries in repositories}
    tables = Tables(r_rows=r_rows)
    for seed in range(1, subscribers.effort.seeds + 1):
        messages = {
            "Ref-SJ-Clu+": subscribers.sent(tables, seed, "ref-sj-clu+", events),
            "Ref-J+": subscribers.rows_sent(tables, seed, events),
            "Rel-Sel": subscribers.sent(tables, seed, "rel-sel", min(events, 40)),
        }
        for scheme, sent in messages.items():
            is_row = scheme == "Ref-J+"
            networks = subscribers.join_rows if is_row else subscribers.semijoins
            for name, network in networks.items():
                journeys = published(network, sent, wanted_only=is_row)
                for entries, repeated in found.items():
                    if entries is None or scheme in CACHED:
                        counted = min(events, 40) if scheme == "Rel-Sel" else events
                        carried = carry(network, journeys, entries)
                        figures = count_figures(network, carried, counted)
                        repeated.add((name, scheme), figures)
    return found


def published(
    network: ContentNetwork, sent: Sequence[Message], *, wanted_only: bool
) -> list[Journey]:
    journeys = [_with_own_payloads(one) for one in network.publish(sent)]
    return [one for one in journeys if one.arrivals or not wanted_only]


def _with_own_payloads(journey: Journey) -> Journey:
    """Every row has a payload of its own; a removal carries none."""
    message = journey.message
    old = message.old
    if old is not None:
        old = tuple((column, value) for column, value in old if not isinstance(value, str))
    row = None if message.row is None else _own_payloads(message.row)
    named = message._replace(row=row, old=old)
    return Journey(named, journey.hops, journey.arrivals, journey.in_vain)


def _own_payloads(row: TableRow) -> TableRow:
    found = list(row)
    for start in range(0, len(row), WIDTH):
        found[start + PAYLOAD] = str(row[start]).ljust(PAYLOAD_BYTES, "x")
    return tuple(found)


def carry(
    network: ContentNetwork, journeys: Sequence[Journey], entries: int | None
) -> list[Carried]:
    """With repositories of so many entries, empty at first; None: without caching."""
    if entries is None:
        return carry_plainly(journeys)
    columns: dict[int, tuple[int, ...]] = {
        one.message.space: (PAYLOAD, PAYLOAD + WIDTH) for one in journeys
    }
    columns |= {R_SPACE.id: (PAYLOAD,), S_SPACE.id: (PAYLOAD,)}
    settings = PayloadSettings(columns, DIRECTORY_BYTES, entries)
    carrier = CachingCarrier(network, settings)
    return [_carried(carrier, one) for one in journeys]


def _carried(carrier: CachingCarrier, journey: Journey) -> Carried:
    """A join row has two payloads, identified separately: the row is carried with one, and the cost
    of the other is added."""
    row = journey.message.row
    if row is None or len(row) <= WIDTH:
        return carrier.carry([journey])[0]
    first, second = (
        carrier.carry([_with_message(journey, _without(journey.message, row, column))])[0]
        for column in (PAYLOAD + WIDTH, PAYLOAD)
    )
    bare = _without(journey.message, row, PAYLOAD, PAYLOAD + WIDTH)
    bare_bytes = len(encode_message(bare))
    pairs = zip(first.hops, second.hops, strict=True)
    hops = [CarriedHop(one.hop, one.nbytes + other.nbytes - bare_bytes) for one, other in pairs]
    late = {
        node: max(first.late_nodes.get(node, 0), second.late_nodes.get(node, 0))
        for node in first.late_nodes | second.late_nodes
    }
    return Carried(journey, hops, first.fetches + second.fetches, late)


def _with_message(journey: Journey, message: Message) -> Journey:
    return Journey(message, journey.hops, journey.arrivals, journey.in_vain)


def _without(message: Message, row: TableRow, *columns: int) -> Message:
    bare = tuple(None if i in columns else value for i, value in enumerate(row))
    return message._replace(row=bare)
