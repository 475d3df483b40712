"""Garbage, wrong versions, cycles, absurd interests: each is named, nobody else is disturbed."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from penstock.errors import NetworkError
from penstock.messages import ANY_FILTER, EVERYONE, Message, Point, PointId, Position
from penstock.network.frames import (
    Ack,
    Advertise,
    Cached,
    Fetch,
    Fetched,
    Frame,
    Hello,
    Parcel,
    Publish,
    Resume,
    Subscribe,
    encode_frame,
    payload_name,
)
from penstock.packing import pack
from penstock.predicates.intervals import EVERYTHING, Interval, below
from penstock.routing.interests import MAX_INTEREST_BYTES, Interest
from penstock.service import Address, BrokerSettings
from penstock.service.connections import Connection, FinalError, connect, greet_connecting
from penstock.service.packets import (
    MAX_PACKET_BYTES,
    PREFACE,
    VERSION,
    Ask,
    Attach,
    Greeting,
    NodeFrame,
    NotDescribed,
    Proof,
    Route,
    Spaces,
    decode_packet,
    encode_packet,
)
from penstock.spaces import Space
from tests.service.raw_peers import (
    RawBroker,
    described_points,
    next_packet,
    raw_bytes,
    raw_reader,
    to_the_end,
)
from tests.service.served_home import (
    ANYWHERE,
    SELECTION,
    Following,
    RunningBroker,
    ServedHome,
    chained,
    run,
    run_broker,
    until,
)


@pytest.fixture
def served(tmp_path: Path) -> ServedHome:
    return ServedHome(tmp_path / "home")


def undisturbed(served: ServedHome, trouble: Callable[[RunningBroker], Awaitable[None]]) -> None:
    """Somebody makes trouble at the last broker of a chain while another one is served by it."""

    async def story() -> None:
        number = served.hub.subscribe(SELECTION).id
        async with chained(served.path, 2) as brokers:
            following = Following(brokers[1].address, number)
            served.change(5)
            await trouble(brokers[1])
            served.change(5)
            await following.reach(served.end)
            served.check(SELECTION, following.reader)
            assert not following.troubles
            assert not any(one.task.done() for one in brokers)
            await following.end()

    with served:
        run(story())


GREETING = encode_packet(Greeting(VERSION, "broker", "x@y", b"n" * 32))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "is not a broker or a reader"),
        (bytes(range(256)) * 100, "is not a broker or a reader"),
        (PREFACE + b"\xff\xff\xff\xff", "a packet of 4,294,967,295 bytes"),
        (PREFACE + (5_000).to_bytes(4), "a packet of 5,000 bytes"),
        (PREFACE + (3).to_bytes(4) + b"\xc1\xc1\xc1", "a packet cannot be read"),
        (PREFACE + (3).to_bytes(4) + b"\x92\x63\x01", "a packet cannot be read"),
        (PREFACE + encode_packet(Proof(b"x")), "did not begin with a greeting"),
        (
            PREFACE + encode_packet(Greeting(9, "broker", "x@y", b"n" * 32)),
            "speaks version 9 of the brokers' protocol",
        ),
        (PREFACE + encode_packet(Greeting(VERSION, "king", "x", b"n" * 32)), "cannot be one"),
        (PREFACE + GREETING + GREETING, "did not prove to know a token"),
        (PREFACE + GREETING + encode_packet(Proof(b"x" * 32)), "different tokens"),
        (PREFACE + GREETING[:-7], "cut in the middle of a packet"),
    ],
)
def test_garbage_on_the_port(served: ServedHome, data: bytes, said: str) -> None:
    async def trouble(broker: RunningBroker) -> None:
        await raw_bytes(broker.address, data)
        await broker.reported(said)

    undisturbed(served, trouble)


def test_a_peer_of_another_version_is_told_why(served: ServedHome) -> None:
    async def trouble(broker: RunningBroker) -> None:
        connection = await connect(broker.address)
        await connection.begin()
        connection.send(Greeting(VERSION + 1, "reader", "x@", b"n" * 32))
        await connection.receive()
        with pytest.raises(FinalError, match="speaks version 2"):
            await connection.receive()

    undisturbed(served, trouble)


STRANGE = Interest(99, (), (ANY_FILTER,))
ABSURD = Interest(
    Space("r").id, ((3, Interval(below("x" * MAX_INTEREST_BYTES), EVERYTHING.high)),), (ANY_FILTER,)
)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (Subscribe(1, STRANGE), "space 99 is not known"),
        (Subscribe(1, ABSURD), "an interest of 65,"),
        (Resume(1, "messages", 0, (), (STRANGE,)), "space 99 is not known"),
        (Ack(12_345), "acknowledgement of operation 12345"),
        (Hello(9), "speaks version 9"),
    ],
)
def test_what_a_neighbour_may_not_ask(served: ServedHome, body: object, said: str) -> None:
    async def trouble(broker: RunningBroker) -> None:
        peer = await RawBroker.join(broker.address)
        peer.send(body)  # type: ignore[arg-type]
        await broker.reported(said)
        # It is heard all the same when it says something sensible.
        peer.send(Subscribe(2, Interest(Space("r").id, (), (ANY_FILTER,))))
        while not isinstance((await peer.frame()).body, Ack):
            pass
        peer.connection.close()

    undisturbed(served, trouble)


def test_a_payload_that_nobody_has_is_answered_all_the_same(served: ServedHome) -> None:
    async def trouble(broker: RunningBroker) -> None:
        peer = await RawBroker.join(broker.address)
        peer.send(Cached(b"u" * 16))  # for a payload that it was never sent
        asked = Fetch(b"n" * 16, "messages", ())
        peer.send(asked)
        while (body := (await peer.frame()).body) != Fetched(asked.payload_id, None, ()):
            assert not isinstance(body, Fetched)
        assert not [line for line in broker.reports if "connected" not in line]
        peer.connection.close()

    undisturbed(served, trouble)


PUBLISHED = Message(Position(1, 1), Space("r").id, (1,), (1, 1, 1, ""), EVERYONE)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (Publish("messages", 1 << 90, Parcel(PUBLISHED)), "Publish from a broker further down"),
        (Advertise(1, "messages", STRANGE), "Advertise from a broker further down"),
        (Fetched(payload_name(b"x"), b"x", ()), "Fetched from a broker further down"),
        (Fetched(b"n" * 16, b"x", ()), "a frame cannot be read"),
        (Fetch(b"short", "messages", ()), "a frame cannot be read"),
    ],
)
def test_messages_come_from_above_only(served: ServedHome, body: object, said: str) -> None:
    async def trouble(broker: RunningBroker) -> None:
        peer = await RawBroker.join(broker.address)
        peer.send(body)  # type: ignore[arg-type]
        await broker.reported(said)
        with pytest.raises(FinalError, match=said):
            await to_the_end(peer.connection)

    undisturbed(served, trouble)


@pytest.mark.parametrize(
    "packet",
    [
        Spaces(()),
        Route(("a", "b")),
        Attach((), 0),
        NodeFrame(b"\x07abc"),
        NodeFrame(encode_frame(Frame(1, 2, 3, 4, None))[:-2]),
    ],
)
def test_packets_that_a_neighbour_may_not_send(served: ServedHome, packet: object) -> None:
    async def trouble(broker: RunningBroker) -> None:
        peer = await RawBroker.join(broker.address)
        peer.connection.send(packet)  # type: ignore[arg-type]
        with pytest.raises(FinalError):
            await to_the_end(peer.connection)

    undisturbed(served, trouble)


@pytest.mark.parametrize("interest", [STRANGE, ABSURD])
def test_what_a_reader_may_not_want(served: ServedHome, interest: Interest) -> None:
    async def trouble(broker: RunningBroker) -> None:
        reader = await raw_reader(broker.address)
        point = Point(PointId(1, 0, 0), interest.space, interest.base, EVERYTHING)
        reader.send(Attach((point,), 0))
        with pytest.raises(NetworkError, match=r"space 99|an interest of"):
            await to_the_end(reader)
        other = await raw_reader(broker.address)
        other.send(Route(()))
        with pytest.raises(FinalError, match="Route from a reader"):
            await to_the_end(other)

    undisturbed(served, trouble)


def test_too_many_points_are_refused() -> None:
    plain = pack([9, [[]] * 100_001, 0])
    with pytest.raises(NetworkError, match="cannot be read") as raised:
        decode_packet(plain)
    assert "100,001 points" in raised.value.detail
    with pytest.raises(NetworkError, match="is no bytes"):
        decode_packet(pack([3, "text"]))
    with pytest.raises(NetworkError, match="a packet of"):
        encode_packet(NodeFrame(bytes(MAX_PACKET_BYTES)))


def free_address() -> Address:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return Address("127.0.0.1", one.getsockname()[1])


def test_a_broker_above_itself_is_refused() -> None:
    async def story() -> None:
        own = free_address()
        broker = await run_broker(BrokerSettings(own, upstream=own))
        await until(broker.task.done)
        with pytest.raises(NetworkError, match="cycle"):
            broker.task.result()

    run(story())


def test_a_cycle_is_refused_and_the_rest_goes_on(served: ServedHome) -> None:
    """One broker of it ends; the others wait for it."""

    async def story() -> None:
        number = served.hub.subscribe(SELECTION).id
        async with chained(served.path, 2) as tree:
            following = Following(tree[1].address, number)
            addresses = [free_address() for _ in range(3)]
            ring = [
                await run_broker(BrokerSettings(addresses[i], upstream=addresses[(i + 1) % 3]))
                for i in range(3)
            ]
            await until(lambda: any(one.task.done() for one in ring))
            for one in ring:
                if one.task.done():
                    with pytest.raises(NetworkError, match="cycle"):
                        one.task.result()
            served.change(5)
            await following.reach(served.end)
            served.check(SELECTION, following.reader)
            await following.end()
            for one in ring:
                await one.end()

    with served:
        run(story())


def test_a_broker_that_is_further_up_may_not_be_further_down(served: ServedHome) -> None:
    async def trouble(broker: RunningBroker) -> None:
        above = broker.broker._route[0]
        with pytest.raises(FinalError, match="cycle"):
            await RawBroker.join(broker.address, above)

    undisturbed(served, trouble)


@pytest.mark.parametrize(("times", "said"), [(1, "cycle"), (33, "more than 32 brokers")])
def test_a_way_to_the_home_that_cannot_be(times: int, said: str) -> None:
    """The broker further up says who is on its way: this one itself, or too many."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer)
        peer = await greet_connecting(connection, "above@127.0.0.1:1", [b""])
        names = (peer.name,) if times == 1 else tuple(f"{i}@x" for i in range(times))
        connection.send(Route(("above@127.0.0.1:1", *names)))
        connection.send(Route(("above@127.0.0.1:1", *names)))

    async def story() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            address = Address(*server.sockets[0].getsockname()[:2])
            broker = await run_broker(BrokerSettings(ANYWHERE, upstream=address))
            await until(broker.task.done)
            with pytest.raises(NetworkError, match=said):
                broker.task.result()

    run(story())


