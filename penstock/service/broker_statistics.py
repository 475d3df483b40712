"""Statistics of a broker, for the line that it prints when it ends."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from penstock.network import BrokerNode
from penstock.service.links import Link, Links


@dataclass(frozen=True, slots=True)
class BrokerStatistics:
    sent_bytes: int
    """To other brokers, as frames."""
    interests: int
    """Interests requested by others and kept here."""
    interests_sent: int
    """Interests sent upstream, after covering and merging."""
    mergers: int
    received: int
    """Messages from upstream while there were mergers."""
    in_vain: int
    """Those of them that nobody wanted."""
    payloads_saved: int
    """Payloads not sent because the neighbour has them."""

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def statistics_of(node: BrokerNode, links: Links, upstream: Link | None) -> BrokerStatistics:
    merged = None if upstream is None else node.tables.merged_table(upstream.number)
    return BrokerStatistics(
        sent_bytes=links.sent_bytes,
        interests=node.tables.prt_size(),
        interests_sent=0 if merged is None else len(merged.sent()),
        mergers=0 if merged is None else len(merged.mergers),
        received=0 if merged is None else merged.false_positives.received,
        in_vain=0 if merged is None else merged.false_positives.in_vain,
        payloads_saved=0 if node.payloads is None else node.payloads.hits,
    )
