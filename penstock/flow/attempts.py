"""In-process attempts: records are processed on a copy of an engine's state to find a fault."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from penstock.flow.engine import Engine
from penstock.flow.faults import SetAside, find_culprits, is_fault
from penstock.joins import Scheme
from penstock.messages import Message, encode_message
from penstock.routing import subscribers
from penstock.spaces import Placed


def fault_of(process: Callable[[], object]) -> Exception | None:
    """The fault that `process` raises, None if it succeeds; other exceptions propagate."""
    try:
        process()
    except Exception as error:
        if not is_fault(error):
            raise
        return error
    return None


def culprits_of_events(
    engine: Engine,
    run: Iterable[tuple[int, bytes]],
    make_scheme: Callable[[], Scheme],
    suspects: Collection[int],
) -> list[SetAside]:
    """The records to set aside so that the other events can be processed."""
    bodies = dict(run)

    def attempt(events: Sequence[int], subscriptions: Sequence[int]) -> Exception | None:
        def process() -> None:
            copy = engine.aside(subscriptions, make_scheme())
            send(copy, copy.events([(one, bodies[one]) for one in events]).messages)

        return fault_of(process)

    return find_culprits(list(bodies), list(engine.queries), attempt, suspects)


def culprits_of_initial(
    engine: Engine, offset: int, waiting: Sequence[Placed], make_scheme: Callable[[], Scheme]
) -> list[SetAside]:
    """The subscriptions to suspend so that the other points can get their initial content."""

    def attempt(events: Sequence[int], subscriptions: Sequence[int]) -> Exception | None:  # noqa: ARG001
        def process() -> None:
            copy = engine.aside(subscriptions, make_scheme())
            some = [one for one in waiting if one.point.id.subscription in subscriptions]
            send(copy, copy.initial(offset, some))

        return fault_of(process)

    numbers = list(dict.fromkeys(one.point.id.subscription for one in waiting))
    return find_culprits((), numbers, attempt)


def send(engine: Engine, messages: Iterable[Message]) -> None:
    """Everything that is done with messages before they are published."""
    for message in messages:
        encode_message(message)
        subscribers(message, engine.index.space(message.space))
