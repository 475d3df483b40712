"""The measures of Chandramouli and Yang (2008, section 6), over all that was carried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from penstock.messages import encode_message
from penstock.network.caching import Carried

QUANTILES = (0.5, 0.9, 0.99, 1.0)


@dataclass
class Metrics:
    """`events` is the divisor of per-event figures: one event gives several messages."""

    server: int
    nodes: int
    events: int = 0
    messages: int = 0
    hops: int = 0
    nbytes: int = 0
    last_hop_bytes: int = 0
    """From the last node to the client: as many whole messages as there are arrivals."""
    in_vain: int = 0
    arrivals: int = 0
    depths: int = 0
    stress: Counter[int] = field(default_factory=Counter)
    """Bytes that originate at each node."""

    def count(self, carried: Iterable[Carried], events: int) -> None:
        self.events += events
        for one in carried:
            self.messages += 1
            self.in_vain += one.journey.in_vain
            for hop in (*one.hops, *one.fetches):
                self.hops += 1
                self.nbytes += hop.nbytes
                self.stress[hop.hop.sender] += hop.nbytes
            size = len(encode_message(one.journey.message))
            for arrival in one.journey.arrivals:
                self.arrivals += 1
                self.depths += arrival.depth + one.late_nodes.get(arrival.node, 0)
                self.last_hop_bytes += size

    def per_event(self) -> dict[str, float]:
        """One line of figures."""
        events = max(1, self.events)
        loads = sorted(self.stress[node] for node in range(self.nodes))
        spread = {
            f"stress_p{round(100 * q)}": loads[min(self.nodes - 1, int(q * self.nodes))] / events
            for q in QUANTILES
        }
        return {
            "messages": self.messages / events,
            "overlay_hops": self.hops / events,
            "traffic_bytes": self.nbytes / events,
            "traffic_with_last_hop_bytes": (self.nbytes + self.last_hop_bytes) / events,
            "server_stress_bytes": self.stress[self.server] / events,
            **spread,
            "hop_latency": self.depths / max(1, self.arrivals),
            "arrivals": self.arrivals / events,
            "in_vain": self.in_vain / events,
        }
