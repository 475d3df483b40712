"""The log positions of the payloads that a source has sent recently.

The repository of its node may have evicted them, but the log has them: one position for each is
enough. A payload without a position is not searched for: a node that needs it requests the
publications again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from penstock.network.frames import Parcel
from penstock.network.payloads import PayloadCache
from penstock.network.replays import SourceLog


class PayloadPlaces:
    def __init__(self, sources: Mapping[str, SourceLog], payloads: PayloadCache | None) -> None:
        self._sources = sources
        self._payloads = payloads
        self._most = 0 if payloads is None else payloads.settings.places
        self._places: OrderedDict[tuple[str, bytes], int] = OrderedDict()

    def note(self, parcel: Parcel, source: str, sequence: int) -> None:
        if parcel.payload_id:
            key = (source, parcel.payload_id)
            self._places[key] = sequence
            self._places.move_to_end(key)
            if len(self._places) > self._most:
                self._places.popitem(last=False)

    def find(self, source: str, payload_id: bytes) -> bytes | None:
        """The payload from the log, unless that position has another message by now, or the payload
        columns have changed since."""
        place, log = self._places.get((source, payload_id)), self._sources.get(source)
        if place is None or log is None or self._payloads is None:
            return None
        for _, message in log.read(place - 1, 1):
            parcel = self._payloads.wrap(message)
            if parcel.payload_id == payload_id:
                return parcel.payload
        return None
