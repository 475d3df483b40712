"""The serialised messages of a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import overload

import msgspec

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[bytes])


class PackedMessages(Sequence[bytes]):
    """Messages as one MessagePack array. Publishing needs no look at single messages; otherwise it
    behaves like a list of them."""

    def __init__(self, packed: bytes | memoryview, count: int) -> None:
        self.packed = packed
        self._count = count

    @classmethod
    def of(cls, messages: Sequence[bytes]) -> PackedMessages:
        if isinstance(messages, PackedMessages):
            return messages
        return cls(_ENCODER.encode(messages), len(messages))

    @cached_property
    def _unpacked(self) -> list[bytes]:
        return _DECODER.decode(self.packed)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> bytes: ...

    @overload
    def __getitem__(self, place: slice) -> list[bytes]: ...

    def __getitem__(self, place: int | slice) -> bytes | list[bytes]:
        return self._unpacked[place]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._unpacked)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._unpacked == list(other)

    __hash__ = None  # type: ignore[assignment]  # like a list
