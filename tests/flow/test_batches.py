"""Many steps at once give the messages of one step after the other, byte for byte; those of one
position in any order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from unittest import mock

import pytest
from hypothesis import given, settings

from penstock.flow.engine import Engine
from penstock.flow.events import encode_change
from penstock.joins import Group, GroupStep, Scheme, SpacePoints, make_scheme, scheme_names
from penstock.joins.scheme import StepByStep
from penstock.messages import Message, Position, encode_message
from penstock.testing.scenario import Define, Publish, Subscribe, Withdraw
from tests.differential.stories import JOINS, Story, stories
from tests.examples import examples


class OneByOne(StepByStep):
    """A scheme that is never shown more than one step."""

    def __init__(self, scheme: Scheme) -> None:
        self.scheme = scheme
        self.name = scheme.name

    def messages(
        self, group: Group, step: GroupStep, spaces: Iterable[SpacePoints]
    ) -> Iterator[Message]:
        return self.scheme.messages(group, step, spaces)

    def initial(
        self, position: Position, groups: Iterable[Group], points: SpacePoints
    ) -> Iterator[Message]:
        return self.scheme.initial(position, groups, points)


def told(story: Story, scheme: Scheme) -> list[bytes]:
    """All messages of a story; changes between two subscriptions are one batch."""
    engine = Engine(scheme)
    messages: list[Message] = []
    waiting: list[tuple[int, bytes]] = []
    names: dict[str, int] = {}

    def flush() -> None:
        messages.extend(engine.events(waiting).messages)
        waiting.clear()

    offset = 0
    for step in story.steps:
        if not isinstance(step, Publish):
            flush()
        match step:
            case Define(sql):
                engine.define(offset, sql)
            case Subscribe(name, sql):
                names[name] = offset
                messages.extend(engine.subscribe(offset, engine.bind(sql)))
            case Withdraw(name):
                engine.withdraw(names.pop(name))
            case Publish(changes):
                waiting.extend((offset + i, encode_change(c)) for i, c in enumerate(changes))
                offset += len(changes)
        offset += 1
    flush()
    # Between changes of subscriptions, messages come by position already.
    return [body for _, body in sorted((m.position, encode_message(m)) for m in messages)]


# `auto` may choose another scheme for many steps than for each of them.
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in scheme_names() if name != "auto"])
@settings(max_examples=examples(40))
@given(story=stories(JOINS, max_steps=25))
def test_a_batch_is_as_its_steps_one_by_one(name: str, story: Story) -> None:
    with mock.patch("penstock.joins.schemes.ref_sj_gap.MANY_STEPS", 1):
        at_once = told(story, make_scheme(name))
        assert at_once == told(story, OneByOne(make_scheme(name)))
