"""Payload caching around any network (CN*): which hops carry a payload, and which only its id.

Every caching node has a directory and a repository (`penstock.network.payloads`). A node that needs
a payload it does not have asks the last node on the path that had it, then the server. Plain nodes
forward what they get, and always get the payload.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from penstock.messages import Message, encode_message
from penstock.network.frames import PAYLOAD_ID_BYTES, Parcel
from penstock.network.journeys import ContentNetwork, Hop, Journey
from penstock.network.payloads import PayloadCache, PayloadSettings

ADDRESS_BYTES = 6
"""PayloadAttrs, ID and Source in addition to a message; a request has an id and an address."""
_REQUEST_BYTES = PAYLOAD_ID_BYTES + ADDRESS_BYTES


@dataclass(slots=True)
class CarriedHop:
    hop: Hop
    nbytes: int


@dataclass(slots=True)
class Carried:
    """A journey and its bytes, with the fetches it caused."""

    journey: Journey
    hops: list[CarriedHop] = field(default_factory=list)
    fetches: list[CarriedHop] = field(default_factory=list)
    """Hops from the requesting node to the one that has the payload, and back."""
    late_nodes: dict[int, int] = field(default_factory=dict)
    """Nodes whose clients had to wait for a payload, and the number of additional hops."""


def carry_plainly(journeys: Sequence[Journey]) -> list[Carried]:
    """Without caching: every hop carries the whole message."""
    carried = []
    for journey in journeys:
        size = len(encode_message(journey.message))
        carried.append(Carried(journey, [CarriedHop(hop, size) for hop in journey.hops]))
    return carried


class CachingCarrier:
    """Carries the journeys of one network, in order. `plain` nodes do not cache."""

    def __init__(
        self, network: ContentNetwork, settings: PayloadSettings, plain: Collection[int] = ()
    ) -> None:
        self._server = network.server
        self._settings = settings
        self._plain = frozenset(plain)
        self._caches: dict[int, PayloadCache] = {}
        self._links: dict[tuple[int, int], int] = {}
        """Each (sender, receiver) pair is a link of the sender: a bit of its directory."""

    def carry(self, journeys: Sequence[Journey]) -> list[Carried]:
        return [self._carry(journey) for journey in journeys]

    def _carry(self, journey: Journey) -> Carried:
        carried = Carried(journey)
        whole = self._cache(self._server).wrap(journey.message)
        if not whole.payload_id:
            return carry_plainly([journey])[0]
        bare_bytes = len(encode_message(whole.message)) + _REQUEST_BYTES
        self._cache(self._server).take(whole)
        parcels: dict[int, Parcel] = {self._server: whole}
        sources: dict[int, int] = {self._server: self._server}
        for hop in journey.hops:
            parcel = self._sent(hop, parcels, sources, whole, carried)
            size = bare_bytes + (len(parcel.payload) if parcel.payload is not None else 0)
            carried.hops.append(CarriedHop(hop, size))
            self._receive(hop, parcel, parcels, sources)
        for node in dict.fromkeys(arrival.node for arrival in journey.arrivals):
            if parcels[node].payload is None and self._at_hand(node, parcels[node]) is None:
                self._fetch(node, sources[node], whole, carried)
        return carried

    def _sent(
        self,
        hop: Hop,
        parcels: dict[int, Parcel],
        sources: dict[int, int],
        whole: Parcel,
        carried: Carried,
    ) -> Parcel:
        sender, parcel = hop.sender, parcels[hop.sender]
        if sender in self._plain:
            return parcel
        cache, link = self._cache(sender), self._link(sender, hop.receiver)
        if cache.must_fetch(parcel, 1 << link, False):
            self._fetch(sender, sources[sender], whole, carried)
            parcel = parcels[sender] = parcel._replace(payload=whole.payload)
        return cache.outgoing(parcel, link)

    def _receive(
        self, hop: Hop, parcel: Parcel, parcels: dict[int, Parcel], sources: dict[int, int]
    ) -> None:
        receiver = hop.receiver
        has_it = hop.sender not in self._plain and (
            self._at_hand(hop.sender, parcel) is not None or hop.sender == self._server
        )
        sources.setdefault(receiver, hop.sender if has_it else sources[hop.sender])
        known = parcels.get(receiver)
        if known is None or known.payload is None:
            parcels[receiver] = parcel
        is_kept = receiver not in self._plain and self._cache(receiver).take(parcel)
        if is_kept and hop.sender not in self._plain:
            # The acknowledgement is sent separately from the data, and delays nothing.
            link = self._link(hop.sender, receiver)
            self._cache(hop.sender).set_bit(parcel.payload_id, link)

    def _fetch(self, node: int, source: int, whole: Parcel, carried: Carried) -> None:
        """Fetch from the last node that had the payload; if it has evicted it, from the server."""
        assert whole.payload is not None
        waited = 0
        for holder in dict.fromkeys((source, self._server)):
            carried.fetches.append(CarriedHop(Hop(node, holder, 0), _REQUEST_BYTES))
            waited += 2
            if holder == self._server or self._at_hand(holder, whole._replace(payload=None)):
                size = _REQUEST_BYTES + len(whole.payload)
                carried.fetches.append(CarriedHop(Hop(holder, node, 0), size))
                break
        carried.late_nodes[node] = max(carried.late_nodes.get(node, 0), waited)
        if node not in self._plain:
            self._cache(node).keep(whole.payload_id, whole.payload)

    def _at_hand(self, node: int, parcel: Parcel) -> bytes | None:
        return None if node in self._plain else self._cache(node).find(parcel.payload_id)

    def _cache(self, node: int) -> PayloadCache:
        cache = self._caches.get(node)
        if cache is None:
            cache = self._caches[node] = PayloadCache(self._settings)
        return cache

    def _link(self, sender: int, receiver: int) -> int:
        return self._links.setdefault((sender, receiver), len(self._links) + 1)


def message_bytes(message: Message) -> int:
    return len(encode_message(message))
