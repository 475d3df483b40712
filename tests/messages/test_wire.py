"""The wire format: what goes in comes out, and what is foreign is refused."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.catalog import Stored
from penstock.errors import WireError
from penstock.messages import (
    ANY_FILTER,
    EVERYONE,
    Envelope,
    Message,
    MessageBatch,
    PointId,
    Position,
    Reach,
    Reaches,
    SpaceFilter,
    decode_message,
    encode_message,
    encode_messages,
    has_partner,
    may_reach_anyone,
)
from penstock.predicates.intervals import ABOVE_NULL, BOTTOM, TOP, above, below

keys = st.integers(-(10**38), 10**38) | st.text(max_size=5)
stored = st.none() | st.booleans() | keys | st.floats(allow_nan=False)
cuts = st.sampled_from([BOTTOM, ABOVE_NULL, TOP]) | keys.map(below) | keys.map(above)
one_column = st.just(ANY_FILTER) | st.builds(Reach, cuts, cuts, cuts, cuts)
vectors = st.lists(st.none() | keys, min_size=2, max_size=2).map(tuple)
envelopes = st.builds(
    Envelope,
    st.lists(one_column, min_size=2, max_size=2).map(tuple),
    st.lists(vectors, max_size=2).map(tuple),
)
reaches = one_column | envelopes
numbers = st.integers(0, 2**62)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    return Message(
        Position(draw(numbers), draw(st.integers(0, 9))),
        draw(numbers),
        tuple(draw(st.lists(keys, min_size=1, max_size=2))),
        row=draw(st.none() | st.lists(stored, max_size=4).map(tuple)),
        upsert=tuple(draw(st.lists(reaches, max_size=3))),
        old=draw(st.none() | st.lists(st.tuples(st.integers(0, 9), stored)).map(tuple)),
        remove=tuple(draw(st.lists(reaches, max_size=3))),
        recipients=tuple(
            draw(st.lists(st.builds(PointId, numbers, st.integers(0, 9), st.integers(0, 9))))
        ),
        partner=draw(st.none() | st.lists(keys, min_size=1, max_size=2).map(tuple)),
        since=draw(st.just(0) | numbers),
    )


@given(messages())
def test_round_trip(message: Message) -> None:
    assert decode_message(encode_message(message)) == message


@given(st.lists(messages(), max_size=4), st.data())
def test_many_messages_have_the_bytes_of_each(some: list[Message], data: st.DataObject) -> None:
    mixed = []
    for _ in range(data.draw(st.integers(0, 8)) if some else 0):
        position, region, rest = (data.draw(st.sampled_from(some)) for _ in range(3))
        mixed.append(rest._replace(position=position.position, upsert=region.upsert))
    each = [(*message.position, [encode_message(message)]) for message in mixed]
    assert list(encode_messages(mixed)) == each


rows = st.tuples(keys.map(lambda key: (key,)), st.tuples(stored, stored))
regions = st.lists(reaches, min_size=1, max_size=2).map(tuple)


@given(st.lists(rows), regions | st.just(()), regions | st.just(()))
def test_a_telling_has_the_bytes_of_its_messages(
    some: list[tuple[tuple[int | str], tuple[Stored, Stored]]], upsert: Reaches, remove: Reaches
) -> None:
    telling = MessageBatch(Position(3, 1), 7, some, upsert, remove, (1,))
    other = MessageBatch(Position(4, 1), 7, some[::-1], upsert, (), (0, 1))
    for one, (offset, step, bodies) in zip(
        (telling, other, telling), encode_messages([telling, other, telling]), strict=True
    ):
        assert Position(offset, step) == one.position
        assert len(bodies) == len(some)
        assert bodies == sorted(map(encode_message, one.messages()))


@given(messages(), st.data())
def test_truncated_messages_are_refused(message: Message, data: st.DataObject) -> None:
    encoded = encode_message(message)
    length = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(WireError):
        decode_message(encoded[:length])


@given(st.binary(max_size=60))
def test_noise_is_refused_or_read_but_never_crashes(noise: bytes) -> None:
    for version in (b"\x01", b"\x02", b"\x03"):
        with contextlib.suppress(WireError):
            decode_message(version + noise)


def test_other_versions_are_refused_by_number() -> None:
    encoded = encode_message(Message(Position(1, 1), 7, (1,)))
    with pytest.raises(WireError, match="version 4 is not known"):
        decode_message(b"\x04" + encoded[1:])
    with pytest.raises(WireError):
        decode_message(b"\x03" + encoded[1:])  # does not say since when


def test_messages_have_the_lowest_version_that_can_say_it() -> None:
    plain = Message(Position(1, 1), 7, (1,), (1, 2), (ANY_FILTER,))
    wide = Message(Position(1, 1), 7, (1,), (1, 2), (Envelope((ANY_FILTER, ANY_FILTER)),))
    assert encode_message(plain)[0] == 1
    assert encode_message(wide)[0] == 2
    assert encode_message(plain._replace(since=5))[0] == 3


def test_a_selection_message_is_small() -> None:
    message = Message(Position(1000, 1), 2**62, (4,), (4, "GOOG", 52.1), (ANY_FILTER,))
    assert len(encode_message(message)) < 50


@given(messages(), st.lists(numbers, max_size=3))
def test_a_filter_lets_pass_whatever_is_of_its_spaces(message: Message, others: list[int]) -> None:
    data = encode_message(message)
    assert SpaceFilter([*others, message.space]).may_pass(data)
    assert not SpaceFilter([]).may_pass(data)


def test_a_filter_spares_decoding_foreign_messages() -> None:
    spaces = [hash(("space", i)) & (2**64 - 1) for i in range(50)]
    mine = SpaceFilter(spaces[:2])
    told = [encode_message(Message(Position(7, 1), space, (1,), row=(1, "x"))) for space in spaces]
    assert [mine.may_pass(data) for data in told] == [True] * 2 + [False] * 48


@pytest.mark.parametrize("data", [b"", b"\xff whatever"])
def test_a_filter_leaves_refusing_to_the_decoder(data: bytes) -> None:
    assert SpaceFilter([1]).may_pass(data)


@given(messages())
def test_partners_are_told_without_decoding(message: Message) -> None:
    assert has_partner(encode_message(message)) == (message.partner is not None)


@given(messages(), st.booleans(), st.integers(0, 3))
def test_regions_of_anyone_are_found_without_decoding(
    message: Message, is_removed: bool, since: int
) -> None:
    one = message._replace(since=since)
    one = one._replace(remove=EVERYONE) if is_removed else one._replace(upsert=EVERYONE)
    assert may_reach_anyone(encode_message(one))


def test_a_region_of_few_is_not_one_of_anyone() -> None:
    few = (Reach(BOTTOM, above(5), below(3), TOP),)
    message = Message(Position(7, 1), 2**62, (4,), (4, "GOOG", 52.1), few, remove=few)
    assert not may_reach_anyone(encode_message(message))
