"""Payload caches in nodes: what is kept, for how long, and what happens when it is gone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from penstock.errors import NetworkError
from penstock.messages import EVERYONE, Message, Position
from penstock.network import BrokerNode
from penstock.network.frames import (
    Cached,
    Fetched,
    Frame,
    Parcel,
    Publish,
    decode_frame,
    encode_frame,
    payload_name,
)
from penstock.network.payloads import ENTRY_BYTES, PayloadCache, PayloadSettings, unwrapped
from penstock.network.simulator import Simulator
from penstock.packing import pack
from penstock.routing.interests import everything_in
from tests.network.test_node import TIMING, broker, values, wish
from tests.routing.interest_worlds import SELECTION, SHAPES


def with_payload(number: int, payload: int | str = 7) -> Message:
    return Message(Position(number, 1), 1, (number,), (number, 1, number, payload), EVERYONE)


def caching_chain(nodes: int, **options: int) -> Simulator:
    """The source at one end, a client at the other."""

    def make(_: int, links: Sequence[int], start: int) -> BrokerNode:
        payloads = PayloadSettings({1: (3,)}, **options)
        return BrokerNode(SHAPES, links, start=start, timing=TIMING, payloads=payloads)

    network = Simulator(nodes, [(i, i + 1) for i in range(nodes - 1)], make, 1)
    network.add_source("log", 0, [everything_in(SELECTION)])
    network.subscribe("all", nodes - 1, "log", [wish(1, 0, 99)], 0)
    network.run_until_quiet()
    return network


def cache_of(network: Simulator, number: int) -> PayloadCache:
    cache = broker(network, number).payloads
    assert cache is not None
    return cache


def payloads_received(network: Simulator) -> list[object]:
    return [message.row[3] for _, message in network.clients["all"].received if message.row]


def test_a_bit_is_set_by_an_acknowledgement_only() -> None:
    network = caching_chain(2)
    for number in (1, 2):  # at once: the first is not acknowledged when the second leaves
        network.publish("log", with_payload(number))
    network.run_until_quiet()
    assert cache_of(network, 0).hits == 0
    network.publish("log", with_payload(3))
    network.run_until_quiet()
    assert cache_of(network, 0).hits == 1
    assert payloads_received(network) == [7, 7, 7]


def test_a_payload_that_was_let_go_is_fetched_from_further_up() -> None:
    network = caching_chain(3, repository_entries=1)
    for number in range(1, 7):
        network.publish("log", with_payload(number, number % 2))
        network.run_until_quiet()
    assert network.traffic.frames["Fetch"] > 0
    assert payloads_received(network) == [1, 0, 1, 0, 1, 0]


def test_what_the_source_has_forgotten_is_sent_again_whole() -> None:
    """The neighbour is known to have it, and has let it go; the source remembers no place of it."""
    network = caching_chain(3, repository_entries=0, places=0)
    for number in range(1, 5):
        network.publish("log", with_payload(number))
        network.run_until_quiet()
    assert network.traffic.frames["Fetched"] > 0
    assert network.traffic.frames["Replayed"] > 1
    assert values(network, "all") == [1, 2, 3, 4]
    assert payloads_received(network) == [7, 7, 7, 7]


def test_what_waits_for_a_payload_is_limited() -> None:
    network = caching_chain(2, repository_entries=0, held_messages=3)
    network.publish("log", with_payload(1))
    network.run_until_quiet()
    node, most = broker(network, 1), 0
    for number in range(2, 22):  # while the first of them is fetched, others come behind it
        network.publish("log", with_payload(number))
        network.run_for(0.002)
        most = max(most, len(node._data._held))
    network.run_until_quiet()
    assert most == 3
    assert values(network, "all") == list(range(1, 22))
    assert payloads_received(network) == [7] * 21


def test_a_payload_that_everyone_has_is_not_kept() -> None:
    network = caching_chain(3)
    network.publish("log", with_payload(1))
    network.run_until_quiet()
    assert [cache_of(network, number).entries for number in range(3)] == [0, 0, 1]


@pytest.mark.parametrize(
    ("limits", "kept"),
    [({"repository_entries": 2}, 2), ({"repository_bytes": 5}, 2), ({"repository_entries": 0}, 0)],
)
def test_the_repository_has_caps(limits: dict[str, int], kept: int) -> None:
    cache = PayloadCache(PayloadSettings({1: (3,)}, **limits))
    names = []
    for number in range(5):
        parcel = cache.wrap(with_payload(number, number))
        cache.take(parcel)
        names.append(parcel.payload_id)
        if number == 3 and kept:
            assert cache.find(names[2]) is not None  # used last, so the other one goes
    assert cache.entries == kept
    found = [number for number, name in enumerate(names) if cache.find(name) is not None]
    assert found == ([2, 4] if kept else [])


def test_the_directory_has_a_cap() -> None:
    """An entry that is gone makes a payload be sent again."""
    cache = PayloadCache(PayloadSettings({1: (3,)}, directory_bytes=2 * ENTRY_BYTES))
    parcels = [cache.wrap(with_payload(number, number)) for number in range(3)]
    for parcel in parcels:
        cache.take(parcel)
        cache.set_bit(parcel.payload_id, 1)
    assert [cache.outgoing(parcel, 1).payload is None for parcel in parcels] == [False, True, True]
    assert [cache.outgoing(parcel, 2).payload is None for parcel in parcels] == [False] * 3


def test_only_long_texts_are_payload_where_that_is_asked_for() -> None:
    settings = PayloadSettings({1: (1, 2, 3, 9)}, smallest_text=4)
    message = with_payload(1, "long text")
    parcel = PayloadCache(settings).wrap(message)
    assert parcel.payload_columns == (3,)
    assert unwrapped(parcel) == message
    for other in (with_payload(1, "no"), with_payload(1, 12345), message._replace(row=(1, 1, 1))):
        assert PayloadCache(settings).wrap(other).payload_id == b""
    assert PayloadCache(settings).wrap(message._replace(row=None)).payload_id == b""


PAYLOAD = pack([7])


@pytest.mark.parametrize(
    "body",
    [
        Publish("log", 1, Parcel(with_payload(1), b"n" * 16, (3,), PAYLOAD)),
        Publish("log", 1, Parcel(with_payload(1), payload_name(PAYLOAD), (4,), PAYLOAD)),
        Publish("log", 1, Parcel(with_payload(1), b"short", (3,), None)),
        Fetched(b"n" * 16, PAYLOAD, ()),
        Fetched(b"short", None, ()),
    ],
)
def test_payloads_that_cannot_be_are_refused(body: Publish | Fetched) -> None:
    with pytest.raises(NetworkError, match="a frame cannot be read"):
        decode_frame(encode_frame(Frame(1, 0, 1, 0, body)))


def test_payloads_that_do_not_fit_are_named() -> None:
    parcel = Parcel(with_payload(1), payload_name(PAYLOAD), (2, 3), PAYLOAD)
    with pytest.raises(NetworkError, match="does not fit"):
        unwrapped(parcel)
    with pytest.raises(NetworkError, match="without its payload"):
        unwrapped(parcel._replace(payload=None))


def test_an_acknowledgement_of_a_payload_that_is_not_known_does_nothing() -> None:
    network = caching_chain(2)
    node = broker(network, 0)
    node._data.cached(1, Cached(b"n" * 16))
    assert not node.faults
    network.publish("log", with_payload(1))
    network.run_until_quiet()
    assert payloads_received(network) == [7]
