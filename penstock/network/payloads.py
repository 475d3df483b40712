"""Payload caching (CN*; Chandramouli and Yang, 2008, section 5 and appendices G and H).

A payload, some columns of a row, is identified by a hash of its content. The *directory* records
over which links it has been sent, one bit per link, and the *repository* has the payloads
themselves; so a payload crosses a link once, and after that only its id does. Both are soft state
with limits: without its directory entry a payload is sent again, without its repository entry it is
fetched from upstream. A bit is set when the next hop has acknowledged the payload, which plain
nodes never do, so they can be anywhere in the network.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.catalog import Row
from penstock.errors import NetworkError
from penstock.messages import Message, encode_message
from penstock.network.frames import PAYLOAD_ID_BYTES, Parcel, payload_name
from penstock.packing import pack, unpack

ENTRY_BYTES = PAYLOAD_ID_BYTES + 8
"""Size of a directory entry, for up to 64 links: 512 kB hold 21,845 entries."""


@dataclass(frozen=True, slots=True)
class PayloadSettings:
    columns: Mapping[int, tuple[int, ...]]
    """By space: the columns of its rows that are payload (PayloadAttrs): no interest bounds them.
    May change while a source publishes, because parcels list the columns that are missing."""
    directory_bytes: int = 512 << 10
    repository_entries: int = 400
    repository_bytes: int = 16 << 20
    places: int = 50_000
    """Maximum log positions of payloads that are remembered: about 10 MB."""
    held_messages: int = 10_000
    """Maximum messages held behind one whose payload is missing; beyond, they are dropped and
    requested again."""
    smallest_text: int = 0
    """Minimum characters of a text to count as payload; 0: any value counts."""

    def payload_columns(self, space: int, row: Row) -> tuple[int, ...]:
        columns = self.columns.get(space, ())
        return tuple(c for c in columns if c < len(row) and self._is_payload(row[c]))

    def _is_payload(self, value: object) -> bool:
        if not self.smallest_text:
            return value is not None
        return isinstance(value, str) and len(value) >= self.smallest_text


class PayloadCache:
    """The directory and the repository of one node. Not thread-safe."""

    def __init__(self, settings: PayloadSettings) -> None:
        self.settings = settings
        self._directory: OrderedDict[bytes, int] = OrderedDict()
        self._repository: OrderedDict[bytes, bytes] = OrderedDict()
        self._repository_bytes = 0
        self.hits = 0
        """Payloads that did not have to be sent."""

    def wrap(self, message: Message) -> Parcel:
        """The parcel that a source sends: the row without its payload, and the payload."""
        row = message.row
        columns = () if row is None else self.settings.payload_columns(message.space, row)
        if row is None or not columns:
            return Parcel(message, encoded=encode_message(message))
        payload = pack([row[column] for column in columns])
        bare = tuple(None if i in columns else value for i, value in enumerate(row))
        narrow = message._replace(row=bare)
        return Parcel(narrow, payload_name(payload), columns, payload, encode_message(narrow))

    def unwrap(self, parcel: Parcel) -> Message:
        """The message for a client. The payload must be available: see `must_fetch`."""
        if not parcel.payload_id:
            return parcel.message
        return unwrapped(parcel._replace(payload=self._payload_of(parcel)))

    def take(self, parcel: Parcel) -> bool:
        """Take a parcel; True if its payload came with it and must be acknowledged."""
        if not parcel.payload_id:
            return False
        self._touch(parcel.payload_id)
        if parcel.payload is None:
            return False
        self.keep(parcel.payload_id, parcel.payload)
        return True

    def must_fetch(self, parcel: Parcel, links: int, is_local: bool) -> bool:
        """Whether the payload is needed for a link or a client, and is not available."""
        if not parcel.payload_id:
            return False
        bits = self._directory.get(parcel.payload_id, 0)
        return self._payload_of(parcel) is None and (is_local or bool(links & ~bits))

    def outgoing(self, parcel: Parcel, link: int) -> Parcel:
        """The parcel for a link: with the payload, unless the next hop has it."""
        if not parcel.payload_id:
            return parcel
        if self._directory.get(parcel.payload_id, 0) >> link & 1:
            self.hits += 1
            return parcel._replace(payload=None)
        return parcel._replace(payload=self._payload_of(parcel))

    def set_bit(self, payload_id: bytes, link: int) -> None:
        """The next hop has acknowledged the payload. An evicted entry is not restored."""
        if payload_id in self._directory:
            self._directory[payload_id] |= 1 << link

    def forget_link(self, link: int) -> None:
        """Clear the bits of a link: the other side may have lost its payloads."""
        for payload_id in self._directory:
            self._directory[payload_id] &= ~(1 << link)

    def drop_if_everyone_has(self, payload_id: bytes, links: int) -> None:
        """Drop an entry whose bits are set for all links."""
        if links and self._directory.get(payload_id, 0) & links == links:
            self._drop(payload_id)

    def find(self, payload_id: bytes) -> bytes | None:
        found = self._repository.get(payload_id)
        if found is not None:
            self._repository.move_to_end(payload_id)
        return found

    def keep(self, payload_id: bytes, payload: bytes) -> None:
        """Store a payload in the repository, which evicts the least recently used when full."""
        self._drop(payload_id)
        self._repository[payload_id] = payload
        self._repository_bytes += len(payload)
        limits = self.settings
        while self._repository and (
            len(self._repository) > limits.repository_entries
            or self._repository_bytes > limits.repository_bytes
        ):
            self._drop(next(iter(self._repository)))

    @property
    def entries(self) -> int:
        return len(self._repository)

    def _payload_of(self, parcel: Parcel) -> bytes | None:
        return parcel.payload if parcel.payload is not None else self.find(parcel.payload_id)

    def _touch(self, payload_id: bytes) -> None:
        self._directory.setdefault(payload_id, 0)
        self._directory.move_to_end(payload_id)
        while len(self._directory) * ENTRY_BYTES > self.settings.directory_bytes:
            self._directory.popitem(last=False)

    def _drop(self, payload_id: bytes) -> None:
        gone = self._repository.pop(payload_id, None)
        if gone is not None:
            self._repository_bytes -= len(gone)


def unwrapped(parcel: Parcel) -> Message:
    """The whole message of a parcel that contains its payload, or has none."""
    if not parcel.payload_id:
        return parcel.message
    if parcel.payload is None:
        raise NetworkError(
            "a message came without its payload",
            detail="the neighbour takes this node for one that keeps payloads",
        )
    row, values = list(parcel.message.row or ()), unpack(parcel.payload)
    if len(values) != len(parcel.payload_columns):
        raise NetworkError("a payload does not fit its message")
    for column, value in zip(parcel.payload_columns, values, strict=True):
        row[column] = value
    return parcel.message._replace(row=tuple(row))
