"""Peers that know the token send packets with anything in any place, while others are served."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import PenstockError
from penstock.messages import ANY_FILTER, EVERYONE, Message, Point, PointId, Position
from penstock.network.frames import (
    Ack,
    Advertise,
    Body,
    Cached,
    Fetch,
    Frame,
    Hello,
    Parcel,
    Publish,
    Resume,
    Subscribe,
    encode_frame,
)
from penstock.packing import pack, unpack
from penstock.predicates.intervals import EVERYTHING
from penstock.routing.interests import Interest
from penstock.service.connections import Connection, FinalError
from penstock.service.packets import (
    LENGTH_BYTES,
    Ask,
    Attach,
    Delivered,
    NodeFrame,
    Packet,
    Ping,
    Proof,
    Route,
    Spaces,
    encode_packet,
)
from penstock.spaces import Space
from tests.examples import examples
from tests.service.raw_peers import RawBroker, raw_reader
from tests.service.served_home import (
    SELECTION,
    Following,
    RunningBroker,
    ServedHome,
    chained,
    run,
)

ODD: tuple[Any, ...] = (
    *(None, True, 0, 1, -1, 2**31, 2**63, 2**64 - 1, 0.5, float("nan"), float("inf")),
    *("", "x", "messages", "ä" * 300, b"", b"\xc1", b"n" * 16, b"n" * 5000),
    *([], [[]], [[[[[]]]]], [0] * 300, {}, {"a": 1}, [None, None], [[0], [3]]),
)
SPACE = Space("r").id
WIDE = Interest(SPACE, (), (ANY_FILTER,))
MESSAGE = Message(Position(1, 1), SPACE, (1,), (1, 1, 1, ""), EVERYONE)
BODIES: tuple[Body, ...] = (
    *(Hello(1), Subscribe(1, WIDE), Resume(1, "messages", 0, (), (WIDE,)), Ack(1)),
    *(Cached(b"n" * 16), Fetch(b"n" * 16, "messages", ()), Advertise(1, "messages", WIDE)),
    Publish("messages", 1, Parcel(MESSAGE)),
)
PACKETS: tuple[Packet, ...] = (
    *(Ask(1, 1), Attach((Point(PointId(1, 0, 0), SPACE, (), EVERYTHING),), 0), Ping()),
    *(Spaces(()), Route(("a",)), Proof(b"x" * 32), Proof(b""), Delivered(1, MESSAGE)),
)


def damaged(plain: Any, chance: random.Random) -> Any:
    """The same with something odd in one place, at any depth, or a place more or less."""
    if not isinstance(plain, list) or not plain or chance.random() < 0.15:
        return chance.choice(ODD)
    changed, place = list(plain), chance.randrange(len(plain))
    match chance.randrange(8):
        case 0:
            del changed[place]
        case 1:
            changed.insert(place, chance.choice(ODD))
        case _:
            changed[place] = damaged(changed[place], chance)
    return changed


def framed(data: bytes) -> bytes:
    return len(data).to_bytes(LENGTH_BYTES) + data


def odd_packet(chance: random.Random) -> bytes:
    plain = unpack(encode_packet(chance.choice(PACKETS))[LENGTH_BYTES:])
    return framed(pack(damaged(plain, chance)))


def odd_frame(peer: RawBroker, number: int, chance: random.Random) -> bytes:
    """Damaged inside of the packet that carries it; its head is mostly right."""
    frame = Frame(1 << 20, peer.session, number, peer.arrived, chance.choice(BODIES))
    encoded = encode_frame(frame)
    version, plain = encoded[:1], unpack(encoded[1:])
    return encode_packet(NodeFrame(version + pack(damaged(plain, chance))))


async def send_all(connection: Connection, packets: Sequence[bytes]) -> None:
    """As many as the other side listens to; it may say why it does not, and close."""
    for packet in packets:
        connection._writer.write(packet)
    connection._writer.write_eof()  # it closes when it has read them all, if not before
    await until_refused(connection)
    connection.close()


async def until_refused(connection: Connection) -> None:
    try:
        while True:
            await connection.receive()
    except (FinalError, PenstockError, OSError):
        return


async def trouble(broker: RunningBroker, chance: random.Random) -> None:
    """Who comes back under the same name goes on with its session: each has one of its own."""
    if chance.random() < 0.5:
        peer = await RawBroker.join(broker.address, f"{chance.getrandbits(64):x}@127.0.0.1:9")
        frames = [odd_frame(peer, peer.sent + i, chance) for i in range(chance.randrange(1, 6))]
        await send_all(peer.connection, frames)
    else:
        reader = await raw_reader(broker.address)
        await send_all(reader, [odd_packet(chance) for _ in range(chance.randrange(1, 6))])


@pytest.mark.parametrize("seed", range(2))
def test_others_are_served(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)

    async def story(served: ServedHome) -> None:
        faults: list[object] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: faults.append(context.get("exception")))
        number = served.hub.subscribe(SELECTION).id
        async with chained(served.path, 2) as brokers:
            following = Following(brokers[1].address, number)
            for _ in range(examples(40)):
                await trouble(brokers[1], chance)
                assert not any(one.task.done() for one in brokers), brokers[1].reports[-3:]
                if chance.random() < 0.1:
                    served.change(2)
            served.change(5)
            await following.reach(served.end)
            served.check(SELECTION, following.reader)
            assert not following.troubles
            assert not faults, "errors that nobody has named"
            await following.end()

    with ServedHome(tmp_path / "home") as served:
        run(story(served))