def test_a_broker_without_a_way_to_the_home_says_so() -> None:
    async def story() -> None:
        broker = await run_broker(BrokerSettings(ANYWHERE, upstream=free_address()))
        reader = await raw_reader(broker.address)
        reader.send(Ask(7, 1))
        packet = await next_packet(reader, NotDescribed)
        assert isinstance(packet, NotDescribed)
        assert packet.number == 7
        assert packet.refused.primary == "the broker has no way to the home at present"
        assert not packet.refused.is_final
        await broker.reported("no broker can be reached")
        await broker.end()

    run(story())


def test_a_port_that_is_taken() -> None:
    async def story() -> None:
        broker = await run_broker(BrokerSettings(ANYWHERE, upstream=free_address()))
        with pytest.raises(NetworkError, match="cannot listen on"):
            await run_broker(BrokerSettings(broker.address, upstream=free_address()))
        await broker.end()

    run(story())


def test_whoever_says_nothing_is_not_waited_for(
    served: ServedHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def trouble(broker: RunningBroker) -> None:
        with monkeypatch.context() as patch:
            patch.setattr("penstock.service.connections.GREETING_SECONDS", 0.05)
            reader, writer = await asyncio.open_connection(*broker.address)
            await broker.reported("has not greeted within")
        await reader.read()
        writer.close()

    undisturbed(served, trouble)


def test_points_survive_their_encoding(served: ServedHome) -> None:
    async def story() -> None:
        number = served.hub.subscribe(
            "SELECT r.id FROM r JOIN s USING (k) WHERE a > 2 AND b < 7 OR a IS NULL"
        ).id
        async with chained(served.path, 1) as (root,):
            reader = await raw_reader(root.address)
            points, start = await described_points(reader, number)
            assert len(points) == 5
            attach = Attach(points, start)
            assert decode_packet(encode_packet(attach)[4:]) == attach
            reader.close()

    with served:
        run(story())
