"""Whatever bytes come, they are a packet, a frame, or a NetworkError."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import NetworkError
from penstock.network.frames import decode_frame
from penstock.packing import pack
from penstock.service.packets import PACKETS, Attach, Delivered, decode_packet
from tests.examples import examples

odd = st.recursive(
    st.sampled_from([None, 0, 1, -1, 2**64 - 1, 1.5, math.nan, math.inf, "", "x", True])
    | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)


def tolerates(decode: Callable[[bytes], object], data: bytes) -> None:
    with suppress(NetworkError):
        decode(data)


@settings(max_examples=examples(400))
@given(st.integers(-1, len(PACKETS) + 1), st.lists(odd, max_size=6))
def test_members_of_any_kind(number: int, members: list[object]) -> None:
    tolerates(decode_packet, pack([number, *members]))
    tolerates(decode_frame, pack([number, *members]))


@settings(max_examples=examples(200))
@given(st.binary(max_size=60))
def test_any_bytes(data: bytes) -> None:
    tolerates(decode_packet, data)
    tolerates(decode_frame, data)


@pytest.mark.parametrize(
    "plain",
    [
        [PACKETS.index(Delivered), 1, {"a": 1}],
        [PACKETS.index(Delivered), 1, ["x"]],
        [PACKETS.index(Attach), [[[1, 0, 0], [math.inf, [], [[[0]] * 4], [[0], [3]]], False]], 0],
        [PACKETS.index(Attach), [[[math.inf, 0, 0], [1, [], [[[0]] * 4], [[0], [3]]], False]], 0],
    ],
)
def test_members_that_once_got_through(plain: list[object]) -> None:
    with pytest.raises(NetworkError):
        decode_packet(pack(plain))
