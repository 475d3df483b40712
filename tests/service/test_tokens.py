"""Tokens: both sides prove that they know one, and what was overheard proves nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import NetworkError
from penstock.service import Address, read_tokens
from penstock.service.connections import Connection, FinalError, connect, greet_listener
from penstock.service.packets import VERSION, Greeting, Proof
from penstock.service.tokens import draw_nonce, proof, proven_token
from tests.service.served_home import run

TOKEN = b"t" * 20

Answer = Callable[[Greeting, bytes, Proof], bytes]


def greeted_by(answer: Answer) -> Greeting:
    """Connect to a listener that answers a proof with whatever it likes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer)
        await connection.begin()
        nonce = draw_nonce()
        connection.send(Greeting(VERSION, "broker", "x@y", nonce))
        greeting, given = await connection.receive(), await connection.receive()
        assert isinstance(greeting, Greeting)
        assert isinstance(given, Proof)
        connection.send(Proof(answer(greeting, nonce, given)))

    async def story() -> Greeting:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            connection = await connect(Address(*server.sockets[0].getsockname()[:2]))
            try:
                return await greet_listener(connection, "reader", "me@", TOKEN)
            finally:
                connection.abort()

    return run(story())


def test_a_listener_that_knows_the_token() -> None:
    def answer(greeting: Greeting, nonce: bytes, _: Proof) -> bytes:
        return proof(TOKEN, "listening", nonce, greeting.nonce)

    assert greeted_by(answer).name == "x@y"


@pytest.mark.parametrize(
    "answer",
    [
        lambda greeting, nonce, _: proof(b"w" * 20, "listening", nonce, greeting.nonce),
        lambda *_: b"",
        lambda _greeting, _nonce, given: given.proof,
        lambda greeting, _nonce, _: proof(TOKEN, "listening", b"o" * 32, greeting.nonce),
        lambda _greeting, nonce, _: proof(TOKEN, "listening", nonce, b"o" * 32),
    ],
    ids=["another token", "nothing", "what it was sent", "an old proof", "a proof for others"],
)
def test_a_listener_that_does_not_know_the_token_is_left(answer: Answer) -> None:
    with pytest.raises(FinalError, match="different tokens"):
        greeted_by(answer)


def test_a_proof_holds_for_one_side_and_one_greeting() -> None:
    mine, theirs = draw_nonce(), draw_nonce()
    given = proof(TOKEN, "connecting", theirs, mine)
    assert proven_token([b"o" * 20, TOKEN], given, "connecting", theirs, mine) == TOKEN
    assert proven_token([TOKEN], given, "listening", theirs, mine) is None
    assert proven_token([TOKEN], given, "connecting", mine, theirs) is None
    assert proven_token([TOKEN], given, "connecting", theirs, draw_nonce()) is None
    assert proven_token([], given, "connecting", theirs, mine) is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("# none\n\n", "does not hold 1 to"),
        ("short\n", "too short"),
        ("x" * 20 + "\nshort", "short"),
    ],
)
def test_files_that_hold_no_tokens(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "tokens"
    path.write_text(content)
    with pytest.raises(NetworkError, match=said):
        read_tokens(path)


def test_a_file_with_a_token_for_each_link(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("# of the broker below\n" + "a" * 20 + "\n\n  " + "b" * 16 + "  \n")
    assert read_tokens(path) == (b"a" * 20, b"b" * 16)
